"""Refusals and the other errors that dpsql raises.

A refusal depends on the SQL text, the policy and the ledger, never on rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.quote import LINE, LINES, STATEMENT, cut_lines, line
from dpsql.diagnostics.quote import place as named
from dpsql.diagnostics.render import refusal_text
from dpsql.diagnostics.span import Span


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason not to answer.

    ``headline`` can be understood alone, as many BI tools show nothing else. ``why`` says what one
    person could do or reveal. ``instead`` is SQL to paste, or names who can change what. ``edits``
    are changes that may lead to such SQL, the nearest one first. Each changed statement is tried
    before it is shown.
    """

    code: str
    headline: str
    why: str
    instead: str = ""
    span: Span | None = None
    edits: tuple[Edit, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the code is listed, and cut what is quoted of a statement."""
        assert self.code in CODES, self.code
        most = {"headline": LINE, "why": STATEMENT, "instead": STATEMENT}
        for name, length in most.items():
            object.__setattr__(self, name, line(getattr(self, name), length))


class Error(Exception):
    """The root of the errors that dpsql raises (PEP 249)."""


class InterfaceError(Error):
    """The interface was misused, for example a closed cursor (PEP 249)."""


class DatabaseError(Error):
    """Anything that concerns the database (PEP 249)."""


class OperationalError(DatabaseError):
    """Something outside the analyst's control failed: engine, ledger, disk (PEP 249)."""


class ProgrammingError(DatabaseError):
    """The statement cannot be answered as written (PEP 249)."""


class NotSupportedError(DatabaseError):
    """A PEP 249 feature that dpsql does not have, such as transactions."""


class Refused(ProgrammingError):
    """A statement was refused. The refusal reveals nothing about the data."""

    def __init__(self, *refusals: Refusal, text: str = "") -> None:
        """Keep the first ``LINES`` refusals in text order; properties are those of the first."""
        assert refusals
        place = [(r.span.start if r.span else -1, i) for i, r in enumerate(refusals)]
        self.refusals = tuple(refusals[i] for _, i in sorted(place)[:LINES])
        self.text = text
        super().__init__(f"{self.code}: {self.headline}")

    def __str__(self) -> str:
        """All refusals as text for people, so that a printed error says what to do."""
        return refusal_text(self)

    @property
    def first(self) -> Refusal:
        """The refusal that comes first in the text."""
        return self.refusals[0]

    @property
    def code(self) -> str:
        """The code of the first refusal."""
        return self.first.code

    @property
    def headline(self) -> str:
        """The headline of the first refusal."""
        return self.first.headline

    @property
    def why(self) -> str:
        """The reason of the first refusal."""
        return self.first.why

    @property
    def instead(self) -> str:
        """The suggestion of the first refusal: what to write instead."""
        return self.first.instead

    @property
    def position(self) -> int | None:
        """One-based character position in the statement, as PostgreSQL reports it."""
        return self.first.span.start + 1 if self.first.span else None

    @property
    def sqlstate(self) -> str:
        """The SQLSTATE that drivers see."""
        return CODES[self.code].sqlstate

    def within(self, text: str) -> Refused:
        """The same refusals with the text of the statement, unless they have it already."""
        return type(self)(*self.refusals, text=self.text or text)


class OutOfBudget(Refused):
    """The ledger has too little left; nothing was spent and no data was read."""


class EngineFailed(OperationalError):
    """The engine failed. The operator's log has an event of it under ``incident``."""

    def __init__(self, incident: str) -> None:
        """Say the same thing for every cause."""
        self.incident = incident
        super().__init__(
            f"DP901: the engine could not finish this query (incident {incident}); "
            "its own message may quote data and is not shown; the operator's log has the kind of failure"
        )

    code = "DP901"
    sqlstate = CODES["DP901"].sqlstate


class NotAdmitted(EngineFailed):
    """The second check rejected a statement that dpsql generated; nothing was charged."""

    def __init__(self, incident: str) -> None:
        """The rejection depends on the query and the policy alone, so the message names it."""
        self.incident = incident
        OperationalError.__init__(
            self,
            f"DP901: dpsql's second check stopped this query before it ran (incident {incident}); "
            "this is a defect of dpsql, and nothing was charged: show the operator this line",
        )


class Ended(OperationalError):
    """A statement was ended early, by its deadline, by the client, or by a bound on memory.

    Before anything is charged, this error depends on time and on public information only. After a
    charge it is raised only once the release is stored; until then every failure is an
    ``EngineFailed``.
    """

    code: str
    headline: str
    instead: str

    def __init__(self, *, stored: bool = False) -> None:
        """``stored``: the release that the ledger was charged for is stored."""
        self.why = "What was released is stored: asking again is free." if stored else ""
        said = f"{self.code}: {self.headline}. {self.instead}"
        super().__init__(f"{said} {self.why}" if stored else said)

    @property
    def sqlstate(self) -> str:
        """The SQLSTATE that drivers see."""
        return CODES[self.code].sqlstate

    def with_release(self) -> Ended:
        """The same error, saying that the release is stored."""
        return type(self)(stored=True)


class Stopped(Ended):
    """The deadline of a statement has passed, or it was interrupted."""

    code = "DP904"
    headline = "the statement was interrupted, or took longer than it may"
    instead = "Ask for less; the owner sets limits.timeout_seconds and statement_seconds."


class TooLarge(Ended):
    """An answer, or a step on the way to it, takes more memory than it may."""

    code = "DP905"
    headline = "the answer, or a step on the way to it, takes more memory than it may"
    instead = "Ask for fewer rows or columns, with LIMIT or WHERE; the owner sets endpoint.memory."


class LedgerFailed(OperationalError):
    """The ledger cannot be read or written, so nothing is answered.

    Claim: clients learn what is wrong, but neither the place nor the content of the ledger.
    Assumes: the wire protocols show clients only ``client_headline`` and ``client_instead``;
        ``headline`` and ``instead`` are for terminals and the log.
    Argument: ``wrong`` is a literal in the code, never assembled
        (``tests/wire/test_wire_ledger_places.py``), and those two fields contain nothing else.
    """

    code = "DP902"
    sqlstate = CODES["DP902"].sqlstate
    client_instead = "Ask again later. If it fails again, tell the operator, whose log says which ledger it is and what to do."

    def __init__(
        self, wrong: str, instead: str = "", *,
        place: object = None, detail: str = "", subject: str = "the ledger",
    ) -> None:  # fmt: skip
        """``wrong`` is for everybody. ``place``, ``detail`` and ``instead`` are for operators."""
        where = "" if place is None else f" {named(place)}"
        self.headline = line(f"{subject}{where} {wrong}" + (f": {detail}" if detail else ""))
        self.client_headline = line(f"{subject} {wrong}")
        self.instead = line(instead)
        super().__init__(f"{self.code}: {self.headline}" + (f"; {self.instead}" if instead else ""))


class PolicyError(Error):
    """A policy cannot be used. The error has every problem found, each with its place."""

    def __init__(self, *problems: str) -> None:
        """``problems`` are lines of the form ``file:line:column: what; write this``."""
        self.problems = cut_lines(problems)
        super().__init__("\n".join(self.problems))


class SourceMismatch(PolicyError):
    """The policy is valid, but the data source does not match it."""


class DataBreaksPolicy(SourceMismatch):
    """The data breaks a declaration of the policy. Nothing is answered under that policy.

    The message is the same for every policy and all data. Numbers are for the owner's terminal
    (``engines.findings``), never for an error, which may be logged or shown to an analyst.
    """

    code = "DP604"
    sqlstate = CODES["DP604"].sqlstate

    def __init__(self) -> None:
        """Say the same thing for every cause."""
        super().__init__(
            "DP604: the data does not keep what the policy declares of it, so no question is answered;"
            " the data's owner learns more from `dpsql check`"
        )


class DataChanged(SourceMismatch):
    """The data changed while its version did not, and the policy says ``stale: refuse``.

    The message names the policy and the version, and nothing of the data.
    """

    code = "DP605"
    sqlstate = CODES["DP605"].sqlstate

    def __init__(self, policy: str, version: str) -> None:
        """``policy`` is the name of its file."""
        super().__init__(
            f'DP605: {named(policy)}: the data changed while data_version stayed "{version}", and the policy'
            " says `stale: refuse`, so no question is answered; the data's owner runs"
            f" `dpsql refresh {named(policy)}`"
        )
