"""Keeps comments that set something for one statement together with the statement's query.

They are found where a script is split. This module only tells them from other comments. The service
decides what they may set, and to which values.
"""

from __future__ import annotations

import re
from dataclasses import replace

from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire.errors import BAD_VALUE, WireError

_COMMENT = re.compile(r"--[^\n]*+|/\*(.*?)\*/", re.DOTALL)
_SETS = re.compile(r"\s*dpsql\s*\.", re.IGNORECASE)
_EXPLAIN = "explain"


def setting_comments(gap: str) -> str:
    """The comments between two tokens that set something.

    >>> setting_comments("; -- one\\n /* two */ /* dpsql.epsilon = 0.1 */ ")
    '/* dpsql.epsilon = 0.1 */ '
    """
    found = (m[0] for m in _COMMENT.finditer(gap) if m[1] is not None and _SETS.match(m[1]))
    return "".join(f"{comment} " for comment in found)


def with_comments(command: c.Command, comments: str) -> c.Command:
    """The command with these comments in front of its query. Refused if it has no query."""
    if not comments:
        return command
    if isinstance(command, c.Query):
        return query_with(command, comments)
    if isinstance(command, c.Copy | c.Declare | c.Prepare):
        return replace(command, query=query_with(command.query, comments))
    if isinstance(command, c.Own) and command.text[: len(_EXPLAIN)].lower() == _EXPLAIN:
        return replace(command, text=f"EXPLAIN {comments}{command.text[len(_EXPLAIN) :]}")
    raise WireError(
        BAD_VALUE, "a comment cannot set anything for this statement",
        "It may say what one answer costs, or how exact it is.",
        "Write it in front of a query; in front of the one that is prepared or declared.",
    )  # fmt: skip


def query_with(query: c.Query, comments: str) -> c.Query:
    """The query with these comments in front of it."""
    return replace(query, text=comments + query.text) if comments else query
