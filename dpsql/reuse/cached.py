"""A cache of finished answers made of stored numbers, valid until something related is stored.

Claim: a cached answer is a function of the plan and of released numbers, so reading it again costs
    nothing.
Assumes: stored numbers were noised and paid for.
Argument: an answer is cached with its plan and with the stored releases that it was made of. Once
    other related releases are stored, it is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpsql.ledger.store import Kept, Ledger
from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.price.priced import PricedPlan
from dpsql.release.rows import Release
from dpsql.reuse.pieces import Piece, pieces

MOST_ANSWERS = 256
MOST_ROWS = 10_000
"""Longer answers are not cached."""


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A plan with its pieces, the stored releases related to them, and the answer made of these."""

    priced: PricedPlan
    pieces: tuple[Piece, ...]
    related: tuple[Kept, ...] = ()
    release: Release | None = None

    def with_related(self, ledger: Ledger) -> CachedAnswer:
        """The same with the releases that are stored now; an answer made of others is dropped."""
        related = load_related(self.pieces, ledger)
        same = related == self.related
        return self if same else replace(self, related=related, release=None)

    def without_related(self) -> CachedAnswer:
        """The same as if nothing were stored."""
        return replace(self, related=(), release=None)


class AnswerCache:
    """Cached answers, by plan and by whether they have intervals. Safe for threads."""

    def __init__(self) -> None:
        """An empty cache."""
        self._answers = Cache[tuple[int, bool], CachedAnswer](Use.CACHED_RELEASES, MOST_ANSWERS)

    def load(self, priced: PricedPlan, answers_key: str, *, intervals: bool) -> CachedAnswer:
        """The cached answer of a plan; its related releases may be out of date.

        The pieces of a plan are computed once.
        """
        key = id(priced), intervals
        found = self._answers.get(key)
        if found is None or found.priced is not priced:
            found = CachedAnswer(priced, pieces(priced, answers_key))
            self._answers.put(key, found)
        return found

    def store(self, cached: CachedAnswer, release: Release, *, intervals: bool) -> None:
        """Cache an answer, if it depends on the plan and the related releases alone."""
        priced = cached.priced
        if not priced.plan.publics and release.table.num_rows <= MOST_ROWS:
            self._answers.put((id(priced), intervals), replace(cached, release=release))


def load_related(wanted: Sequence[Piece], ledger: Ledger) -> tuple[Kept, ...]:
    """The stored releases of these pieces, and those that may be added up to them."""
    bases = [piece.coarse.base for piece in wanted if piece.coarse is not None]
    return ledger.related_releases([piece.family for piece in wanted], bases)
