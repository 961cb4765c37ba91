"""Places in the text of a statement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """The half-open character range ``[start, end)`` of a statement."""

    start: int
    end: int

    def cover(self, other: Span) -> Span:
        """The smallest span that holds both.

        >>> Span(3, 5).cover(Span(9, 12))
        Span(start=3, end=12)
        """
        return Span(min(self.start, other.start), max(self.end, other.end))

    def line_and_column(self, text: str) -> tuple[int, int]:
        """One-based line and column of the first character.

        >>> Span(9, 10).line_and_column("SELECT 1\\nFROM t")
        (2, 1)
        """
        before = text[: self.start]
        return before.count("\n") + 1, self.start - (before.rfind("\n") + 1) + 1
