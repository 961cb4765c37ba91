"""Failures that may quote data: the words for the operator, a number for the analyst."""

from __future__ import annotations

import logging
from uuid import uuid4

from dpsql.diagnostics.refusal import EngineFailed

log = logging.getLogger("dpsql.operator")
"""The operator's log. Engine messages may quote rows, so nothing of it is shown to analysts."""
log.addHandler(logging.NullHandler())  # without it, Python writes to standard error by default


def failed(what: str, words: str) -> EngineFailed:
    """Log what happened under a new incident and give the constant error to raise.

    Raise it outside the handler of the engine's own error, so that this does not hang on as its
    context.
    """
    incident = uuid4().hex[:8]
    log.error("incident %s: could not %s: %s", incident, what, words)
    return EngineFailed(incident)
