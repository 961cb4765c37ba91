"""Groups that public tables list: their distinct rows under the query's public conditions."""

from __future__ import annotations

from dataclasses import dataclass, field

import duckdb
import pytest
from support.corpus import WORLDS
from support.datasets import in_memory
from support.measured import opened, plan_of
from support.services import policy_file

from dpsql.checks import run as check
from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.ir.expressions import Column, Shape
from dpsql.ir.public_groups import Combinations, PublicGroups, RowList
from dpsql.ir.relations import Public, Scan
from dpsql.plan import cells as cells_module
from dpsql.plan.build import build
from dpsql.plan.nodes import Cells, Enumerator, Plan, PublicRows
from dpsql.policy.types import Kind
from dpsql.reuse.pieces import pieces
from dpsql.service import Service
from dpsql.sql.bind import bind
from dpsql.sql.parse import Source, parse

SSB = WORLDS["ssb"]
SUPPLIED = "lineorder JOIN supplier ON lo_suppkey = s_suppkey"
ASIAN = "SELECT count(DISTINCT s_city) FROM supplier WHERE s_region = 'ASIA'"


def _cells(sql: str) -> Cells | None:
    *_, measurement = plan_of(sql, SSB).measurements
    return measurement.cells


def _plain(sql: str) -> int:
    found = in_memory("ssb").execute(sql).fetchone()
    assert found is not None
    return int(found[0])


@pytest.mark.parametrize(
    ("sql", "groups"),
    [
        (
            f"SELECT s_city, s_nation, COUNT(*) FROM {SUPPLIED} GROUP BY 1, 2",
            "SELECT count(*) FROM (SELECT DISTINCT s_city, s_nation FROM supplier)",
        ),
        (f"SELECT s_city, COUNT(*) FROM {SUPPLIED} WHERE s_region = 'ASIA' GROUP BY 1", ASIAN),
        (f"SELECT s_city, COUNT(*) FROM {SUPPLIED} AND s_region = 'ASIA' GROUP BY 1", ASIAN),
        (
            (f"SELECT s_city, COUNT(*) FROM {SUPPLIED} JOIN cities ON city = s_city AND nation = s_nation"
            " AND s_region = region WHERE region = 'ASIA' GROUP BY 1"),
            ASIAN,
        ),
        (
            ("SELECT s_city, COUNT(*) FROM lineorder JOIN (SELECT s_suppkey, s_city FROM supplier"
            " WHERE s_region = 'ASIA') AS s ON lo_suppkey = s_suppkey GROUP BY 1"),
            ASIAN,
        ),
        (  # conditions on private rows narrow nothing
            f"SELECT s_city, COUNT(*) FROM {SUPPLIED} WHERE lo_quantity < 2 AND lo_suppkey = 1 GROUP BY 1",
            "SELECT count(DISTINCT s_city) FROM supplier",
        ),
        (  # nor does what is known once something was released
            f"SELECT s_city, COUNT(*) FROM {SUPPLIED} WHERE s_suppkey < (SELECT COUNT(*) FROM lineorder) GROUP BY 1",
            "SELECT count(DISTINCT s_city) FROM supplier",
        ),
        (  # a supplier that is not met is NULL, and so is one that the condition leaves out
            ("SELECT s_city, COUNT(*) FROM lineorder LEFT JOIN supplier ON lo_suppkey = s_suppkey"
            " AND s_region = 'ASIA' AND lo_quantity < 25 GROUP BY 1"),
            ASIAN.replace(")", ") + 1"),
        ),
        (
            ("SELECT s_city, COUNT(*) FROM customer LEFT JOIN (SELECT lo_custkey, s_city, upper(s_city) AS loud"
            f" FROM {SUPPLIED} WHERE s_region = 'ASIA') AS o ON c_custkey = lo_custkey GROUP BY 1"),
            "SELECT count(DISTINCT s_city) + 1 FROM supplier",
        ),
        (  # a key of rows that equals one of theirs
            f"SELECT lo_suppkey, COUNT(*) FROM {SUPPLIED} WHERE s_region = 'ASIA' GROUP BY 1",
            "SELECT count(*) FROM supplier WHERE s_region = 'ASIA'",
        ),
        (  # computed from theirs
            (f"SELECT near, COUNT(*) FROM (SELECT lower(s_nation) AS near, s_region FROM {SUPPLIED}) AS o"
            " WHERE near <> 'china' AND s_region = 'ASIA' GROUP BY 1"),
            "SELECT count(DISTINCT s_nation) FROM supplier WHERE s_region = 'ASIA' AND s_nation <> 'CHINA'",
        ),
        (
            (f"SELECT s_nation, COUNT(*) FROM (SELECT lo_custkey, s_nation, COUNT(*) AS n FROM {SUPPLIED}"
            " WHERE s_region = 'ASIA' GROUP BY 1, 2) AS o WHERE n > 1 GROUP BY 1"),
            "SELECT count(DISTINCT s_nation) FROM supplier WHERE s_region = 'ASIA'",
        ),
        (
            ("SELECT v.x, v.y, COUNT(*) FROM lineorder JOIN (VALUES (1, 'a'), (2, 'b'), (3, 'b')) AS v(x, y)"
            " ON lo_linenumber = v.x WHERE v.y = 'b' GROUP BY 1, 2"),
            "SELECT 2",
        ),
        (  # columns of rows that one foreign key ties to a public table
            "SELECT c_city, c_nation, COUNT(*) FROM customer WHERE c_region = 'ASIA' GROUP BY 1, 2",
            "SELECT count(*) FROM cities WHERE region = 'ASIA'",
        ),
        (  # a public table that a row of another one leads to: no product
            ("SELECT s_city, n.nation, COUNT(*) FROM lineorder LEFT JOIN supplier ON lo_suppkey = s_suppkey"
            " LEFT JOIN (SELECT DISTINCT nation FROM cities) AS n ON s_nation = n.nation GROUP BY 1, 2"),
            "SELECT 1 + count(*) FROM (SELECT DISTINCT s_city, s_nation FROM supplier)",
        ),
        (  # the same where rows of people decide as well: it is there, or NULL
            (f"SELECT s_city, n.nation, COUNT(*) FROM {SUPPLIED} LEFT JOIN (SELECT DISTINCT nation FROM cities)"
            " AS n ON s_nation = n.nation AND lo_quantity < 25 GROUP BY 1, 2"),
            "SELECT 2 * count(*) FROM (SELECT DISTINCT s_city, s_nation FROM supplier)",
        ),
        (  # two that the same column leads to
            (f"SELECT a.s_city, b.s_nation, COUNT(*) FROM {SUPPLIED.replace('supplier', 'supplier AS a')}"
            " JOIN supplier AS b ON lo_suppkey = b.s_suppkey GROUP BY 1, 2").replace("= s_suppkey", "= a.s_suppkey"),
            "SELECT count(*) FROM (SELECT DISTINCT s_city, s_nation FROM supplier)",
        ),
        (
            ("SELECT a.s_city, b.s_nation, COUNT(*) FROM lineorder LEFT JOIN supplier AS a ON lo_suppkey = a.s_suppkey"
            " LEFT JOIN supplier AS b ON lo_suppkey = b.s_suppkey GROUP BY 1, 2"),
            ("SELECT count(*) + 1 + (SELECT count(DISTINCT s_city) + count(DISTINCT s_nation) FROM supplier)"
            " FROM (SELECT DISTINCT s_city, s_nation FROM supplier)"),
        ),
        (  # two tables beside each other: all pairs
            (f"SELECT s_region, d_year, COUNT(*) FROM {SUPPLIED} JOIN date ON d_datekey = lo_orderdate"
            " WHERE d_year > 1996 GROUP BY 1, 2"),
            "SELECT 2 * count(DISTINCT s_region) FROM supplier",
        ),
        (  # a few years, or none
            (f"SELECT CASE WHEN d_year = 1992 THEN s_region END AS r, COUNT(*) FROM {SUPPLIED}"
            " JOIN date ON d_datekey = lo_orderdate GROUP BY 1"),
            "SELECT 1 + count(DISTINCT s_region) FROM supplier",
        ),
    ],
)  # fmt: skip
def test_groups_are_the_distinct_rows_of_public_tables(sql: str, groups: str) -> None:
    found = _cells(sql)
    assert found is not None
    assert found.rows is not None
    assert found.count == found.rows.table.num_rows == _plain(groups)
    assert found.open == found.tied, "every row is in one of them, if foreign keys hold"


@pytest.mark.parametrize(
    "joined",
    [
        "(SELECT * FROM supplier ORDER BY s_suppkey LIMIT 5)",
        "(SELECT s_suppkey, MIN(s_city) AS s_city FROM supplier GROUP BY 1)",
    ],
)
def test_rows_that_may_be_others_next_time_list_nothing(joined: str) -> None:
    sql = f"SELECT s_city, COUNT(*) FROM lineorder JOIN {joined} AS s ON lo_suppkey = s.s_suppkey GROUP BY 1"
    assert _cells(sql) is None


def test_a_double_that_equals_one_of_a_public_table_is_no_name_for_it() -> None:
    """Its zeros differ, and so might the group's name."""
    sql = (
        "SELECT o.d, COUNT(*) FROM (SELECT CAST(lo_suppkey AS DOUBLE) AS d, lo_custkey, lo_suppkey FROM lineorder) AS o"
        " JOIN (SELECT s_suppkey, CAST(s_suppkey AS DOUBLE) AS d FROM supplier) AS s"
        " ON o.lo_suppkey = s.s_suppkey AND o.d = s.d GROUP BY 1"
    )
    assert _cells(sql) is None


def test_a_condition_that_pairs_too_many_rows_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then there are more groups, and none is missing."""
    sql = (
        f"SELECT s_suppkey, d_year, COUNT(*) FROM {SUPPLIED} JOIN date ON d_datekey = lo_orderdate"
        " WHERE d_year - 1900 > s_suppkey GROUP BY 1, 2"
    )
    narrow = _cells(sql)
    monkeypatch.setattr(cells_module, "MOST_BASE_VALUES", 600)
    wide = _cells(sql)
    assert narrow is not None
    assert wide is not None
    assert narrow.count < wide.count == 700


def test_rows_that_are_matched_are_not_counted_as_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "MOST_BASE_VALUES", 250)
    sql = (
        f"SELECT s_city, COUNT(*) FROM {SUPPLIED} JOIN cities ON city = s_city AND nation = s_nation"
        " AND city = s_city AND region = s_region WHERE region = 'ASIA' GROUP BY 1"
    )
    found = _cells(sql)
    assert found is not None
    assert found.count == _plain(ASIAN)


@dataclass
class _Heard(Enumerator):
    """What public tables are asked."""

    real: Enumerator
    counted: list[Combinations | RowList] = field(default_factory=list)
    read: list[PublicGroups] = field(default_factory=list)

    def count(self, part: Combinations) -> int:
        return self.real.count(part)

    def count_public(self, part: Combinations | RowList) -> int:
        self.counted.append(part)
        return self.real.count_public(part)

    def read_public(self, groups: PublicGroups) -> PublicRows:
        self.read.append(groups)
        return self.real.read_public(groups)


def _planned(sql: str, most: int, heard: _Heard) -> Plan:
    here = opened(SSB)
    checked = check(bind(parse(Source(sql, "postgres")), here.catalog("analyst")))
    return build(checked, heard, most)


def test_groups_are_counted_before_they_are_read() -> None:
    sql, heard = (
        f"SELECT s_name, COUNT(*) FROM {SUPPLIED} GROUP BY 1",
        _Heard(opened(SSB).tools.enumerator),
    )
    with pytest.raises(Refused, match="100 public groups; the policy allows 99"):
        _planned(sql, 99, heard)
    assert heard.counted
    assert not heard.read
    _planned(sql, 100, heard)
    assert heard.read


def test_the_rows_of_people_are_never_asked_for_groups() -> None:
    enumerator, policy = opened(SSB).tools.enumerator, opened(SSB).policy
    city = Column(0, "c_city", Shape(Kind.TEXT))
    people = Scan(policy.tables["customer"], (city,), (), Public())
    cities = RowList(0, people, ((city, city),), optional=False)
    listed = Combinations((cities,), ((0, city),), (), distinct=True)
    for part in (cities, listed):
        with pytest.raises(EngineFailed):
            enumerator.count_public(part)
    with pytest.raises(EngineFailed):
        enumerator.read_public(PublicGroups((listed,), ("k0",)))


def _families(change: str) -> set[str]:
    """The names under which an answer is stored, after a change of the data under one version."""
    path = policy_file("ssb", "ssb")
    with duckdb.connect(str(path.parent / "ssb.duckdb")) as connection:
        connection.execute(change)
    sql = f"SELECT s_name, COUNT(*) FROM {SUPPLIED} GROUP BY 1"
    with Service.open(path) as service:
        return {
            p.family for p in pieces(service.session().prepare(sql), service.policy.answers_key)
        }


def test_an_answer_is_stored_under_the_groups_that_it_has() -> None:
    same = _families("SELECT 1")
    assert same == _families("UPDATE lineorder SET lo_quantity = 1")
    assert not same & _families("UPDATE supplier SET s_name = 'Supplier#new' WHERE s_suppkey = 7")


def test_coarser_groups_are_added_up_from_stored_ones() -> None:
    session = opened(SSB).session()
    fine = f"SELECT s_nation, s_region, COUNT(*) AS n FROM {SUPPLIED} GROUP BY 1, 2"
    coarse = f"SELECT s_nation, COUNT(*) AS n FROM {SUPPLIED} WHERE s_region = 'ASIA' GROUP BY 1"
    assert not session.execute(fine).recalled
    again = session.execute(coarse)
    assert again.recalled
    found = {tuple(row.values()) for row in again.table.to_pylist()}
    assert found == set(in_memory("ssb").execute(coarse).fetchall())


def test_public_groups_pass_through_a_price_list() -> None:
    """What several statements cost is worked out over made-up answers with these groups."""
    tiles = opened(SSB).session().price([f"SELECT s_name, COUNT(*) FROM {SUPPLIED} GROUP BY 1"] * 2)
    assert [tile.refused for tile in tiles] == [None, None]
    assert tiles[1].due.epsilon == 0


TIED = "rows with a combination that is not listed are in no group"


@pytest.mark.parametrize(
    ("sql", "tied", "names"),
    [
        ("SELECT c_city, c_nation, COUNT(*) FROM customer GROUP BY 1, 2", {0, 1}, "c_city, c_nation"),
        ("SELECT c_nation AS n, COUNT(*) FROM customer WHERE c_region = 'ASIA' GROUP BY 1", {0}, "c_nation"),
        ("SELECT c_custkey > 5 AS old, c_city, c_nation, COUNT(*) FROM customer GROUP BY 1, 2, 3", {1, 2}, "c_city, c_nation"),
        ("SELECT c_city, COUNT(*) FROM customer GROUP BY 1", set(), ""),
        (f"SELECT s_city, s_nation, COUNT(*) FROM {SUPPLIED} GROUP BY 1, 2", set(), ""),
    ],
)  # fmt: skip
def test_rows_that_a_foreign_key_does_not_tie_are_in_no_group_and_an_answer_says_so(
    sql: str, tied: set[int], names: str
) -> None:
    """Nothing holds a row to a listed combination: coarser groups are not added up from these."""
    plan = plan_of(sql, SSB)
    (measurement,) = plan.measurements
    assert measurement.cells is not None
    assert measurement.cells.tied == tied
    assert measurement.cells.open >= tied
    assert [note for note in plan.notes if TIED in note] == ([f"{names}: {TIED}"] if names else [])
