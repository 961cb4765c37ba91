"""What a search bounds: an amount of each unit, in a norm over the unit's groups."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.bound.found_limits import Amount, Norm


@dataclass(frozen=True, slots=True)
class Size:
    """An ``amount`` of a unit in a ``norm`` over all its groups.

    Where ``by_row``, the absolute values of rows are added up. Otherwise the rows of a group are
    added up first, with their signs.
    """

    amount: Amount
    norm: Norm
    by_row: bool
