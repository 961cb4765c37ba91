"""Prepared statements and portals, and the names that a session gives them."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass, field
from sys import getsizeof

from dpsql.memory.pool import POOL, Hold, Use
from dpsql.memory.sizes import size_of
from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire.asking import Answer
from dpsql.serve.pgwire.errors import (
    DUPLICATE_CURSOR,
    DUPLICATE_STATEMENT,
    LIMIT,
    NO_CURSOR,
    NO_STATEMENT,
    WireError,
)
from dpsql.serve.pgwire.parameters import Value
from dpsql.serve.pgwire.replies import WireColumn

_NUMBERS = itertools.count(1)
MOST = 2_000
EACH, EACH_COLUMN = 1_500, 250
"""Bytes of a prepared statement or portal, and of each of its columns, apart from client text."""


@dataclass(slots=True)
class Prepared:
    """A prepared statement. ``oids`` has a 0 for each type that is not known yet."""

    command: c.Command | None
    oids: tuple[int, ...] = ()
    columns: tuple[WireColumn, ...] | None = None
    described: bool = False
    settings: object = None
    """The role and settings when it was described. Under others its columns may differ."""
    memory: Hold | None = None
    """The hold that counts its memory for as long as it exists."""

    def set_described(
        self, oids: tuple[int, ...], columns: tuple[WireColumn, ...] | None, settings: object
    ) -> None:
        """Keep its description. Raises ``Full`` if there is no memory for it."""
        if self.memory is not None:
            self.memory.resize(
                self.memory.bytes + EACH_COLUMN * len(columns or ()) + 40 * len(oids)
            )
        self.oids, self.columns, self.settings, self.described = oids, columns, settings, True


@dataclass(slots=True, eq=False)
class Portal:
    """A statement with its values, its answer once there is one, and a position in the answer.

    ``position`` is 0 before the first row, n on the n-th row, and one more than the last after it.
    The answer is asked for once. Reading a portal again gives the same rows. A portal that failed
    is not run, and so not charged, again.
    """

    command: c.Command | None
    values: tuple[Value, ...] = ()
    oids: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    answer: Answer | None = None
    columns: tuple[WireColumn, ...] | None = None
    settings: object = None
    """The role and settings for which the columns are known."""
    position: int = 0
    done: bool = False
    hold: bool = False
    scroll: bool = True
    in_block: bool = False
    declared: bool = False
    memory: Hold | None = None
    """The hold that counts its memory for as long as it exists."""
    number: int = field(default_factory=lambda: next(_NUMBERS))
    """A number that is greater for later portals."""


def _size(name: str, command: c.Command | None) -> int:
    sent = getsizeof(command.text) if isinstance(command, c.Query) else size_of(command)
    return EACH + getsizeof(name) + sent


@dataclass(slots=True)
class Names:
    """The prepared statements and portals of a session, by name."""

    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    owner: Hashable = None
    """The login for which their memory is counted."""

    def add_prepared(self, name: str, prepared: Prepared) -> None:
        """Add a prepared statement. A named one must not exist; the unnamed one is replaced."""
        if name and name in self.prepared:
            raise WireError(DUPLICATE_STATEMENT, f'prepared statement "{name}" already exists')
        if len(self.prepared) >= MOST:
            raise WireError(LIMIT, "too many prepared statements")
        size = _size(name, prepared.command) + 40 * len(prepared.oids)
        size += EACH_COLUMN * len(prepared.columns or ())
        prepared.memory = POOL.hold(Use.PREPARED, size, self.owner)
        self.prepared[name] = prepared

    def find_prepared(self, name: str) -> Prepared:
        """The prepared statement of a name, or the error that clients know."""
        found = self.prepared.get(name)
        if found is None:
            said = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise WireError(NO_STATEMENT, f"{said} does not exist")
        return found

    def add_portal(self, name: str, portal: Portal) -> None:
        """Add a portal. A named one must not exist; the unnamed one is replaced."""
        if name and name in self.portals:
            raise WireError(DUPLICATE_CURSOR, f'cursor "{name}" already exists')
        if len(self.portals) >= MOST:
            raise WireError(LIMIT, "too many portals")
        size = _size(name, portal.command) + sum(map(getsizeof, portal.values))
        portal.memory = POOL.hold(Use.PORTALS, size + 80 * len(portal.oids), self.owner)
        self.portals[name] = portal

    def find_portal(self, name: str, what: str = "portal") -> Portal:
        """The portal of a name, or the error that clients know."""
        found = self.portals.get(name)
        if found is None:
            raise WireError(NO_CURSOR, f'{what} "{name}" does not exist')
        return found

    def close_later(self, than: int) -> None:
        """Close the portals with greater numbers, which were opened since a savepoint."""
        self.portals = {n: p for n, p in self.portals.items() if p.number <= than}

    @property
    def newest(self) -> int:
        """The number of the newest portal."""
        return max((p.number for p in self.portals.values()), default=0)

    def end_block(self, *, committed: bool) -> None:
        """Close portals at the end of a transaction. Cursors WITH HOLD survive a commit."""
        kept = {}
        for name, portal in self.portals.items():
            if portal.hold and (committed or not portal.in_block):
                portal.in_block = False
                kept[name] = portal
        self.portals = kept
