"""Numbers of one answer that are sums of others: the levels of grouping sets, totals beside groups.

Claim: the exact number of each group of a coarser level is the sum of the finest ones that ``how``
    takes there, where rows have declared values.
Argument: see ``reuse.pieces.Coarse.from_finer``. Levels that clip a unit are left out: what is
    clipped in a total need not be what is clipped in its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsql.plan.priced import PricedPlan
from dpsql.reuse.pieces import Finer, Piece, clips, pieces


@dataclass(frozen=True, slots=True)
class Level:
    """A statistic by its measurement and position, and how finest groups lead to its own."""

    part: int
    column: int
    how: Finer


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A statistic of the finest groups, and of coarser ones."""

    part: int
    column: int
    coarser: tuple[Level, ...]


def hierarchies(priced: PricedPlan) -> Iterator[Hierarchy]:
    """For each statistic the finest level that others add up from, if there is one."""
    if len(priced.parts) < 2:
        return
    found = [
        piece
        for piece in pieces(priced, "")
        if piece.coarse is not None and not clips(priced.parts[piece.slots[0].part])
    ]
    for base in dict.fromkeys(piece.base for piece in found if piece.base):
        options = (_over(piece, found) for piece in found if piece.base == base)
        most = max(options, key=lambda option: len(option.coarser))
        if most.coarser:
            yield most


def _over(finest: Piece, found: Sequence[Piece]) -> Hierarchy:
    levels = []
    for piece in found:
        if piece is finest or piece.coarse is None or piece.coarse.base != finest.base:
            continue
        how = piece.coarse.from_finer(finest.about, declared=True)
        if how is not None:
            levels.append(Level(*_place(piece), how))
    return Hierarchy(*_place(finest), tuple(levels))


def _place(piece: Piece) -> tuple[int, int]:
    [slot] = piece.slots
    [column] = slot.columns
    return slot.part, column
