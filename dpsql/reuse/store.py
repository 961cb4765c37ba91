"""The stored releases that are related to one plan, and how to find and read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpsql.ledger.store import Kept
from dpsql.price.priced import PricedPlan
from dpsql.release.postprocess import PostProcessor
from dpsql.reuse.encoding import StoredTable, from_bytes
from dpsql.reuse.pieces import Piece


@dataclass(frozen=True, slots=True)
class Store:
    """The ``related`` releases; ``recall`` reads one by key, None if it was removed meanwhile."""

    priced: PricedPlan
    related: Sequence[Kept]
    recall: Callable[[str], bytes | None]
    postprocessor: PostProcessor

    def of_family(self, piece: Piece) -> list[Kept]:
        """Releases of the same question, those with the least noise first."""
        return _least_noise_first(k for k in self.related if k.key.family == piece.family)

    def of_base(self, base: str, but: str) -> list[Kept]:
        """Releases that may be added up, except those of family ``but``; least noise first."""
        return _least_noise_first(
            k for k in self.related if k.key.base == base and k.key.family != but
        )

    def tables(self, kept: Kept) -> tuple[StoredTable, ...]:
        """The tables of a release; none if it was removed meanwhile."""
        body = self.recall(kept.key.key)
        return () if body is None else from_bytes(body)


def _least_noise_first(found: Iterable[Kept]) -> list[Kept]:
    return sorted(dict.fromkeys(found), key=lambda kept: sum(kept.key.noise))
