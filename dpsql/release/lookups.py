"""Subqueries whose results are constants by the time they are used.

Claim: a looked-up value is a function of released tables and public rows, so a statement that
    uses it may be measured as if the analyst had typed the value after reading the answer.
Assumes: the tables of the lookup were noised and paid for before.
Argument: subqueries are computed by the post-processor, which holds nothing but released tables and
    public rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

import pyarrow as pa

from dpsql.catalog.statistic import Quantile
from dpsql.engines.duckdb.parameters import parameters
from dpsql.engines.engine import Value
from dpsql.plan.empty_groups import least_units
from dpsql.plan.nodes import HiddenRank, Lookup, Measurement, PublicQuery, UnitCount
from dpsql.plan.noise_alone import Hidden, noise_width
from dpsql.price.priced import Chosen, PricedPlan
from dpsql.release.postprocess import PostProcessor
from dpsql.release.postprocess_sql import write_output
from dpsql.release.rows import ColumnNoise, NoisyRows


@dataclass(slots=True)
class Known:
    """The public results of one query so far: tables by name, and looked-up values."""

    priced: PricedPlan
    postprocessor: PostProcessor
    tables: dict[str, pa.Table]
    released: int = 0
    values: dict[str, Value] = field(default_factory=dict)
    noises: dict[str, tuple[ColumnNoise | None, ...]] = field(default_factory=dict)

    def add(self, rows: NoisyRows) -> None:
        """Add a released measurement."""
        self.tables[rows.name] = rows.table
        self.noises[rows.name] = rows.noise
        self.released += 1

    def values_of(self, names: Collection[str]) -> Mapping[str, Value]:
        """The values of parameters; lookups whose measurements are released are computed now."""
        for lookup in self.priced.plan.lookups:
            if lookup.name not in self.values and lookup.after <= self.released:
                self.values[lookup.name] = self._look_up(lookup)
        return self._used(names)

    def read_public(self, query: PublicQuery) -> pa.Table:
        """Public rows that were read before."""
        return self.tables[query.name]

    def run(self, sql: str, extra: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """Run a statement over the tables that are public so far."""
        tables = {**self.tables, **(extra or {})}
        return self.postprocessor.run(sql, tables, self.values_of(parameters(sql)))

    def _used(self, asked: Collection[str]) -> Mapping[str, Value]:
        """The values of the parameters that are known."""
        found = {name: value for name, value in self.values.items() if name in asked}
        for measurement in self.priced.plan.measurements:
            count = measurement.unit_count
            if count is not None and count.least in asked:
                found[count.least] = self._least(measurement, count)
            for hidden in measurement.hidden:
                if hidden.width in asked:
                    found[hidden.width] = self.noise_of(measurement, hidden)
        return found

    def noise_of(self, measurement: Measurement, hidden: Hidden) -> float:
        """The width of the noise that may decide a value; where rows differ, that of the widest."""
        if isinstance(hidden, HiddenRank):
            return self._ranks(measurement, hidden.value)
        noises = self.noises[measurement.name]
        total, count = noises[hidden.total], noises[hidden.count]
        assert total is not None, "totals are noised"
        assert count is not None, "counts are noised"
        return noise_width(hidden, total.deviation(), count.deviation())

    def _ranks(self, measurement: Measurement, position: int) -> float:
        """The number of rows of a group up to which a chosen rank may be any."""
        parts = {part.measurement.name: part for part in self.priced.parts}
        item = parts[measurement.name].noised[position]
        assert isinstance(item, Chosen)
        assert isinstance(item.statistic, Quantile)
        return item.half_width / float(item.statistic.steepness)

    def _least(self, measurement: Measurement, count: UnitCount) -> int:
        """The least number of units with which a released group takes part, given its noise."""
        noise = self.noises[measurement.name][count.position]
        assert noise is not None, "numbers of units are noised"
        return least_units(measurement, noise.laws)

    def _look_up(self, lookup: Lookup) -> Value:
        columns = () if lookup.column is None else (lookup.column,)
        sql = write_output(
            lookup.relation, lookup.relation.fields if lookup.form == "rows" else columns
        )
        table = self.postprocessor.run(sql, self.tables, self._used(parameters(sql)))
        if lookup.form == "exists":
            return bool(table.num_rows > 0)
        if lookup.form == "rows":
            return cast(Value, table.to_pylist())
        found = table.column(0).to_pylist()
        if lookup.form == "scalar":
            return cast(Value, found[0]) if found else None
        return cast(Value, found)


class Reader(Protocol):
    """Reads public rows, from an engine or from its stand-in."""

    def read_public(self, query: PublicQuery) -> pa.Table:
        """The rows, with the fields of the query as columns."""


def read_public_tables(priced: PricedPlan, reader: Reader, postprocessor: PostProcessor) -> Known:
    """The state before any release: only the public rows that the query reads."""
    tables = {public.name: reader.read_public(public) for public in priced.plan.publics}
    return Known(priced, postprocessor, tables)


def all_known(
    priced: PricedPlan, noisy: Iterable[NoisyRows], reader: Reader, postprocessor: PostProcessor
) -> Known:
    """The state after all releases."""
    stage = read_public_tables(priced, reader, postprocessor)
    for rows in noisy:
        stage.add(rows)
    return stage
