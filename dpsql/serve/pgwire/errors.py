"""What goes wrong, as the fields of an error message."""

from __future__ import annotations

import logging
import secrets

from dpsql.diagnostics.quote import STATEMENT, line, listed
from dpsql.diagnostics.refusal import EngineFailed, LedgerFailed, Refused

log = logging.getLogger("dpsql.operator")
"""What went wrong inside may quote data: it is for the operator."""

PROTOCOL, SYNTAX, UNSUPPORTED = "08P01", "42601", "0A000"
BAD_TEXT, BAD_BINARY, BAD_ENCODING, BAD_VALUE = "22P02", "22P03", "22021", "22023"
NO_STATEMENT, NO_CURSOR, NO_SAVEPOINT = "26000", "34000", "3B001"
DUPLICATE_STATEMENT, DUPLICATE_CURSOR = "42P05", "42P03"
ABORTED, NO_TRANSACTION, CANCELED = "25P02", "25P01", "57014"
PRIVILEGE, NO_SETTING, NO_FUNCTION = "42501", "42704", "42883"
PASSWORD, AUTHORIZATION, TOO_MANY = "28P01", "28000", "53300"
LIMIT, NO_DATABASE = "54000", "3D000"
ENDED = "57P01"
NO_COLUMN, NO_RELATION, NO_SCHEMA = "42703", "42P01", "3F000"
"""A session was ended by its own role: the one code that drivers may take as a reason to reconnect."""


class WireError(Exception):
    """An error with its SQLSTATE and fields, cut. ``position`` counts characters from one."""

    def __init__(
        self, sqlstate: str, message: str, detail: str = "", hint: str = "",
        position: int | None = None,
    ) -> None:  # fmt: skip
        """Hold the fields."""
        self.sqlstate, self.message = sqlstate, line(message)
        self.detail, self.hint = (
            "\n".join(listed(detail.split("\n"), STATEMENT)),
            line(hint, STATEMENT),
        )
        self.position = position
        super().__init__(self.message)


class Fatal(WireError):
    """An error after which the connection is closed."""


def wire_error(error: BaseException, offset: int = 0) -> WireError:
    """Any exception as what a client is told. Nothing of it depends on a row."""
    if isinstance(error, WireError):
        return error
    if isinstance(error, Refused):
        position = None if error.position is None else error.position + offset
        return WireError(
            error.sqlstate, f"{error.code}: {error.headline}", _why(error), error.instead, position
        )
    if isinstance(error, EngineFailed):
        return WireError(error.sqlstate, str(error))
    if isinstance(error, LedgerFailed):
        return WireError(error.sqlstate, f"{error.code}: {error.headline}", "", error.instead)
    incident = secrets.token_hex(4)
    log.error("incident %s", incident, exc_info=error)
    return WireError("XX000", f"DP903: a defect in dpsql (incident {incident})")


def _why(refused: Refused) -> str:
    """Why, and what else is wrong with the statement."""
    others = [r for r in refused.refusals if r is not refused.first]
    return "\n".join([refused.why, *(f"Also {r.code}: {r.headline}. {r.why}" for r in others)])
