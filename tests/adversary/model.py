"""What an attack is made of, as frozen values; everything else here makes or reads them.

A world is a policy with a database. Two worlds are near if the second lacks the rows of one
protected unit, or has the same rows in another order. An attack opens both through one face, sends
both the same steps, and keeps what came back; judges then look for a difference that nobody paid
for. Cells are SQL constants, so that a world is text: it can be stored, shown and made smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

Act = Literal[
    "ask",  # one statement, with parameters
    "explain",  # the plan and price of a statement
    "set",  # a setting, as SQL text
    "catalog",  # a statement about the catalog, which costs nothing
    "cancel",  # a statement that is cancelled after ``seconds``
    "reload",  # the policy becomes ``text`` and is read again
    "reconnect",  # the connection is closed and opened again
    "wait",  # ``seconds`` pass
]
Relation = Literal["without", "order", "same", "strays"]
"""How the second world of a pair differs: a unit's rows are missing, rows stand in another order,
nothing differs, or rows of nobody are missing. Only the first may move an exact number."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as SQL constants, and whose it is: None for public rows and for rows of nobody."""

    table: str
    cells: tuple[str, ...]
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """Somebody who may ask, and the password that the policy has for them, in plain text."""

    name: str
    password: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """A policy, the statements that make its database, and the rows in the order of insertion.

    ``policy`` names the source ``data.duckdb`` in its own folder. ``group_size`` is how many owners
    the policy protects together. ``sound`` is whether the data keeps what the policy declares.
    ``prepared`` is whether its owner has made copies of all private tables with ``dpsql prepare``.
    """

    name: str
    policy: str
    ddl: tuple[str, ...]
    rows: tuple[Row, ...]
    roles: tuple[Role, ...] = (Role("analyst"),)
    views: tuple[str, ...] = ()
    """Statements that run after the rows are there."""
    group_size: int = 1
    sound: bool = True
    prepared: bool = False
    earlier: tuple[Row, ...] = ()
    """Rows of an earlier database, which was prepared and checked. This one was put in its place, with
    its size and its times."""
    readings: tuple[tuple[str, str], ...] = ()
    """Views that the policy lists, each with a view of what another reading of it may find."""

    @property
    def owners(self) -> tuple[str, ...]:
        """All units that have rows, in the order in which they first appear."""
        return tuple(dict.fromkeys(row.owner for row in self.rows if row.owner is not None))


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a client does."""

    act: Act
    text: str = ""
    parameters: tuple[Any, ...] = ()
    role: str = ""
    """Whose connection does it; the first role's if empty."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Column:
    """Name and type of a column, as the face tells them."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A refusal or an error, as the face tells it. ``position`` counts characters from one."""

    code: str
    words: str
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """Noise on the integers of one column of a measurement, or on something computed from them.

    ``exact`` has one integer for each group as it is in this world, ``noise`` what was added in the
    answer to the groups that are shown, ``sample`` further draws of the same noise. ``kind`` is
    "number", or "histogram", whose ``exact`` has pairs of bins and weights, and of which ``again``
    chooses. Where groups are selected, the first draw is of their numbers of units.
    """

    kind: Literal["number", "histogram"]
    exact: tuple[Any, ...]
    noise: tuple[int, ...] = ()
    sample: tuple[int, ...] = ()
    law: tuple[str, tuple[tuple[str, str], ...]] = ("", ())
    """What the noise is said to be: a name, and parameters as exact text."""
    again: Callable[[Sequence[tuple[int, int]], int], list[str]] | None = None
    """Of a histogram: chooses a value of one group so many times, as texts."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one statement brought from the engine, seen where noise is added.

    ``keys`` are the labels of its groups in the order of the engine, each a tuple of a type and
    the bytes of a value, so that values that are equal but not the same differ here. ``columns``
    are all its columns, by name and type, with their integers.
    """

    name: str
    statement: str
    keys: tuple[tuple[tuple[str, bytes], ...], ...]
    draws: tuple[Draw, ...]
    columns: tuple[tuple[str, str, tuple[Any, ...]], ...] = ()
    shown: tuple[int, int] | None = None
    """Where groups are shown only if enough units are in them: the threshold, and how many are."""
    leak: str = ""
    """What was released although it is no function of noised integers and labels; empty if nothing."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """What came back for a step. A face that cannot know a field leaves it empty."""

    step: Step
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    notes: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    error: Failure | None = None
    cost: tuple[str, str] | None = None
    """Epsilon and delta of the answer, as the face writes them."""
    remaining: str = ""
    recalled: bool | None = None
    text: str = ""
    """What EXPLAIN says, or whatever a face shows that is no table."""
    seconds: float = 0.0
    measured: tuple[Measured, ...] = ()
    """What seams saw; only of faces in this process."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One entry of the ledger file: which step caused it, its state, its sums, its events as JSON.

    Epsilon and rho are in units of 1e-9, delta and threshold in units of 1e-18.
    """

    step: int
    state: str
    epsilon: int
    delta: int
    rho: int
    threshold: int
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One world, the steps that were sent to it, and what came of them."""

    world: World
    transcripts: tuple[Transcript, ...]
    charges: tuple[Charge, ...] = ()
    opened: Failure | None = None
    """Why the world could not be opened."""
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """The same steps in two worlds through one face. ``pinned``: both drew the same randomness."""

    face: str
    relation: Relation
    owners: tuple[str, ...]
    steps: tuple[Step, ...]
    left: Run
    right: Run
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that should not be, with all that is needed to see it again."""

    judge: str
    meaning: str
    face: str
    relation: Relation
    owners: tuple[str, ...]
    world: World
    steps: tuple[Step, ...]
    step: int = 0
    """Which of the steps shows it."""
    details: tuple[str, ...] = field(default=())


class Session(Protocol):
    """An open world. Steps of another role than the first open a connection of their own."""

    def ask(self, step: Step) -> Transcript:
        """What comes back for a step; whatever fails is in the transcript, nothing is raised."""
        ...

    def close(self) -> None:
        """End connections, and the server where there is one."""
        ...


class Face(Protocol):
    """A way to dpsql: the module, the command line, either protocol, HTTP.

    ``open`` finds the world written in ``folder`` (``policy.yaml`` and ``data.duckdb``, see
    ``place.py``), and raises ``Unopened`` if dpsql refuses to open it.
    """

    name: str

    def open(self, world: World, folder: Path, role: str = "") -> Session:
        """Connect as the role; as the first of the world if none is named."""
        ...


class Judge(Protocol):
    """Looks at a pair of runs and says what is wrong."""

    name: str

    def judge(self, case: Case) -> Finding | None:
        """The first thing that is wrong, or None."""
        ...


class Unopened(Exception):
    """A face could not open a world; ``failure`` is what it said."""

    def __init__(self, failure: Failure) -> None:
        """Keep what was said."""
        super().__init__(failure.words)
        self.failure = failure


def finding(
    judge: str, case: Case, step: int, meaning: str, details: Sequence[str] = ()
) -> Finding:
    """A finding of a case, whose world is that with the unit."""
    return Finding(
        judge, meaning, case.face, case.relation, case.owners, case.left.world, case.steps, step,
        tuple(details),
    )  # fmt: skip
