"""A new kind of source is one file and one place in ``match.FINDERS``: shown with a synopsis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
import pytest
from support.services import FreeLedger, service

from dpsql.catalog.statistic import Rows
from dpsql.privacy.mechanisms import DiscreteLaplace
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, NoiseTerm
from dpsql.release.rows import ColumnNoise
from dpsql.reuse import match
from dpsql.reuse.pieces import Piece
from dpsql.reuse.source import Columns, Wanted
from dpsql.reuse.store import Store

COUNT = "SELECT COUNT(*) FROM orders"
BOTH = "SELECT COUNT(*) AS n, SUM(amount) AS s FROM orders"
LAW = NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(2))),), whole=True)


@dataclass(frozen=True, slots=True)
class Synopsis:
    """A number that was published before."""

    piece: Piece

    def measures(self) -> Wanted:
        return {}

    def merge(self, _: Sequence[Columns], /) -> tuple[Columns, ...]:
        return (Columns(pa.table({"n": [4_321]}), (ColumnNoise((LAW,)),)),)

    def recall_key(self) -> None:
        """It is published already."""

    def explain(self, names: str) -> str:
        return f"from a synopsis: {names}; it costs nothing"


def find_synopsis(store: Store, piece: Piece) -> Synopsis | None:
    """The numbers of rows of all groups together."""
    measurement = store.priced.parts[piece.slots[0].part].measurement
    [position] = piece.slots[0].columns
    counted = isinstance(measurement.statistics[position], Rows) and not measurement.keys
    return Synopsis(piece) if counted else None


def test_another_kind_of_source_is_used_by_whatever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "FINDERS", (*match.FINDERS, find_synopsis))
    here = service("shop", "shop")
    assert isinstance(here.ledger, FreeLedger)
    session = here.session("analyst")
    assert "from a synopsis: m0." in session.explain(COUNT)
    reply = session.execute(COUNT, intervals=True)
    assert reply.table.column(0).to_pylist() == [4_321]
    assert reply.recalled
    assert reply.cost.epsilon == 0
    [low], [high] = (end.to_pylist() for end in reply.intervals[0])
    assert (low, high) == (4_321 - LAW.half_width(), 4_321 + LAW.half_width())
    assert here.ledger.charges == []
    whole = session.prepare(BOTH).cost
    reply = session.execute(BOTH)
    assert reply.table.column("o0").to_pylist() == [4_321]
    assert 0 < reply.cost.epsilon < whole.epsilon
    assert len(here.ledger.kept) == 1, "what is measured is stored, and what is published is not"
    [price] = session.price([COUNT])
    assert price.due.epsilon == 0
