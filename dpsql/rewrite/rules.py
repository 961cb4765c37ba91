"""The rewrites of a statement, in the order in which they are applied.

Each rewrite is a function from draft to draft, in a file of its name that states its claim and
argument. It has a golden file of its name in ``fixtures/rewrites``. A rule that has nothing to do
returns the draft unchanged.
"""

from __future__ import annotations

from collections.abc import Callable

from dpsql.rewrite.draft import Draft
from dpsql.rewrite.drop_unit_path import drop_unit_path
from dpsql.rewrite.late_unit_join import late_unit_join
from dpsql.rewrite.prepared_copy import prepared_copy
from dpsql.rewrite.rank_prefilter import rank_prefilter
from dpsql.rewrite.share_rows import share_rows
from dpsql.rewrite.shortcut import shortcut
from dpsql.rewrite.strict_timing import strict_timing

Rule = Callable[[Draft], Draft]
RULES: tuple[Rule, ...] = (
    strict_timing, prepared_copy, drop_unit_path, late_unit_join, share_rows, rank_prefilter, shortcut,
)  # fmt: skip


def apply_rules(draft: Draft) -> Draft:
    """The draft after all rules are applied."""
    for rule in RULES:
        draft = rule(draft)
    return draft
