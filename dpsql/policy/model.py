"""The policy as frozen values. Whoever holds a ``Policy`` holds one that was loaded and validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal

from dpsql.policy.types import Kind, Scalar

Composition = Literal["zcdp", "basic"]
Window = Literal["day", "week", "month", "year"]
Extremes = Literal["measured", "declared"]
EXTREMES: tuple[Extremes, ...] = ("measured", "declared")
MECHANISMS = ("laplace", "geometric", "gaussian")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a listed table, with everything the owner says about its values.

    ``declared`` is the owner's word for the type (``decimal(12, 2)``), ``kind`` what it is to
    dpsql. ``range`` and ``values`` are public: chosen by the owner, not read from the data.
    ``extremes`` says whether they may stand for the least and greatest value that rows have.
    """

    name: str
    declared: str
    kind: Kind
    nullable: bool = False
    identifier: bool = False
    range: tuple[Scalar, Scalar] | None = None
    values: tuple[Scalar, ...] | None = None
    values_from: tuple[str, str] | None = None
    extremes: Extremes = "measured"
    max_length: int | None = None
    description: str = ""
    held_as_read: bool = False
    """Once the source is open: its type there is the very one that statements read it as."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """``columns`` of this table are the ``key`` columns of table ``references``.

    ``same_unit`` says that both rows belong to one unit, though the way to it is another one.
    """

    columns: tuple[str, ...]
    references: str
    key: tuple[str, ...]
    same_unit: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A listed table. ``unit`` is None exactly for public tables.

    ``key`` is a declared unique key (empty when none is). ``max_rows_per_unit`` is 1 for the
    table that holds the unit itself. ``path`` leads a private table to its unit: the foreign
    keys to follow, in order; empty when the unit's key columns are ``unit_columns`` of this very
    table.
    """

    name: str
    columns: Mapping[str, Column]
    unit: str | None = None
    key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    max_rows_per_unit: int = 1
    max_rows_per_group: int | None = None
    path: tuple[ForeignKey, ...] = ()
    unit_columns: tuple[str, ...] = ()
    description: str = ""
    account: Allowance | None = None
    """What may be spent on this table alone."""
    fan_outs: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """Of a public table, once its data is open: how many rows at most share values of columns."""
    content: int | None = None
    """Of a public table, once its data is open: a number that other rows would not have."""

    @property
    def public(self) -> bool:
        """Whether it is answered exactly and for free."""
        return self.unit is None


@dataclass(frozen=True, slots=True)
class View:
    """A query that is read like a table. It is bound anew, as the owner's, wherever it is named."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class TemporaryView(View):
    """A view of a session: bound as the session's, in the dialect that it was written in."""

    dialect: str = "postgres"


@dataclass(frozen=True, slots=True)
class Unit:
    """Whoever is protected. An empty ``key`` means the row itself is the unit.

    ``table`` is the table with one row per unit. None: there is no such table, and a unit is all
    rows with equal keys in all tables that name it. Each of them holds the key in its
    ``unit_columns``, or leads by foreign keys to one that does; rows without a key are nobody's.
    """

    name: str
    table: str | None
    key: tuple[str, ...]
    group_size: int = 1

    @property
    def is_row(self) -> bool:
        """Whether each row is a unit of its own."""
        return not self.key


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an account may spend, how charges compose, and when it is renewed (never: None)."""

    epsilon: Fraction
    delta: Fraction
    composition: Composition
    per: Window | None = None


@dataclass(frozen=True, slots=True)
class QueryLimit:
    """What one query costs unless it asks for less; it may never ask for more."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Access:
    """How a role may use the endpoint; None leaves a matter to it."""

    may_become: frozenset[str] = frozenset()
    """Roles it may take with SET ROLE."""
    connections: int | None = None
    idle_seconds: int | None = None
    statement_seconds: int | None = None
    message_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """Analysts of one kind: their budgets and what they may ask."""

    name: str
    allowance: Allowance
    session: Allowance
    query: QueryLimit
    password: str | None = None
    max_groups_per_unit: int = 3
    mechanisms: tuple[str, ...] = MECHANISMS
    tables: frozenset[str] | None = None
    """Tables and views the role may see; None means all."""
    access: Access = field(default_factory=Access)
    owner: bool = False
    """Whether ``dpsql.ledger`` and ``dpsql.budget`` show it the entries of all roles."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Answers leave at multiples of ``seconds``; a ``fixed`` one is not waited for any longer."""

    seconds: float
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the endpoint bears of all clients together, and of those who have not logged in."""

    connections: int = 1_000
    startup_seconds: int = 15
    send_seconds: int = 60
    idle_seconds: int | None = None
    message_bytes: int = 16 << 20
    memory: str | None = None
    """Of the whole process with its engine; None is what the engine may use, and 1 GB."""


@dataclass(frozen=True, slots=True)
class Front:
    """What the endpoint does: none of it changes what an answer means."""

    users: Path
    """The file of those who log in under a name of their own."""
    preview: Literal["refuse", "empty"] = "refuse"
    cleartext: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    database: str = ""
    """What clients call it where several policies are served."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where the data is. ``path`` is absolute."""

    engine: str
    path: Path


@dataclass(frozen=True, slots=True)
class LedgerServer:
    """A PostgreSQL server that keeps the ledger. ``dsn`` holds no password."""

    dsn: str
    schema: str


@dataclass(frozen=True, slots=True)
class LedgerKeeping:
    """How a ledger is kept from being lost."""

    must_exist: bool = False
    """Whether a missing one is an error; else it is made anew."""
    head: Path | None = None
    """The file in which its last hash is noted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on work, not on privacy."""

    max_cells: int = 100_000
    memory: str = "4GB"
    threads: int = 0
    """0 leaves the choice to the engine."""
    timeout_seconds: float = 300
    strict_timing: bool = False
    """Whether statements do the same work whatever their conditions find."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything the owner said. ``version`` changes whenever its meaning does.

    ``answers_key`` changes whenever the meaning of stored answers does: they are kept under it.
    """

    path: Path
    source: DataSource
    data_version: str
    units: Mapping[str, Unit]
    tables: Mapping[str, Table]
    dataset: Allowance
    roles: Mapping[str, Role]
    ledger: Path
    version: str
    answers_key: str
    ledger_server: LedgerServer | None = None
    """Keeps the ledger instead of a file."""
    ledger_keeping: LedgerKeeping = field(default_factory=LedgerKeeping)
    time_zone: str = "UTC"
    """Whose calendar the windows of accounts follow."""
    limits: Limits = field(default_factory=Limits)
    latency: Latency | None = None
    front: Front = field(default_factory=lambda: Front(Path("policy.users")))
    views: Mapping[str, View] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    places: Mapping[tuple[str, ...], str] = field(default_factory=dict, compare=False)
    """Where ``(table,)``, ``(view,)`` and ``(table, column)`` are in the file, as
    ``file:line:column``."""
