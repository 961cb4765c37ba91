"""Failures that may quote data: their kind for the operator, a number for the analyst."""

from __future__ import annotations

import re
from uuid import uuid4

from dpsql.diagnostics.operation.events import Incident, record
from dpsql.diagnostics.refusal import EngineFailed

_KIND = re.compile(r"[A-Z][A-Za-z ]{2,40}(?=:)")


def record_incident(
    what: str, error: BaseException, sql: str = "", error_type: type[EngineFailed] = EngineFailed
) -> EngineFailed:
    """Record what happened under a new incident and give the constant error to raise.

    Claim: nothing of a row is logged.
    Assumes: what the engine calls the kind of failure stands at the head of its message, and is no value.
    Argument: engines quote values in their messages, so only what they call the kind of failure is kept, and
        the generated statement, which has no data in it.

    Raise it outside the handler of the engine's own error, so that this does not hang on as its
    context.
    """
    incident, kind = uuid4().hex[:8], _KIND.match(str(error))
    said = kind[0] if kind is not None else type(error).__name__
    record(Incident(incident, what, said, sql))
    return error_type(incident)
