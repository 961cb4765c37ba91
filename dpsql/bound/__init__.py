"""How statements bound what one unit adds: one strategy a file.

A strategy has the limits that it keeps as fields, says how far one unit moves numbers of rows under
them and why, and makes of the rows of a measurement the query of its exact integers (``apply``). What
that makes of each kind of statistic is in ``bound.sensitivity``, which strategies there are for a
measurement in ``bound.candidates``.
"""

from __future__ import annotations

from typing import get_args

from dpsql.bound.group_caps import GroupCaps
from dpsql.bound.norm_clip import NormClip
from dpsql.bound.one_row import OneRow
from dpsql.bound.prepared_rows import PreparedRows
from dpsql.bound.row_weights import RowWeights
from dpsql.bound.unit_totals import UnitTotals
from dpsql.bound.weights_and_groups import WeightsAndGroups

Bounding = OneRow | RowWeights | UnitTotals | GroupCaps | WeightsAndGroups | NormClip | PreparedRows
"""A strategy with its limits."""
STRATEGIES: tuple[type[Bounding], ...] = get_args(Bounding)
"""Every strategy; what lists them by name takes the names from here."""

__all__ = [
    "STRATEGIES", "Bounding", "GroupCaps", "NormClip", "OneRow", "PreparedRows", "RowWeights",
    "UnitTotals", "WeightsAndGroups",
]  # fmt: skip
