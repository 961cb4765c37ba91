"""95 % intervals: exact quantiles of the noise for a column that is itself noised, else simulation.

Values chosen by rank have no interval, since the difference in value between two ranks is not
public. Intervals describe noise alone; they do not include the effect of clamping and caps, which
the policy sets. They are computed from released values and public noise laws, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.execution import check
from dpsql.ir.expressions import Call, Column, Expression, Shape, alias, columns, walk
from dpsql.ir.relations import Filter, Limit, Project, Relation, Sort, Stored, Windowed
from dpsql.plan.interval_functions import NAMES, trace_to_table
from dpsql.policy.types import Kind
from dpsql.price.priced import Chosen, PricedPlan
from dpsql.privacy.entropy import Randomness, Repeatable
from dpsql.release.noise import column_noise
from dpsql.release.postprocess_sql import write_intervals
from dpsql.release.rows import ARROW, ColumnNoise, NoisyRows

DRAWS = 400
MOST_DRAWS = 4_000_000
"""The most simulated values in all; large answers get fewer draws per row, but at least 100."""
DRAWS_AT_ONCE = 200_000
"""The most simulated values held at one time: rows are simulated one part after the other."""

Runner = Callable[[str, Mapping[str, pa.Table]], pa.Table]


@dataclass(frozen=True, slots=True)
class Simulated:
    """An output column whose interval is simulated: its position and its two helper columns."""

    position: int
    value: Expression
    low: Column
    high: Column


@dataclass(frozen=True, slots=True)
class Noises:
    """The noise of each released column, by column number."""

    by_number: Mapping[int, ColumnNoise]

    def of(self, node: Expression) -> list[Column]:
        """The noised columns that an expression uses."""
        return [c for c in columns(node) if c.number in self.by_number]


def noises(priced: PricedPlan, released: Sequence[NoisyRows] = ()) -> Noises:
    """The noise of every released column; chosen values have none.

    For ``released`` rows it is the noise that they have, which may be less than that of the plan.
    """
    actual = {rows.name: rows.noise for rows in released}
    found: dict[int, ColumnNoise] = {}
    for part in priced.parts:
        measurement = part.measurement
        noised = actual.get(measurement.name, column_noise(part))
        for column, noise in zip(measurement.columns, noised, strict=True):
            if noise is not None:
                found[column.number] = noise
    return Noises(found)


def _chosen(priced: PricedPlan) -> set[int]:
    """Columns whose error is in rank, not in value; outputs that use them have no interval."""
    return {
        column.number
        for part in priced.parts
        for column, item in zip(part.measurement.columns, part.noised, strict=True)
        if isinstance(item, Chosen)
    }


def sources(relation: Relation, outputs: tuple[Column, ...]) -> list[Expression | None]:
    """Each output as an expression over released columns; None where rows were combined."""
    found = [trace_to_table(relation, output) for output in outputs]
    return [None if each is None else each[0] for each in found]


def table_of(relation: Relation) -> str:
    """The released table whose rows an output of ``sources`` is computed from."""
    while not isinstance(relation, Stored):
        assert isinstance(relation, Limit | Sort | Filter | Project | Windowed)
        relation = relation.input
    return relation.name


def widths(
    priced: PricedPlan, outputs: tuple[Column, ...], known: Noises | None = None
) -> dict[int, float]:
    """Half widths of outputs that are unchanged released columns with the same noise in all rows.

    Other columns go through ``simulate``.
    """
    noised = (known or noises(priced)).by_number
    found: dict[int, float] = {}
    for i, source in enumerate(direct(priced.plan.output, outputs)):
        noise = None if source is None else noised.get(source.number)
        if noise is not None and noise.even:
            found[i] = noise.half_width()
    return found


def direct(relation: Relation, outputs: tuple[Column, ...]) -> list[Column | None]:
    """For each output, the released column whose values it has unchanged; None if there is none."""
    definitions: dict[int, Expression] = {}
    stack = [relation]
    while stack:
        current = stack.pop()
        if isinstance(current, Project):
            for column, value in zip(current.fields, current.values, strict=True):
                if not isinstance(value, Column) or value.number != column.number:
                    definitions[column.number] = value
        if isinstance(current, Limit | Sort | Filter | Project | Windowed):
            stack.append(current.input)
    found: list[Column | None] = []
    for output in outputs:
        source: Expression = output
        while isinstance(source, Column) and source.number in definitions:
            source = definitions[source.number]
        found.append(source if isinstance(source, Column) else None)
    return found


def find_simulated_columns(priced: PricedPlan, known: Noises | None = None) -> list[Simulated]:
    """The outputs that need simulation: those computed row by row from released columns."""
    known, without = known or noises(priced), _chosen(priced)
    outputs = priced.plan.columns
    plain = widths(priced, outputs, known)
    found: list[Simulated] = []
    for i, value in enumerate(sources(priced.plan.output, outputs)):
        if value is None or i in plain or not known.of(value) or not value.shape.kind.numeric:
            continue
        if any(c.number in without for c in columns(value)) or _asks(value):
            continue
        shape = Shape(Kind.DOUBLE)
        low, high = Column(-2 * i - 2, "low", shape), Column(-2 * i - 3, "high", shape)
        found.append(Simulated(i, value, low, high))
    return found


def _asks(value: Expression) -> bool:
    """Whether the expression itself contains ends of intervals."""
    return any(isinstance(part, Call) and part.function in NAMES for part in walk(value))


def simulate(known: Noises, wanted: list[Simulated], table: pa.Table, run: Runner) -> pa.Table:
    """The released table with two more columns for each wanted output.

    Noise is drawn many times around the released values of each row. The ends are the 2.5 % and
    97.5 % quantiles of the outputs computed from these draws. An unchanged released column needs no
    draws: its noise, which may differ from row to row, has exact widths. The draws are determined
    by the released table, so that a stored answer has the same intervals wherever it is shown.
    """
    rows, exact = table.num_rows, [w for w in wanted if isinstance(w.value, Column)]
    for item in exact:
        assert isinstance(item.value, Column)
        values = _numbers(table.column(alias(item.value)))
        width = known.by_number[item.value.number].half_widths(rows)
        table = _extended(table, [item], [values - width, values + width])
    wanted = [w for w in wanted if w not in exact]
    if not wanted:
        return table
    numbers = (_numbers(table.column(alias(c))) for c in _drawn(known, wanted, table))
    randomness = Repeatable(b"".join(values.tobytes() for values in numbers))
    draws = max(100, min(DRAWS, MOST_DRAWS // max(1, rows)))
    at_once = DRAWS_AT_ONCE // draws
    parts = [
        _simulated(
            known,
            wanted,
            table,
            np.arange(start, min(rows, start + at_once)),
            draws,
            randomness,
            run,
        )
        for start in range(0, max(1, rows), at_once)
    ]
    ends = [np.concatenate(each) for each in zip(*parts, strict=True)]
    return _extended(table, wanted, ends)


def _simulated(
    known: Noises, wanted: list[Simulated], table: pa.Table, rows: npt.NDArray[np.int64],
    draws: int, randomness: Randomness, run: Runner,
) -> list[npt.NDArray[np.float64]]:  # fmt: skip
    """Both ends of each wanted output, for the given rows."""
    check()
    row = np.repeat(rows, draws)
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {"row": pa.array(row)}
    for position, name in enumerate(table.column_names):
        arrays[name] = table.column(position).take(pa.array(row))
    for column in _drawn(known, wanted, table):
        drawn = known.by_number[column.number].sample(randomness, row)
        arrays[alias(column)] = _moved(arrays[alias(column)], drawn, column)
    result = run(write_intervals([w.value for w in wanted]), {"draws": pa.table(arrays)})
    return [np.asarray(c.to_numpy(zero_copy_only=False), dtype=float) for c in result.columns]


def _drawn(known: Noises, wanted: list[Simulated], table: pa.Table) -> list[Column]:
    """The released columns around which noise is drawn, in the order of the table."""
    found = {alias(c): c for w in wanted for c in known.of(w.value)}
    return [found[name] for name in table.column_names if name in found]


def _moved(
    released: pa.Array | pa.ChunkedArray, noise: npt.NDArray[np.float64], column: Column
) -> pa.Array:
    total = _numbers(released) + noise
    if column.shape.kind is Kind.INTEGER:
        total = np.round(total)
    return pa.array(total).cast(ARROW[column.shape.kind], safe=False)


def _numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _extended(
    table: pa.Table, wanted: list[Simulated], ends: list[npt.NDArray[np.float64]]
) -> pa.Table:
    for i, item in enumerate(wanted):
        for j, column in enumerate((item.low, item.high)):
            table = table.append_column(alias(column), pa.array(ends[2 * i + j], from_pandas=True))
    return table


def carry_columns(relation: Relation, wanted: list[Simulated]) -> Relation:
    """The output relation, with the helper columns passed through."""
    extra = tuple(c for w in wanted for c in (w.low, w.high))
    if isinstance(relation, Stored):
        return replace(relation, fields=relation.fields + extra)
    assert isinstance(relation, Limit | Sort | Filter | Project | Windowed)
    below = carry_columns(relation.input, wanted)
    if isinstance(relation, Windowed):
        made = relation.fields[len(relation.input.fields) :]
        return replace(relation, input=below, fields=below.fields + made)
    if isinstance(relation, Project):
        return replace(
            relation, input=below, values=relation.values + extra, fields=relation.fields + extra
        )
    return replace(relation, input=below, fields=relation.fields + extra)
