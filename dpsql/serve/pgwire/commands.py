"""The commands that a session carries out, as values. Every other statement is a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dpsql.serve.tokens import Token, tokens_of


def highest(tokens: Iterable[Token]) -> int:
    """The highest number of a parameter among the tokens; 0 if there is none."""
    return max(
        (int(t.text[1:]) for t in tokens if t.kind == "param" and len(t.text) < 7), default=0
    )


@dataclass(frozen=True, slots=True)
class Query:
    """A query, such as a SELECT. The catalog or the service answers it.

    Only the text is kept. The tokens take fifty times as much memory, and are read again when they
    are needed.
    """

    text: str
    highest: int | None = field(default=None, compare=False)
    """The number of its last parameter, if it was found when the statement was read."""

    @property
    def parameters(self) -> int:
        """The number of its parameters."""
        return highest(self.tokens) if self.highest is None else self.highest

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the text, without white space and comments."""
        return tokens_of(self.text)


@dataclass(frozen=True, slots=True)
class Own:
    """SET, RESET and SHOW of dpsql's own settings, and EXPLAIN. The service carries them out."""

    text: str
    returns_rows: bool
    sets: str = ""
    """The setting that SET or RESET changes, in lower case."""
    local: bool = False


@dataclass(frozen=True, slots=True)
class Begin:
    """BEGIN or START TRANSACTION."""

    tag: str = "BEGIN"


@dataclass(frozen=True, slots=True)
class End:
    """The end of a transaction: a commit (a rollback if it has failed), or a rollback."""

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
    """SET of a session variable. The value None stands for its default."""

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
    """DECLARE CURSOR over a query. ``scroll`` is None if neither SCROLL nor NO SCROLL is given."""

    name: str
    query: Query
    hold: bool
    scroll: bool | None


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH or MOVE.

    ``direction`` is forward, backward, absolute or relative. The count None stands for ALL.
    """

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
    """The PREPARE statement of SQL."""

    name: str
    oids: tuple[int, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class ExecutePrepared:
    """The EXECUTE statement of SQL, with constants as values."""

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
    """A command that is accepted without effect, since there is nothing that it could change."""

    tag: str


Command = (
    Query | Own | Begin | End | Savepoint | Release | RollbackTo | Set | Become | Show | Reset | Discard
    | Declare | Fetch | CloseCursor | Prepare | ExecutePrepared | Deallocate | Copy | Nothing
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """A command, and the position at which it begins in the text that the client sent."""

    command: Command
    offset: int = 0
