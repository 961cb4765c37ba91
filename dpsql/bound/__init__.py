"""How statements bound the contribution of one unit: one file for each strategy.

The fields of a strategy are the limits that it enforces. A strategy states how far one unit moves
numbers of rows under these limits, and why. Its ``apply`` turns the rows of a measurement into the
query for the exact integers. ``bound.sensitivity`` derives the sensitivity of each kind of
statistic. ``bound.candidates`` lists the strategies for a measurement.
"""

from __future__ import annotations

from typing import get_args

from dpsql.bound.group_caps import GroupCaps
from dpsql.bound.norm_clip import NormClip
from dpsql.bound.one_row import OneRow
from dpsql.bound.prepared_rows import PreparedRows
from dpsql.bound.row_weights import RowWeights
from dpsql.bound.unit_totals import UnitTotals
from dpsql.bound.vector_clip import VectorClip
from dpsql.bound.weights_and_groups import WeightsAndGroups

Bounding = (
    OneRow
    | RowWeights
    | UnitTotals
    | GroupCaps
    | WeightsAndGroups
    | NormClip
    | VectorClip
    | PreparedRows
)
"""A strategy with its limits."""
STRATEGIES: tuple[type[Bounding], ...] = get_args(Bounding)
"""Every strategy. Lists of strategies by name are made from it."""

__all__ = [
    "STRATEGIES", "Bounding", "GroupCaps", "NormClip", "OneRow", "PreparedRows", "RowWeights",
    "UnitTotals", "VectorClip", "WeightsAndGroups",
]  # fmt: skip
