"""Post-processing over empty tables before anything is paid: a failure then costs nothing.

The statements that the analyst's SQL becomes over released tables depend on the plan alone. Here
they are run over tables with the same columns and no rows. A statement that passes here is not
refused by the post-processor once the answer is paid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from dpsql.diagnostics.refusal import EngineFailed, NotAdmitted
from dpsql.engines.engine import Value
from dpsql.plan.nodes import PublicQuery
from dpsql.price.priced import PricedMeasurement, PricedPlan
from dpsql.release.finish import Finishing
from dpsql.release.lookups import all_known
from dpsql.release.noise import column_noise
from dpsql.release.postprocess import PostProcessor
from dpsql.release.rows import NoisyRows, schema


class Finish(Protocol):
    """The last stage, which turns released tables into the rows of an answer."""

    def __call__(
        self,
        priced: PricedPlan,
        noisy: tuple[NoisyRows, ...],
        tools: Finishing,
        /,
        *,
        intervals: bool,
    ) -> object:
        """As ``release.finish``, with the post-processing that comes before it."""


def dry_run(priced: PricedPlan, postprocessor: PostProcessor, finish: Finish) -> None:
    """Check and bind every statement of post-processing, with intervals; raise if one fails.

    Claim: the outcome depends on the plan alone; no data is read, and nothing is drawn.
    Assumes: the engine binds a statement by its text and the types of its tables.
    Argument: the statements run over tables that have the types of the plan and no rows.
    """
    noisy = tuple(map(_no_rows, priced.parts))
    reader, binder = _NoPublicRows(), _Binder(postprocessor)
    failure: NotAdmitted
    try:
        all_known(priced, noisy, reader, binder).values_of(())
        finish(priced, noisy, Finishing(reader, binder), intervals=True)
    except EngineFailed as failed:
        failure = NotAdmitted(failed.incident)
    else:
        return
    raise failure


def _no_rows(part: PricedMeasurement) -> NoisyRows:
    measurement = part.measurement
    table = schema(measurement.key_fields + measurement.columns).empty_table()
    return NoisyRows(measurement.name, table, column_noise(part))


class _Binder(PostProcessor):
    """Binds the statements that it is asked to run."""

    def __init__(self, postprocessor: PostProcessor) -> None:
        """Bind with ``postprocessor``."""
        self._postprocessor = postprocessor

    def run(
        self, sql: str, tables: Mapping[str, pa.Table], values: Mapping[str, Value] | None = None
    ) -> pa.Table:
        """The empty result of a statement over released tables, with its columns."""
        return self._postprocessor.bind(sql, tables, values)


class _NoPublicRows:
    """Stands in for the engine: gives the columns of public tables, and no row."""

    def read_public(self, query: PublicQuery) -> pa.Table:
        """The columns of the query, without rows."""
        return (schema(query.fields) if query.fields else _NO_COLUMN).empty_table()


_NO_COLUMN = pa.schema([("1", pa.int32())])
"""Rows of which no column is needed are read as one constant each."""
