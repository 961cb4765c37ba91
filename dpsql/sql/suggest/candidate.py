"""A statement that may be answered instead of one that is not."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.sql.parse import Source

MEND, CHANGE, LEAVE_OUT, SUMMARIZE, LOOK_UP = 1, 2, 4, 7, 12
"""How far a candidate is from the statement: written rightly; with a change that a rule proposes; without a
part of it; its rows counted or averaged; a question about what may be asked."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text, how far it is from the statement that was refused, and what is said about it."""

    text: str
    distance: int
    notes: tuple[str, ...] = ()
    loses: bool = False
    """Whether a part of the statement was left out that no rule proposed to change."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed tree, not written yet."""

    tree: exp.Expr
    distance: int
    notes: tuple[str, ...] = ()
    loses: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A refused statement as it was written, with its tree: what a repair looks at."""

    source: Source
    tree: exp.Expr

    def copy(self) -> exp.Expr:
        """The tree, to be changed."""
        return self.tree.copy()
