"""What a process says with its exit code."""

from __future__ import annotations

from dpsql.diagnostics.quote import line

ANSWERED, FAILED, USAGE, REFUSED, BUDGET = 0, 1, 2, 3, 4


class Usage(Exception):
    """Something was typed that no command takes; the text says what to type instead."""

    def __init__(self, text: str) -> None:
        """What was typed is cut where it is long."""
        super().__init__(line(text))
