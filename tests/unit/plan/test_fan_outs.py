"""How many rows of a public table share a value: looked up with the data, and counted in what noise hides."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from support.corpus import WORLDS
from support.datasets import in_memory
from support.measured import opened, plan_of
from support.services import policy_file

from dpsql.checks import unit_joins
from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.ir.statements import Query
from dpsql.reuse.pieces import pieces
from dpsql.service import Service

SSB = WORLDS["ssb"]
NEIGHBOURS = "SELECT COUNT(*) FROM customer JOIN cities ON c_nation = nation"
SUPPLIED = "SELECT COUNT(*) FROM lineorder JOIN supplier ON lo_suppkey = s_suppkey"


def test_every_column_of_a_public_table_has_what_its_rows_share() -> None:
    plain, tables = in_memory("ssb"), opened(SSB).policy.tables
    for table in tables.values():
        assert bool(table.fan_outs) == table.public
        for columns, most in table.fan_outs.items():
            names = ", ".join(columns)
            (wanted,) = plain.execute(
                f"SELECT max(n) FROM (SELECT count(*) AS n FROM {table.name} GROUP BY {names})"
            ).fetchone() or (0,)
            assert most == wanted, (table.name, columns)
    assert tables["cities"].fan_outs["city", "nation", "region"] == 1, (
        "what a foreign key refers to"
    )


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (SUPPLIED, 100),
        (NEIGHBOURS, 10),
        ("SELECT COUNT(*) FROM customer JOIN cities ON c_nation = nation AND c_city = city", 1),
        ("SELECT COUNT(*) FROM customer JOIN (SELECT * FROM cities WHERE region = 'ASIA') AS k ON c_nation = nation", 10),
        ("SELECT COUNT(*) FROM customer LEFT JOIN cities ON c_region = region", 50),
        ("SELECT COUNT(*) FROM customer, cities AS a, cities AS b WHERE b.region = a.region AND a.city = c_city", 50),
        ("SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM cities WHERE c_region = region)", 1),
    ],
)  # fmt: skip
def test_a_join_multiplies_what_a_unit_has(sql: str, rows: int) -> None:
    """With several public rows for each, noise hides that many more, and answers stay those of SQL."""
    (measurement,) = plan_of(sql, SSB).measurements
    assert measurement.privacy.max_rows == rows
    found = opened(SSB).session().execute(sql).table.to_pylist()
    assert [tuple(row.values()) for row in found] == in_memory("ssb").execute(sql).fetchall()


def test_noise_grows_with_the_fan_out() -> None:
    session = opened(SSB).session()
    session.execute("SET dpsql.epsilon = 1")
    one, ten = (
        session.prepare(sql).parts[0].noised[0].standard_deviation
        for sql in ("SELECT COUNT(*) FROM customer JOIN cities ON c_city = city", NEIGHBOURS)
    )
    assert ten > 9 * one


def test_one_person_changes_no_more_than_the_fan_out() -> None:
    """Neighbouring tables: each customer in turn is removed."""
    plain = in_memory("ssb")
    per_unit = plain.execute(
        NEIGHBOURS.replace("COUNT(*)", "c_custkey, COUNT(*)") + " GROUP BY 1"
    ).fetchall()
    (measurement,) = plan_of(NEIGHBOURS, SSB).measurements
    assert max(n for _, n in per_unit) == measurement.privacy.max_rows


@pytest.mark.parametrize(
    ("sql", "headline"),
    [
        ("SELECT COUNT(*) FROM customer JOIN cities ON c_city = lower(city)", "nothing bounds"),
        ("SELECT COUNT(*) FROM customer JOIN cities ON c_city > city", "nothing bounds"),
        ("SELECT COUNT(*) FROM lineorder JOIN date ON lo_linenumber = d_year", "36600 rows"),
    ],
)
def test_what_is_not_bounded_or_too_much_is_refused(
    sql: str, headline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_joins, "MOST_JOINED_ROWS", 36_599)
    with pytest.raises(Refused, match=headline) as refused:
        plan_of(sql, SSB)
    assert refused.value.code == "DP304"


def _changed(change: str) -> Path:
    path = policy_file("ssb", "ssb")
    with duckdb.connect(str(path.parent / "ssb.duckdb")) as connection:
        connection.execute(change)
    return path


def test_another_public_table_is_another_bound_and_another_answer() -> None:
    """One more supplier with the key of another: no longer one row for each, whatever was stored."""
    path = policy_file("ssb", "ssb")
    found = []
    for change in ("SELECT 1", "INSERT INTO supplier SELECT * FROM supplier WHERE s_suppkey = 7"):
        with duckdb.connect(str(path.parent / "ssb.duckdb")) as connection:
            connection.execute(change)
        with Service.open(path) as service:
            priced = service.session().prepare(SUPPLIED)
            names = {piece.family for piece in pieces(priced, service.policy.answers_key)}
            found.append((priced.parts[0].measurement.privacy.max_rows, names))
    (before, old), (after, new) = found
    assert (before, after) == (100, 200)
    assert not old & new


def test_it_is_looked_up_once_for_one_state_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked, real = policy_file("ssb", "ssb"), list[Query](), DuckDB.largest
    path.parent.chmod(0o700)

    def largest(self: DuckDB, query: Query) -> int:
        asked.append(query)
        return real(self, query)

    monkeypatch.setattr(DuckDB, "largest", largest)
    with Service.open(path) as first:
        known = {t.name: t.fan_outs for t in first.policy.tables.values()}
        public = [t for t in first.policy.tables.values() if t.public]
        assert len(asked) == sum(len(t.columns) for t in public) + len(public)
        first.session().prepare(SUPPLIED)
    asked.clear()
    with Service.open(path) as second:
        assert {t.name: t.fan_outs for t in second.policy.tables.values()} == known
    assert not asked


def test_what_cannot_be_looked_up_bounds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: DuckDB, query: Query) -> int:
        raise EngineFailed("planted")

    monkeypatch.setattr(DuckDB, "largest", fails)
    with Service.open(policy_file("ssb", "ssb")) as service:
        assert service.policy.tables["supplier"].fan_outs == {}
        with pytest.raises(Refused) as refused:
            service.session().prepare(SUPPLIED)
    assert refused.value.code == "DP304"


def test_values_are_counted_as_they_are_compared() -> None:
    """Two moments that differ by a nanosecond are read as one: each row would meet two."""
    change = (
        "CREATE OR REPLACE TABLE date AS SELECT (TIMESTAMP_NS '2024-01-01 00:00:00.000000001' ) AS v, 1 AS n"
        " UNION ALL SELECT TIMESTAMP_NS '2024-01-01 00:00:00.000000002', NULL UNION ALL SELECT NULL, NULL"
    )
    with Service.open(_changed(change)) as service:
        assert service.policy.tables["date"].fan_outs == {("v",): 2, ("n",): 1}
