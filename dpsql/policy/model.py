"""The policy as frozen values. Every ``Policy`` was loaded and validated."""

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
    """A column of a listed table, with all declarations about its values.

    ``declared`` is the type as the owner writes it (``decimal(12, 2)``), and ``kind`` is the kind
    with which dpsql computes. ``range`` and ``values`` are public: the owner chooses them, they are
    not read from the data. ``extremes`` says whether their ends may be answered as the least and
    greatest value of all rows.
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
    """Set once the source is open: whether the type there is the one that statements read."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """``columns`` of this table are equal to the ``key`` columns of table ``references``.

    ``same_unit`` declares that both rows belong to one unit, although this key is not part of the
    path to the unit.
    """

    columns: tuple[str, ...]
    references: str
    key: tuple[str, ...]
    same_unit: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A listed table. ``unit`` is None exactly for public tables.

    ``key`` is a declared unique key (empty if there is none). ``max_rows_per_unit`` is 1 for the
    table of the unit itself. ``path`` leads a private table to its unit: the foreign keys to
    follow, in order. It is empty if this table itself holds the unit's key in its ``unit_columns``.
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
    """The budget of this table alone."""
    fan_outs: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """For a public table with open data: the most rows that share the values of some columns."""
    content: int | None = None
    """For a public table with open data: a digest of its rows."""
    computed: bool = False
    """Set once the source is open: whether two readings of its rows may differ in last digits."""

    @property
    def public(self) -> bool:
        """Whether the table is answered exactly and for free."""
        return self.unit is None


@dataclass(frozen=True, slots=True)
class View:
    """A query that is read like a table, bound with the owner's rights wherever it is used."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class TemporaryView(View):
    """A view of a session: bound with the session's rights, in the dialect of its text."""

    dialect: str = "postgres"


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of protected unit. An empty ``key`` means that each row is a unit.

    ``table`` is the table with one row per unit. If it is None, there is no such table, and a unit
    is all rows with equal keys in all tables that name the unit. Each of these tables holds the key
    in its ``unit_columns``, or leads by foreign keys to a table that does. Rows without a key
    belong to no unit.
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
    """The budget of an account, how charges compose, and when it is renewed (None: never)."""

    epsilon: Fraction
    delta: Fraction
    composition: Composition
    per: Window | None = None


@dataclass(frozen=True, slots=True)
class QueryLimit:
    """The cost of one query unless it asks for less; it may never ask for more."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class QueryShare:
    """The cost of one query as a share of the rho that a session may spend.

    ``delta`` is the delta at which the epsilon of an answer is stated. Selections of groups spend a
    part of it.
    """

    share: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Access:
    """How a role may use the endpoint; None means the endpoint's own value."""

    may_become: frozenset[str] = frozenset()
    """Roles it may take with SET ROLE."""
    connections: int | None = None
    idle_seconds: int | None = None
    statement_seconds: int | None = None
    message_bytes: int | None = None


Searching = Literal["auto", "on", "off"]
"""Whether limits are searched for: where it is likely to help, wherever it may help, or never."""


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of analysts: their budgets and what they may ask."""

    name: str
    allowance: Allowance
    session: Allowance
    query: QueryLimit | QueryShare
    password: str | None = None
    max_groups_per_unit: int = 3
    search: Searching = "auto"
    mechanisms: tuple[str, ...] = MECHANISMS
    tables: frozenset[str] | None = None
    """Tables and views the role may see; None means all."""
    access: Access = field(default_factory=Access)
    owner: bool = False
    """Whether ``dpsql.ledger`` and ``dpsql.budget`` show it the entries of all roles."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Answers leave at multiples of ``seconds``; if ``fixed``, slower statements are stopped."""

    seconds: float
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the endpoint for all clients together, and for clients that have not logged in."""

    connections: int = 1_000
    startup_seconds: int = 15
    send_seconds: int = 60
    idle_seconds: int | None = None
    message_bytes: int = 16 << 20
    memory: str | None = None
    """Memory of the whole process with its engine; None is the engine's limit plus 1 GB."""


@dataclass(frozen=True, slots=True)
class Front:
    """Settings of the endpoint. None of them changes the meaning of an answer."""

    users: Path
    """The file of users who log in under names of their own."""
    preview: Literal["refuse", "empty"] = "refuse"
    cleartext: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    database: str = ""
    """The name of the database for clients, where several policies are served."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """The location of the data. ``path`` is absolute."""

    engine: str
    path: Path


@dataclass(frozen=True, slots=True)
class LedgerServer:
    """A PostgreSQL server that keeps the ledger. ``dsn`` holds no password."""

    dsn: str
    schema: str


@dataclass(frozen=True, slots=True)
class LedgerKeeping:
    """Settings that detect the loss of a ledger."""

    must_exist: bool = False
    """Whether a missing ledger is an error; else a new one is created."""
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
    """Whether statements do the same work whatever rows their conditions select."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The whole policy. ``version`` changes whenever its meaning does.

    ``answers_key`` changes whenever the meaning of stored answers does, and is part of their keys.
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
    """The server that keeps the ledger instead of a file."""
    ledger_keeping: LedgerKeeping = field(default_factory=LedgerKeeping)
    time_zone: str = "UTC"
    """The time zone in which the windows of accounts begin."""
    limits: Limits = field(default_factory=Limits)
    latency: Latency | None = None
    front: Front = field(default_factory=lambda: Front(Path("policy.users")))
    views: Mapping[str, View] = field(default_factory=dict)
    stale: Literal["warn", "refuse"] = "warn"
    """What happens when the data changed while ``data_version`` did not."""
    warnings: tuple[str, ...] = ()
    places: Mapping[tuple[str, ...], str] = field(default_factory=dict, compare=False)
    """The places of ``(table,)``, ``(view,)`` and ``(table, column)``, as ``file:line:column``."""
