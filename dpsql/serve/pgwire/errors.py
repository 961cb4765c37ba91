"""Errors as the fields of PostgreSQL's error messages."""

from __future__ import annotations

import re

from dpsql.diagnostics.operation.defects import defect
from dpsql.diagnostics.operation.events import LedgerUnusable, record
from dpsql.diagnostics.quote import STATEMENT, cut_lines, line
from dpsql.diagnostics.refusal import Ended, EngineFailed, LedgerFailed, Refused
from dpsql.memory.pool import Full

PROTOCOL, SYNTAX, UNSUPPORTED = "08P01", "42601", "0A000"
BAD_TEXT, BAD_BINARY, BAD_ENCODING, BAD_VALUE = "22P02", "22P03", "22021", "22023"
NO_STATEMENT, NO_CURSOR, NO_SAVEPOINT = "26000", "34000", "3B001"
DUPLICATE_STATEMENT, DUPLICATE_CURSOR = "42P05", "42P03"
ABORTED, NO_TRANSACTION, CANCELED = "25P02", "25P01", "57014"
PRIVILEGE, NO_SETTING, NO_FUNCTION = "42501", "42704", "42883"
PASSWORD, AUTHORIZATION, TOO_MANY = "28P01", "28000", "53300"
LIMIT, NO_DATABASE, NO_MEMORY = "54000", "3D000", "53200"
NO_COLUMN, NO_RELATION, NO_SCHEMA = "42703", "42P01", "3F000"
STOPPING = "57P03"
ENDED = "57P01"
"""The session was ended by its own role. Only this code tells drivers that they may reconnect."""


_OWN_CODE = re.compile(r"DP[0-9]{3}(?=:)")


class WireError(Exception):
    """An error with its SQLSTATE and fields, which are cut to a bounded length.

    ``position`` counts characters from one.
    """

    def __init__(
        self, sqlstate: str, message: str, detail: str = "", hint: str = "",
        position: int | None = None,
    ) -> None:  # fmt: skip
        """Cut the fields, and keep them."""
        self.sqlstate, self.message = sqlstate, line(message)
        self.detail, self.hint = (
            "\n".join(cut_lines(detail.split("\n"), STATEMENT)),
            line(hint, STATEMENT),
        )
        self.position = position
        super().__init__(self.message)

    @property
    def code(self) -> str:
        """The DP code if the error is dpsql's own; else the SQLSTATE."""
        found = _OWN_CODE.match(self.message)
        return self.sqlstate if found is None else found[0]


class Fatal(WireError):
    """An error after which the connection is closed."""


def wire_error(error: BaseException, offset: int = 0) -> WireError:
    """The error that a client gets for an exception. Nothing in it depends on a row."""
    if isinstance(error, WireError):
        return error
    if isinstance(error, Refused):
        position = None if error.position is None else error.position + offset
        return WireError(
            error.sqlstate, f"{error.code}: {error.headline}", _why(error), error.instead, position
        )
    if isinstance(error, EngineFailed):
        return WireError(error.sqlstate, str(error))
    if isinstance(error, Ended):
        said = f"{error.code}: {error.headline}"
        return WireError(error.sqlstate, said, error.why, error.instead)
    if isinstance(error, LedgerFailed):
        record(LedgerUnusable(error.headline, error.instead))
        said = f"{error.code}: {error.client_headline}"
        return WireError(error.sqlstate, said, "", error.client_instead)
    if isinstance(error, Full):
        return no_memory(error)
    return WireError("XX000", f"DP903: a defect in dpsql (incident {defect(error)})")


def no_memory(error: Full, hint: str = "") -> WireError:
    """The error for a client for which the pool has no memory."""
    return WireError(
        NO_MEMORY, f"out of memory: dpsql has no room for {error.size} bytes of {error.use.value}",
        "What clients hold at one time shares a part of `endpoint.memory`, one login's at most half of it.",
        hint or "Close cursors and prepared statements that are not needed, or try again later.",
    )  # fmt: skip


def _why(refused: Refused) -> str:
    """The reason of the first refusal, and the other refusals of the statement."""
    others = [r for r in refused.refusals if r is not refused.first]
    return "\n".join([refused.why, *(f"Also {r.code}: {r.headline}. {r.why}" for r in others)])
