"""The exit codes of the command line."""

from __future__ import annotations

from dpsql.diagnostics.quote import line

ANSWERED, FAILED, USAGE, REFUSED, BUDGET = 0, 1, 2, 3, 4


class Usage(Exception):
    """Arguments that no command accepts; the text says what to type instead."""

    def __init__(self, text: str) -> None:
        """A long text is cut."""
        super().__init__(line(text))
