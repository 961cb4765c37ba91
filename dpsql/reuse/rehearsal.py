"""The cost of a whole dashboard: of each statement, given stored releases and earlier statements.

Nothing is spent and no data is read. The answers of earlier statements are simulated: they have the
groups and the noise of real answers, but no numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.groups import write_groups
from dpsql.ledger.store import Kept, Ledger
from dpsql.price.priced import PricedMeasurement, PricedPlan
from dpsql.price.search import every_search
from dpsql.privacy.cost import Cost
from dpsql.release.noise import column_noise
from dpsql.release.postprocess import PostProcessor
from dpsql.release.rows import NoisyRows, schema
from dpsql.reuse.cached import load_related
from dpsql.reuse.match import match_stored
from dpsql.reuse.merge import merge
from dpsql.reuse.pieces import pieces
from dpsql.reuse.store import Store


@dataclass(frozen=True, slots=True)
class StatementPrice:
    """A statement of a batch: its cost alone, and the part of that cost that is still due."""

    statement: str
    alone: Cost
    due: Cost
    refused: Refused | None = None


@dataclass(slots=True)
class Rehearsal:
    """The store of a ledger, plus the releases that earlier statements would add."""

    ledger: Ledger
    answers_key: str
    postprocessor: PostProcessor
    kept: list[Kept] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)

    def price(self, statement: str, priced: PricedPlan) -> StatementPrice:
        """The price of a plan with its searches; its releases count as stored from now on."""
        plans = (*(search.priced for search in every_search(priced)), priced)
        due = sum(map(self._due, plans), Cost.zero())
        return StatementPrice(statement, priced.price, due)

    def _due(self, priced: PricedPlan) -> Cost:
        wanted = pieces(priced, self.answers_key)
        families = {piece.family for piece in wanted}
        bases = {piece.coarse.base for piece in wanted if piece.coarse is not None}
        mine = [k for k in self.kept if k.key.family in families or k.key.base in bases]
        related = (*load_related(wanted, self.ledger), *mine)
        sources = match_stored(Store(priced, related, self._body, self.postprocessor), wanted)
        measured = [self._rows(part.priced) for part in sources.due.parts]
        for key, body in merge(priced, sources, measured)[1].items():
            self.kept.append(Kept(key, datetime.min.replace(tzinfo=UTC)))
            self.bodies[key.key] = body
        return sources.due.cost

    def _body(self, key: str) -> bytes | None:
        return self.bodies.get(key) or self.ledger.recall(key)

    def _rows(self, part: PricedMeasurement) -> NoisyRows:
        """Rows as a measurement would release them: its public groups, with placeholder values.

        Groups that must pass a threshold are not known, so there are none.
        """
        measurement, cells = part.measurement, part.measurement.cells
        names = schema(measurement.key_fields + measurement.columns)
        groups = pa.table({})
        if cells is not None and measurement.keys:
            listed, tables = cells.beside()
            groups = self.postprocessor.run(write_groups(listed), tables)
        rows = 0 if cells is None else groups.num_rows if measurement.keys else 1
        keys = groups.columns or [pa.nulls(0)] * len(measurement.keys)
        arrays = [k.cast(f.type) for k, f in zip(keys, names, strict=False)]
        arrays += [_values(field.type, rows) for field in list(names)[len(keys) :]]
        table = pa.Table.from_arrays(arrays, schema=names)
        return NoisyRows(measurement.name, table, column_noise(part))


def _values(kind: pa.DataType, rows: int) -> pa.Array:
    """Zeros, which can be added up; NULLs for types without zero."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return pa.array([0] * rows, kind) if number else pa.nulls(rows, kind)


def total_costs(prices: Sequence[StatementPrice]) -> tuple[Cost, Cost]:
    """The cost of all statements if each is asked alone, and if they are asked in order."""
    alone = sum((price.alone for price in prices), Cost.zero())
    return alone, sum((price.due for price in prices), Cost.zero())
