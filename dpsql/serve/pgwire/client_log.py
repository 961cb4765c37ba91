"""Logs comments in front of statements, in which tools name their users (``--log-comments``)."""

from __future__ import annotations

import logging
import re

from dpsql.diagnostics.operation import events

LONGEST = 200
_COMMENT = re.compile(r"\s*+(?:--([^\n]*+)|/\*(.*?)\*/)", re.DOTALL)


def clean(text: str) -> str:
    """One line of bounded length, without control characters for a terminal or a reader of logs.

    >>> clean("Excel\\n2026 ERROR \\x1b[2J")
    'Excel 2026 ERROR  [2J'
    """
    shown = "".join(c if c.isprintable() else " " for c in text[:LONGEST]).strip()
    return f"{shown}.." if len(text) > LONGEST else shown


def comment(text: str) -> str:
    """The comment with which a script begins; empty if there is none.

    >>> comment("/* user 7 */ SELECT 1"), comment("SELECT 1 -- x")
    ('user 7', '')
    """
    found = _COMMENT.match(text[: 10 * LONGEST])
    return "" if found is None else clean((found[1] or found[2] or "").strip())


def record_comment(process: int, text: str) -> None:
    """Record the comment of a script that has arrived, if it has one and comments are logged."""
    if events.log.isEnabledFor(logging.DEBUG) and (said := comment(text)):
        events.record(events.Commented(process, said))
