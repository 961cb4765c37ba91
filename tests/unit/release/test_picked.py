"""Columns that an answer takes as they are, and the ones that have to be computed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.services import service

from dpsql.plan.priced import PricedPlan
from dpsql.release.picked import picked
from dpsql.release.postprocess import PostProcessor, output_sql
from dpsql.release.rows import schema

TAKEN = (
    "SELECT country, COUNT(DISTINCT customer_id), SUM(age) FROM customers GROUP BY country",
    (
        "SELECT n AS b, country AS a, n AS c FROM"
        " (SELECT country, COUNT(*) AS n FROM customers GROUP BY 1) AS t"
    ),
    "SELECT city, COUNT(*) FROM customers GROUP BY city",
)
COMPUTED = (
    "SELECT country, COUNT(*) + 1 FROM customers GROUP BY country",
    "SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n",
    "SELECT country, COUNT(*) AS n FROM customers GROUP BY country LIMIT 2",
    "SELECT COUNT(*) AS n FROM customers HAVING COUNT(*) > 5",
    "SELECT 1 FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY 1) AS t",
)


def _plan(sql: str) -> PricedPlan:
    return service("oracle", "shop").session().prepare(sql)


def _tables(priced: PricedPlan) -> dict[str, pa.Table]:
    found = {}
    for part in priced.parts:
        target = schema(part.measurement.key_fields + part.measurement.columns)
        values = {
            field.name: pa.array(["b", None, "a"] if pa.types.is_string(field.type) else [3, 1, 2])
            for field in target
        }
        found[part.measurement.name] = pa.table(values).cast(target)
    return found


@pytest.mark.parametrize("sql", TAKEN)
def test_columns_are_taken_as_the_engine_would_return_them(sql: str) -> None:
    priced = _plan(sql)
    tables, columns = _tables(priced), priced.plan.columns
    mine = picked(priced.plan.output, columns, tables)
    theirs = PostProcessor().run(output_sql(priced.plan.output, columns), tables)
    assert mine is not None
    assert mine.to_pydict() == theirs.to_pydict()


@pytest.mark.parametrize("sql", COMPUTED)
def test_what_is_computed_sorted_or_cut_is_left_to_the_engine(sql: str) -> None:
    priced = _plan(sql)
    assert picked(priced.plan.output, priced.plan.columns, _tables(priced)) is None


def test_no_columns_are_left_to_the_engine() -> None:
    priced = _plan(TAKEN[0])
    assert picked(priced.plan.output, (), _tables(priced)) is None
