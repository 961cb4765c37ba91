"""What is computed of decimals is what decimals of SQL give, digit by digit."""

from __future__ import annotations

import random  # noqa: TID251 (which statements are asked)
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from support.corpus import unlimited
from support.datasets import in_memory
from support.services import service

import dpsql
from dpsql.service import plain

_NUMBERS = ("price", "price", "size", "0.07", "1.1", "3", "0.5")
_KINDS = ("{} + {}", "{} - {}", "COALESCE({}, {})", "GREATEST({}, {})", "LEAST({}, {})", "{} * {}")

_FORMS = ("{}", "FLOOR({})", "CEIL({})", "CAST({} AS bigint)", "ROUND({}, 1)")


def _expression(source: random.Random, depth: int) -> str:
    if depth == 0:
        return source.choice(_NUMBERS)
    parts = [_expression(source, depth - 1) for _ in range(2)]
    kinds = _KINDS if depth == 1 else _KINDS[:-1]  # products of products have too many digits
    return f"({source.choice(kinds).format(*parts)})"


@pytest.mark.parametrize("seed", range(12))
def test_computed_decimals_are_those_of_plain_sql(seed: int) -> None:
    """Compared as values, after rounding up and down, and as whole numbers."""
    source = random.Random(seed)
    values = [_expression(source, 1 + i % 2) for i in range(8)]
    shown = [source.choice(_FORMS).format(value) + f" AS c{i}" for i, value in enumerate(values)]
    sql = f"SELECT {', '.join(shown)} FROM articles ORDER BY article"
    found = plain.python_rows(service("types", "types", unlimited).session().execute(sql))
    wanted = in_memory("types").execute(sql).fetchall()
    pairs = [
        (a, b)
        for one, other in zip(found, wanted, strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    assert [(float(a), float(b)) for a, b in pairs if float(a) != float(b)] == []


_WIDE = """\
source: {engine: duckdb, path: data.duckdb}
data_version: "1"
units: {person: {key: u}}
tables:
  t:
    unit: person
    max_rows_per_unit: 1
    columns: {u: {type: bigint}, x: {type: "decimal(38, 10)", range: [0, 8]}}
  p: {public: true}
accounts: {dataset: {epsilon: 1e9}}
roles: {analyst: {session: {epsilon: 1e9}, query: {epsilon: 1e7}}}
"""
_COMPUTED = (
    "x + 1", "x - 3", "x * 2", "x % 3", "MOD(x, 2)", "x * x", "x % 2.5", "(x + x) * (x - 1)", "ABS(x - 3)",
    "ROUND(x + 0.25, 1)", "x * 0.12345678901234567",
)  # fmt: skip


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wide")
    with duckdb.connect(str(folder / "data.duckdb")) as engine:
        engine.execute(
            "CREATE TABLE t AS SELECT u, u % 8 + CAST(0.5 AS DECIMAL(38, 10)) AS x FROM range(40) AS r(u)"
        )
        engine.execute("CREATE TABLE p AS FROM t")
    (folder / "policy.yaml").write_text(_WIDE)
    return folder


@pytest.mark.parametrize("value", _COMPUTED)
@pytest.mark.parametrize("table", ["t", "p"])
def test_decimals_of_more_digits_than_doubles_have_keep_what_is_behind_the_point(
    wide: Path, table: str, value: str
) -> None:
    """Of these nobody knows how many digits there are: they were rounded to whole numbers once."""
    sql = f"SELECT SUM({value}) AS n FROM {table}"
    with duckdb.connect(str(wide / "data.duckdb"), read_only=True) as engine:
        wanted = engine.execute(sql).fetchall()
    with closing(dpsql.connect(wide / "policy.yaml")) as connection:
        [(found,)] = connection.execute(sql).fetchall()
    assert float(found) == pytest.approx(float(wanted[0][0]), abs=0.01)
