"""Columns that an answer takes as they are, and the ones that have to be computed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.services import service

from dpsql.price.priced import PricedPlan
from dpsql.release.picked import pick_columns
from dpsql.release.postprocess import PostProcessor
from dpsql.release.postprocess_sql import write_output
from dpsql.release.rows import schema

SUMS = "SELECT channel, COUNT(amount), SUM(amount) FROM orders GROUP BY channel"
TAKEN = (
    "SELECT country, COUNT(DISTINCT customer_id), SUM(age) FROM customers GROUP BY country",
    (
        "SELECT n AS b, country AS a, n AS c FROM"
        " (SELECT country, COUNT(*) AS n FROM customers GROUP BY 1) AS t"
    ),
    "SELECT city, COUNT(*) FROM customers GROUP BY city",
    SUMS,
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
    mine = pick_columns(priced.plan.output, columns, tables)
    theirs = PostProcessor().run(write_output(priced.plan.output, columns), tables)
    assert mine is not None
    assert mine.to_pydict() == theirs.to_pydict()


@pytest.mark.parametrize("sql", COMPUTED)
def test_what_is_computed_sorted_or_cut_is_left_to_the_engine(sql: str) -> None:
    priced = _plan(sql)
    assert pick_columns(priced.plan.output, priced.plan.columns, _tables(priced)) is None


def test_no_columns_are_left_to_the_engine() -> None:
    priced = _plan(TAKEN[0])
    assert pick_columns(priced.plan.output, (), _tables(priced)) is None


def _numbers(priced: PricedPlan, counts: list[int], totals: list[float]) -> dict[str, pa.Table]:
    (part,) = priced.parts
    target = schema(part.measurement.key_fields + part.measurement.columns)
    values = {
        f.name: totals if pa.types.is_floating(f.type) else
        counts if pa.types.is_integer(f.type) else ["a"] * len(counts)
        for f in target
    }  # fmt: skip
    return {part.measurement.name: pa.table(values, schema=target)}


def test_sums_beside_a_count_are_the_engines_to_the_last_bit() -> None:
    priced = _plan(SUMS)
    counts = [0, -3, 7, 2**53 + 1, 2**62 + 3, 12345]
    totals = [0.1, -7.3e-12, 1e300, 0.3, -(2.0**60) - 2.0**9, 1 / 3]
    tables, columns = _numbers(priced, counts, totals), priced.plan.columns
    mine = pick_columns(priced.plan.output, columns, tables)
    theirs = PostProcessor().run(write_output(priced.plan.output, columns), tables)
    assert mine is not None
    assert [list(map(repr, c.to_pylist())) for c in mine.columns] == [
        list(map(repr, c.to_pylist())) for c in theirs.columns
    ]


def test_what_is_not_finite_is_left_to_the_engine() -> None:
    priced = _plan(SUMS)
    assert (
        pick_columns(priced.plan.output, priced.plan.columns, _numbers(priced, [1], [float("inf")]))
        is None
    )


def test_products_of_what_has_to_be_computed_are_left_to_the_engine() -> None:
    priced = _plan("SELECT country, SQRT(COUNT(*)) * 2.5e0 AS r FROM customers GROUP BY country")
    assert pick_columns(priced.plan.output, priced.plan.columns, _tables(priced)) is None
