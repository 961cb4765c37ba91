"""What clients say of themselves. It is logged for the operator, and nothing is decided by it."""

from __future__ import annotations

import logging
import re

log = logging.getLogger("dpsql.operator.clients")
"""Log-ins at level INFO, comments before statements at level DEBUG: tools send one with each."""
LONGEST = 200
_COMMENT = re.compile(r"\s*+(?:--([^\n]*+)|/\*(.*?)\*/)", re.DOTALL)


def cleaned(text: str) -> str:
    """On one line, not too long, and without what a terminal or a reader of logs would obey.

    >>> cleaned("Excel\\n2026 ERROR \\x1b[2J")
    'Excel 2026 ERROR  [2J'
    """
    shown = "".join(c if c.isprintable() else " " for c in text[:LONGEST]).strip()
    return f"{shown}.." if len(text) > LONGEST else shown


def comment(text: str) -> str:
    """What a script begins with, before its first statement.

    >>> comment("/* user 7 */ SELECT 1"), comment("SELECT 1 -- x")
    ('user 7', '')
    """
    found = _COMMENT.match(text[: 10 * LONGEST])
    return "" if found is None else cleaned((found[1] or found[2] or "").strip())


def entered(process: int, role: str, database: str, application: str) -> None:
    """Someone has logged in."""
    log.info(
        'connection %d: "%s" of "%s" entered, application "%s"',
        process, cleaned(role), cleaned(database), cleaned(application),
    )  # fmt: skip


def remarked(process: int, text: str) -> None:
    """A script has come."""
    if log.isEnabledFor(logging.DEBUG) and (said := comment(text)):
        log.debug('connection %d: comment "%s"', process, said)
