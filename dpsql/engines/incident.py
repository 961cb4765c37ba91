"""Failures whose messages may quote data. The operator gets their kind, the analyst a number."""

from __future__ import annotations

import re
from uuid import uuid4

from dpsql.diagnostics.operation.events import Incident, record
from dpsql.diagnostics.refusal import EngineFailed

_KIND = re.compile(r"[A-Z][A-Za-z ]{2,40}(?=:)")


def record_incident(
    what: str, error: BaseException, sql: str = "", error_type: type[EngineFailed] = EngineFailed
) -> EngineFailed:
    """Record a failure under a new incident number, and return the constant error to raise.

    Claim: nothing of a row is logged.
    Assumes: the engine's name for the kind of a failure is at the start of its message, and is no
        value.
    Argument: engines quote values in their messages. So only the kind of the failure is kept, and
        the generated statement, which contains no data.

    Raise it outside the handler of the engine's own error, so that this error is not kept as its
    context.
    """
    incident, kind = uuid4().hex[:8], _KIND.match(str(error))
    said = kind[0] if kind is not None else type(error).__name__
    record(Incident(incident, what, said, sql))
    return error_type(incident)
