"""Candidates: statements that may be answered instead of a refused one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.sql.parse import Source

MEND, CHANGE, LEAVE_OUT, SUMMARIZE, LOOK_UP = 1, 2, 4, 7, 12
"""Distances of a candidate from the statement, by the kind of change.

``MEND``: the same statement, spelled correctly. ``CHANGE``: a change that a rule proposes.
``LEAVE_OUT``: a part is left out. ``SUMMARIZE``: rows are counted or averaged. ``LOOK_UP``: a query
of the tables and columns that may be asked about.
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text, its distance from the refused statement, and notes on the changes."""

    text: str
    distance: int
    notes: tuple[str, ...] = ()
    loses: bool = False
    """Whether a part of the statement was left out that no rule proposed to change."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed tree that is not yet written as text."""

    tree: exp.Expr
    distance: int
    notes: tuple[str, ...] = ()
    loses: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A refused statement as it was written, with its tree."""

    source: Source
    tree: exp.Expr

    def copy(self) -> exp.Expr:
        """A copy of the tree that may be changed."""
        return self.tree.copy()
