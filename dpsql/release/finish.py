"""From released tables to the rows of an answer, with intervals where they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.price.priced import PricedPlan
from dpsql.release import intervals as ends
from dpsql.release.hidden_values import hidden_note
from dpsql.release.interval_calls import compute_interval_calls
from dpsql.release.lookups import Reader, all_known
from dpsql.release.picked import pick_columns
from dpsql.release.postprocess import PostProcessor, cast_columns
from dpsql.release.postprocess_sql import write_output
from dpsql.release.rows import NoisyRows, OutputColumn, Release


@dataclass(frozen=True, slots=True)
class Finishing:
    """The tools of post-processing: a reader of public tables, and an empty engine."""

    reader: Reader
    postprocessor: PostProcessor


def finish(
    priced: PricedPlan, noisy: tuple[NoisyRows, ...], tools: Finishing, *, intervals: bool
) -> Release:
    """Run the analyst's own SQL over released tables and public rows.

    Claim: the result depends on released tables and public rows only, so it costs nothing.
    Assumes: ``noisy`` was noised and paid for.
    Argument: the function gets nothing else, and reads only public rows from the engine.
    """
    known = all_known(priced, noisy, tools.reader, tools.postprocessor)
    outputs = priced.plan.columns
    noises = ends.noises(priced, noisy)
    relation = compute_interval_calls(priced.plan.output, noises, known.tables, known.run)
    wanted = ends.find_simulated_columns(priced, noises) if intervals else []
    if wanted:
        name = ends.table_of(relation)
        known.tables[name] = ends.simulate(noises, wanted, known.tables[name], known.run)
        relation = ends.carry_columns(relation, wanted)
    helpers = tuple(c for w in wanted for c in (w.low, w.high))
    result = pick_columns(relation, outputs + helpers, known.tables)
    if result is None:
        result = known.run(write_output(relation, outputs + helpers))
    table = cast_columns(result, outputs + helpers)
    columns = tuple(OutputColumn(c.name, c.shape.kind, c.shape.type_name) for c in outputs)
    values = [column.shown(table.column(i)) for i, column in enumerate(columns)]
    shown = pa.Table.from_arrays(values, names=table.column_names[: len(columns)])
    direct = ends.widths(priced, outputs, noises) if intervals else {}
    found = _intervals(direct, len(outputs), table, wanted)
    return Release(columns, shown, found, hidden_note(known, shown))


def _intervals(
    direct: Mapping[int, float], outputs: int, table: pa.Table, wanted: list[ends.Simulated]
) -> dict[int, tuple[pa.Array, pa.Array]]:
    """Both ends of each interval. A value that is NULL has none."""
    found: dict[int, tuple[pa.Array, pa.Array]] = {}
    for i, width in direct.items():
        values = table.column(i).combine_chunks().to_numpy(zero_copy_only=False).astype(np.float64)
        found[i] = pa.array(values - width), pa.array(values + width)
    for position, item in enumerate(wanted):
        at = outputs + 2 * position
        there = pc.is_valid(table.column(item.position))
        low, high = (
            pc.if_else(there, table.column(i), None).combine_chunks() for i in (at, at + 1)
        )
        found[item.position] = low, high
    return found
