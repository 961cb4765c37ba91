"""A database that lay where that of a world lies now: units had more rows there, or fewer."""

from __future__ import annotations

from collections.abc import Sequence

from tests.adversary.dice import Dice
from tests.adversary.model import Row

GONE, LEFT_OUT = 20, 30
"""Units in a hundred that only one of the two databases has; rows in a hundred, of units in both."""


def before(
    rows: Sequence[Row], dice: Dice, *, one: bool, tame: bool
) -> tuple[list[Row], list[Row]]:
    """The rows that are there now, and those that were there earlier.

    One of the two has all rows, and more often the earlier one. The other lacks some units, and some
    rows of others, or all but one where that is declared (``one``). A tame one lacks only whole units.
    """
    owners = dict.fromkeys(row.owner for row in rows if row.owner is not None)
    gone = {owner for owner in owners if dice.chance(GONE)}
    kept, seen = list[Row](), set[tuple[str, str]]()
    for row in rows:
        if row.owner is None:
            kept.append(row)
            continue
        first = (row.table, row.owner) not in seen
        seen.add((row.table, row.owner))
        fewer = not tame and not first and (one or dice.chance(LEFT_OUT))
        if row.owner not in gone and not fewer:
            kept.append(row)
    return (kept, list(rows)) if dice.chance(75) else (list(rows), kept)
