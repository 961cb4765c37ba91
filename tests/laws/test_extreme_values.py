"""Values beyond their bounds, infinities and NaN have one meaning, whatever they stand beside.

Each answer equals plain SQL over a table in which every value is the nearest within its bounds, where
NaN is above all other numbers.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import duckdb
import pytest
from support.answers import difference, rows
from support.datasets import folder
from support.services import FreeLedger, Seeded, noon

from dpsql.engines.duckdb import copies
from dpsql.policy.load import load
from dpsql.service import Service, Session

POLICY = """
source: {{engine: duckdb, path: data.duckdb}}
data_version: "1"
units: {{person: {{table: person, key: id}}}}
tables:
  person:
    unit: person
    columns:
      id: {{type: bigint}}
      kind: {{type: text, values: [a, b]}}
      x: {{type: double, range: [0, 250], nullable: true}}
      y: {{type: real, range: [-20, 10], nullable: true}}
      n: {{type: integer, range: [0, 9], nullable: true}}
  visit:
    unit: person
    foreign_keys: [{{columns: [pid], references: person}}]
    key: vid
    max_rows_per_unit: 4
    columns:
      vid: {{type: bigint}}
      pid: {{type: bigint}}
      kind: {{type: text, values: [a, b]}}
      x: {{type: double, range: [0, 250], nullable: true}}
      y: {{type: real, range: [-20, 10], nullable: true}}
      n: {{type: integer, range: [0, 9], nullable: true}}
accounts: {{dataset: {{epsilon: 1000000000, delta: 0.1}}}}
roles: {{analyst: {{epsilon: 1000000000, delta: 0.1, query: {{epsilon: 1000000000, delta: 1e-6}}}}}}
strict_timing: {strict}
"""
XS = (
    "'NaN'",
    "-('NaN'::DOUBLE)",
    "'inf'",
    "'-inf'",
    "1e300",
    "-5",
    "251",
    "NULL",
    "0",
    "-0.0",
    "17.25",
    "250",
)
YS = ("'NaN'", "3.5", "'-inf'", "NULL", "-20", "'inf'", "11", "10", "-21")
NS = ("NULL", "3", "-4", "9", "120")
SERVED = {"plainly": {}, "strictly": {"strict": "on"}, "from copies": {"prepared": True}}


def script() -> str:
    parts = [
        "CREATE TABLE person (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE, y FLOAT, n INTEGER)",
        "CREATE TABLE visit (vid BIGINT PRIMARY KEY, pid BIGINT, kind TEXT, x DOUBLE, y FLOAT, n INTEGER)",
    ]
    for i in range(len(XS) * len(YS)):
        row = f"'{'ab'[i % 2]}', {XS[i % len(XS)]}, {YS[i % len(YS)]}, {NS[i % len(NS)]}"
        parts.append(f"INSERT INTO person VALUES ({i}, {row})")
        parts.append(f"INSERT INTO visit VALUES ({i}, {i // 3}, {row})")
    return ";".join(parts)


@functools.cache
def data() -> Path:
    path = folder() / "extreme values.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(script())
    return path


def opened(*, strict: str = "off", prepared: bool = False) -> Session:
    home = Path(tempfile.mkdtemp(dir=folder()))
    shutil.copyfile(data(), home / "data.duckdb")
    path = home / "policy.yaml"
    path.write_text(POLICY.format(strict=strict))
    if prepared:
        copies.prepare(load(path), ["person", "visit"])
    found = Service.open(path, clock=noon)
    found.ledger.close()
    service = Service(found.policy, found._engine, FreeLedger(), clock=noon, entropy=Seeded(1))
    return service.session()


@functools.cache
def plain() -> duckdb.DuckDBPyConnection:
    """The tables with every value as it counts."""
    connection = duckdb.connect(str(data()), read_only=True)
    bounds = {"x": (0, 250), "y": (-20, 10), "n": (0, 9)}
    changed = ", ".join(
        f"CASE WHEN {c} IS NOT NULL THEN least(greatest({c}, {low}), {high}) END AS {c}"
        for c, (low, high) in bounds.items()
    )
    for table in ("person", "visit"):
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT * REPLACE ({changed}) FROM data.main.{table}".replace(
                "data.main", f'"{data().stem}".main'
            )
        )
    return connection


QUESTIONS = (
    "SELECT SUM(x) FROM {}", "SELECT SUM(x), COUNT(x) FROM {}", "SELECT SUM(x), COUNT(*) FROM {}",
    "SELECT SUM(x), AVG(x), COUNT(x), SUM(y), AVG(y) FROM {}", "SELECT AVG(x), AVG(y), AVG(n), SUM(n) FROM {}",
    "SELECT VAR_POP(x), STDDEV_SAMP(y), VAR_SAMP(n) FROM {}",
    "SELECT COVAR_POP(x, y), CORR(x, y), COVAR_SAMP(n, y) FROM {}",
    "SELECT REGR_SLOPE(x, y), REGR_INTERCEPT(x, y), REGR_R2(x, y), REGR_COUNT(x, y) FROM {}",
    "SELECT kind, SUM(x), SUM(n) FROM {} GROUP BY kind", "SELECT kind, SUM(y), COUNT(y), AVG(x) FROM {} GROUP BY kind",
    "SELECT SUM(x) FILTER (WHERE n > 2), AVG(y) FILTER (WHERE n > 2) FROM {}",
)  # fmt: skip


@pytest.mark.parametrize("table", ["person", "visit"])
@pytest.mark.parametrize("how", SERVED)
def test_values_beyond_their_bounds_count_as_the_nearest(how: str, table: str) -> None:
    session = opened(**SERVED[how])  # type: ignore[arg-type]
    for question in QUESTIONS:
        sql = question.format(table)
        session.execute("SET dpsql.fresh = on")
        found = rows(session.execute(sql).table)
        wanted = plain().execute(sql).fetchall()
        assert difference(found, wanted) == ([], []), sql


@pytest.mark.parametrize(
    "question",
    [
        "SELECT MAX(x), MEDIAN(x), QUANTILE_DISC(x, 0.8) FROM person",
        "SELECT kind, QUANTILE_CONT(x, 0.9), MIN(y) FROM visit GROUP BY kind",
    ],
)
def test_ranks_are_those_of_values_within_their_bounds(question: str) -> None:
    """As of a query that writes the bounds out: NaN is above all, and so the upper one."""
    written = question.replace("(x", "(LEAST(GREATEST(x, 0), 250)").replace(
        "(y", "(LEAST(GREATEST(y, -20), 10)"
    )
    where = " WHERE x IS NOT NULL AND y IS NOT NULL"  # LEAST and GREATEST pass over NULL
    cut = question.find(" GROUP BY") if "GROUP BY" in question else len(question)
    asked = question[:cut] + where + question[cut:]
    bounded = written[: cut - len(question)] if cut < len(question) else written
    grouped = question[cut:]
    one, other = (rows(opened().execute(sql).table) for sql in (asked, bounded + where + grouped))
    for mine, theirs in zip(sorted(one), sorted(other), strict=True):
        assert all(a == b or abs(a - b) < 0.1 for a, b in zip(mine, theirs, strict=True))  # type: ignore[operator]


def test_roots_of_nan_are_nan_as_other_functions_have_it() -> None:
    session = opened()
    for function in ("sqrt(x)", "ln(x)", "exp(x)", "abs(x)", "power(x, 0.5)", "round(x)"):
        sql = f"SELECT COUNT(*) FROM person WHERE x > 1e299 AND {function} > 1e299"
        assert rows(session.execute(sql).table) == plain_rows(sql), function
    sql = "SELECT COUNT(sqrt(x)) FROM person"
    assert rows(session.execute(sql).table) == plain_rows(
        "SELECT count(*) FROM person WHERE x >= 0"
    )


def plain_rows(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(data()), read_only=True) as connection:
        return connection.execute(sql).fetchall()


BEYOND = (
    ("SELECT round(x), COUNT(x) FROM person GROUP BY round(x)", "SELECT COUNT(x) FROM person"),
    ("SELECT n, COUNT(*) FROM person GROUP BY n", "SELECT COUNT(*) FROM person"),
    ("SELECT n, COUNT(*) FROM visit GROUP BY n", "SELECT COUNT(*) FROM visit WHERE n > 2"),
    ("SELECT n, kind, COUNT(*) FROM person GROUP BY n, kind", "SELECT kind, COUNT(*) FROM person GROUP BY kind"),
    ("SELECT n, COUNT(*) FROM person GROUP BY n", "SELECT n > 3, COUNT(*) FROM person WHERE n IS NOT NULL GROUP BY 1"),
)  # fmt: skip
"""Groups that hold not all rows, and a question that is about others too."""
WITHIN = (
    ("SELECT n, COUNT(*) FROM person GROUP BY n", "SELECT COUNT(*) FROM person WHERE n BETWEEN 2 AND 5"),
    ("SELECT n, COUNT(*) FROM person GROUP BY n", "SELECT COUNT(*) FROM person WHERE n = 3"),
    ("SELECT n, COUNT(*) FROM person WHERE n BETWEEN 2 AND 5 GROUP BY n", "SELECT COUNT(*) FROM person WHERE n BETWEEN 2 AND 5"),
    ("SELECT n, kind, COUNT(*) FROM person GROUP BY n, kind", "SELECT n, COUNT(*) FROM person GROUP BY n"),
)  # fmt: skip


@pytest.mark.parametrize(("finer", "coarser"), BEYOND)
def test_rows_in_no_stored_group_are_in_totals(finer: str, coarser: str) -> None:
    session = opened()
    session.execute(finer)
    found = session.execute(coarser)
    assert not found.recalled
    assert listed(found.table) == plain_groups(coarser)


@pytest.mark.parametrize(("finer", "coarser"), WITHIN)
def test_stored_groups_that_hold_all_rows_are_added_up(finer: str, coarser: str) -> None:
    session = opened()
    session.execute(finer)
    found = session.execute(coarser)
    assert found.recalled
    assert listed(found.table) == plain_groups(coarser)


@pytest.mark.parametrize("key", ["round(x)", "n", "sign(n)"])
def test_rows_in_no_group_are_in_the_total_of_a_rollup(key: str) -> None:
    sql = f"SELECT {key} AS k, COUNT(*) AS c FROM person GROUP BY ROLLUP ({key})"
    [[everybody]] = plain_rows("SELECT COUNT(*) FROM person")
    assert max(count for _, count in rows(opened().execute(sql).table)) == everybody  # type: ignore[type-var]


def listed(table: object) -> list[tuple[object, ...]]:
    return sorted(filter(lambda row: row[-1], rows(table)), key=repr)  # type: ignore[arg-type]


def plain_groups(sql: str) -> list[tuple[object, ...]]:
    """As plain SQL has it, of groups that are listed."""
    found = plain_rows(sql)
    return sorted((r for r in found if len(r) == 1 or r[0] not in (-4, 120)), key=repr)
