"""Prepared statements and portals: names for what can be run, and for what is being read."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from dpsql.serve.memory import HELD
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
MOST_BYTES = 256_000_000
"""What the open portals of a session hold of answers, together."""


@dataclass(slots=True)
class Prepared:
    """A statement by name. ``oids`` has a 0 for each type that is not known yet."""

    command: c.Command | None
    oids: tuple[int, ...] = ()
    columns: tuple[WireColumn, ...] | None = None
    described: bool = False
    settings: object = None
    """Role and settings when it was described: others may give it other columns."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Portal:
    """A statement with its values, its answer once there is one, and how far it was read.

    ``position`` is 0 before the first row, n on the n-th and one more than the last after it.
    The answer is asked for once: whoever reads a portal again reads the same rows, and one that
    failed is not asked for, or charged, again.
    """

    command: c.Command | None
    values: tuple[Value, ...] = ()
    oids: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    answer: Answer | None = None
    columns: tuple[WireColumn, ...] | None = None
    settings: object = None
    """Role and settings that the columns are known for."""
    position: int = 0
    done: bool = False
    hold: bool = False
    scroll: bool = True
    in_block: bool = False
    declared: bool = False
    number: int = field(default_factory=lambda: next(_NUMBERS))
    """Later ones have greater numbers."""


@dataclass(slots=True)
class Names:
    """Everything a session has given a name to."""

    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)

    def add_prepared(self, name: str, prepared: Prepared) -> None:
        """The unnamed one may be replaced; others must be closed first."""
        if name and name in self.prepared:
            raise WireError(DUPLICATE_STATEMENT, f'prepared statement "{name}" already exists')
        if len(self.prepared) >= MOST:
            raise WireError(LIMIT, "too many prepared statements")
        self.prepared[name] = prepared

    def find_prepared(self, name: str) -> Prepared:
        """A prepared statement, or the error clients know."""
        found = self.prepared.get(name)
        if found is None:
            said = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise WireError(NO_STATEMENT, f"{said} does not exist")
        return found

    def add_portal(self, name: str, portal: Portal) -> None:
        """The unnamed one may be replaced; others must be closed first."""
        if name and name in self.portals:
            raise WireError(DUPLICATE_CURSOR, f'cursor "{name}" already exists')
        if len(self.portals) >= MOST:
            raise WireError(LIMIT, "too many portals")
        self.portals[name] = portal

    def find_portal(self, name: str, what: str = "portal") -> Portal:
        """A portal, or the error clients know."""
        found = self.portals.get(name)
        if found is None:
            raise WireError(NO_CURSOR, f'{what} "{name}" does not exist')
        return found

    def check_room(self) -> None:
        """Refuse another answer, before it is asked for, while too much is kept already."""
        held = sum(p.answer.table.nbytes for p in self.portals.values() if p.answer is not None)
        if held >= MOST_BYTES:
            raise WireError(
                LIMIT, "the open cursors hold too many rows",
                f"Together they may hold {MOST_BYTES} bytes.", "Close one of them.",
            )  # fmt: skip
        if HELD.bytes >= HELD.most:
            raise WireError(
                LIMIT, "the open cursors of all sessions hold too many rows",
                f"Together they may hold {HELD.most} bytes.", "Try again when others are closed.",
            )  # fmt: skip

    def close_later(self, than: int) -> None:
        """What was opened since a savepoint is gone with it."""
        self.portals = {n: p for n, p in self.portals.items() if p.number <= than}

    @property
    def newest(self) -> int:
        """The number of the portal that was opened last."""
        return max((p.number for p in self.portals.values()), default=0)

    def end_block(self, *, committed: bool) -> None:
        """A transaction ends: cursors WITH HOLD survive when it committed."""
        kept = {}
        for name, portal in self.portals.items():
            if portal.hold and (committed or not portal.in_block):
                portal.in_block = False
                kept[name] = portal
        self.portals = kept
