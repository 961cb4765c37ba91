"""Finds the source of each piece of an answer, and the measurements that are still due.

Claim: numbers from the store were released before, so using them again costs nothing. The rest is
    priced by ``measured``. Which source a piece has depends on the statement, the policy and the
    released contents of the store, never on a private row.
Assumes: equal pieces have equal exact numbers (``reuse.canonical``), and data changes only with
    ``data_version``.
Argument: stored numbers are recalled unchanged, added up, or averaged with new ones; all of this is
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
"""They are tried in this order; a piece for which none finds a source is measured."""


@dataclass(frozen=True, slots=True)
class AnswerSources:
    """The source of each piece of an answer, and the measurements that are still due."""

    pieces: tuple[PieceSource, ...]
    due: Due


def match_stored(store: Store, pieces: Sequence[Piece]) -> AnswerSources:
    """Sources for the pieces of a plan, none less accurate than the plan demands."""
    found = pair_halves(store.priced, [_source(store, piece) for piece in pieces])
    return _with_due(store.priced, found)


def match_nothing(priced: PricedPlan, pieces: Sequence[Piece]) -> AnswerSources:
    """Sources where every piece is measured, by the statements of the plan."""
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
