"""Which source each piece of an answer has, and what is still due.

Claim: whatever is taken from the store was released before, so using it again costs nothing; what
    is left is priced by ``measured``. Which is which follows from statement, policy and the store's
    released contents, never from a private row.
Assumes: equal pieces have equal exact numbers (``reuse.canonical``), and data changes only with
    ``data_version``.
Argument: stored numbers are recalled as they are, added up, or averaged with new ones: all of it
    post-processing. Public groups are the same for equal questions, in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpsql.execution import check
from dpsql.price.priced import Noise, PricedPlan
from dpsql.reuse.measured import Due, Measured, price_due
from dpsql.reuse.pieces import Piece
from dpsql.reuse.refined import find_refined, pair_halves
from dpsql.reuse.source import PieceSource
from dpsql.reuse.store import Store
from dpsql.reuse.stored import find_stored
from dpsql.reuse.summed import find_summed

FINDERS: tuple[Callable[[Store, Piece], PieceSource | None], ...] = (
    find_stored,
    find_summed,
    find_refined,
)
"""The first that finds something gives the source of a piece; where none does, it is measured."""


@dataclass(frozen=True, slots=True)
class AnswerSources:
    """Where each piece of an answer comes from, and what is still due."""

    pieces: tuple[PieceSource, ...]
    due: Due


def match_stored(store: Store, pieces: Sequence[Piece]) -> AnswerSources:
    """Sources for the pieces of a plan, of no less accuracy than the plan says."""
    found = pair_halves(store.priced, [_source(store, piece) for piece in pieces])
    return _with_due(store.priced, found)


def match_nothing(priced: PricedPlan, pieces: Sequence[Piece]) -> AnswerSources:
    """All pieces measured, by the statements of the plan."""
    return _with_due(priced, tuple(map(Measured, pieces)))


def _source(store: Store, piece: Piece) -> PieceSource:
    check()
    for find in FINDERS:
        found = find(store, piece)
        if found is not None:
            return found
    return Measured(piece)


def _with_due(priced: PricedPlan, sources: tuple[PieceSource, ...]) -> AnswerSources:
    wanted: dict[tuple[int, int], Noise | None] = {}
    for source in sources:
        wanted |= source.measures()
    return AnswerSources(sources, price_due(priced, wanted))
