"""The statements that a session itself carries out, as values. Everything else is a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dpsql.serve.tokens import Token, tokens_of


def highest(tokens: Iterable[Token]) -> int:
    """The number of the last parameter that is named."""
    return max(
        (int(t.text[1:]) for t in tokens if t.kind == "param" and len(t.text) < 7), default=0
    )


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT and its like: answered by the catalog or by the service.

    It is its text: the tokens take fifty times as much memory, and are read again when they are needed.
    """

    text: str
    highest: int | None = field(default=None, compare=False)
    """The number of its last parameter, where it was looked for when it was read."""

    @property
    def parameters(self) -> int:
        """How many parameters it names."""
        return highest(self.tokens) if self.highest is None else self.highest

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Everything but spaces and comments."""
        return tokens_of(self.text)


@dataclass(frozen=True, slots=True)
class Own:
    """SET, RESET and SHOW of dpsql's own settings, and EXPLAIN: the service carries them out."""

    text: str
    returns_rows: bool
    sets: str = ""
    """The setting that SET or RESET changes, in lower case."""
    local: bool = False


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction starts."""

    tag: str = "BEGIN"


@dataclass(frozen=True, slots=True)
class End:
    """A transaction ends; ``commit`` unless it has failed."""

    commit: bool
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    """SAVEPOINT name."""

    name: str


@dataclass(frozen=True, slots=True)
class Release:
    """RELEASE SAVEPOINT name."""

    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    """ROLLBACK TO SAVEPOINT name."""

    name: str


@dataclass(frozen=True, slots=True)
class Set:
    """A session variable; None takes it back to its default."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class Become:
    """SET ROLE and SET SESSION AUTHORIZATION; None is the role that logged in."""

    role: str | None
    tag: str = "SET"
    local: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW name, or SHOW ALL."""

    name: str


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET name, or RESET ALL (no name)."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """DISCARD ALL, PLANS, SEQUENCES or TEMP."""

    what: str


@dataclass(frozen=True, slots=True)
class Declare:
    """A cursor over a query. ``scroll`` is None when nothing is said."""

    name: str
    query: Query
    hold: bool
    scroll: bool | None


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH or MOVE. ``direction`` is forward, backward, absolute or relative; no count is ALL."""

    cursor: str
    direction: str
    count: int | None
    moves: bool


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """CLOSE name, or CLOSE ALL (no name)."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Prepare:
    """SQL's PREPARE."""

    name: str
    oids: tuple[int, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class ExecutePrepared:
    """SQL's EXECUTE, with constants as values."""

    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """DEALLOCATE name, or DEALLOCATE ALL (no name)."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY (query) TO STDOUT."""

    query: Query
    format: str = "text"
    header: bool = False
    delimiter: str = ""
    null: str | None = None
    quote: str = '"'
    force_quote: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """Accepted without effect: there is nothing here that it could do."""

    tag: str


Command = (
    Query | Own | Begin | End | Savepoint | Release | RollbackTo | Set | Become | Show | Reset | Discard
    | Declare | Fetch | CloseCursor | Prepare | ExecutePrepared | Deallocate | Copy | Nothing
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """A command and where it begins in the text that the client sent."""

    command: Command
    offset: int = 0
