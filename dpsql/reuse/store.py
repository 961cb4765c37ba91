"""What is kept of earlier answers, looked through for one plan."""

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
    """``related`` releases; ``recall`` reads one by its key, None if it was removed meanwhile."""

    priced: PricedPlan
    related: Sequence[Kept]
    recall: Callable[[str], bytes | None]
    postprocessor: PostProcessor

    def of_family(self, piece: Piece) -> list[Kept]:
        """Releases that ask the same, those with the least noise first."""
        return _least_noise_first(k for k in self.related if k.key.family == piece.family)

    def of_base(self, base: str, but: str) -> list[Kept]:
        """Releases that may be added up, of another family than ``but``; those with the least noise first."""
        return _least_noise_first(
            k for k in self.related if k.key.base == base and k.key.family != but
        )

    def tables(self, kept: Kept) -> tuple[StoredTable, ...]:
        """What was released; nothing if it was removed meanwhile."""
        body = self.recall(kept.key.key)
        return () if body is None else from_bytes(body)


def _least_noise_first(found: Iterable[Kept]) -> list[Kept]:
    return sorted(dict.fromkeys(found), key=lambda kept: sum(kept.key.noise))
