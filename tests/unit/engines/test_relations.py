"""Relations as statements: each does on DuckDB what the query it stands for does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from dpsql.catalog.functions import FUNCTIONS
from dpsql.engines.duckdb.relations import Writer
from dpsql.ir.expressions import (
    NULL,
    Aggregated,
    Call,
    Column,
    Expression,
    Shape,
    SortKey,
    Window,
)
from dpsql.ir.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Private,
    Project,
    Public,
    Relation,
    Scan,
    Sort,
    Stored,
    Union,
    Values,
    Windowed,
)
from dpsql.policy.model import Column as Listed
from dpsql.policy.model import ForeignKey, Table
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind.literals import literal

INTEGER, TEXT = Shape(Kind.INTEGER), Shape(Kind.TEXT)
PUBLIC = Public()
ODD = 'se"lect'
"""A column named like a keyword, with a quote."""


@pytest.fixture
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("""
            CREATE TABLE sales (id BIGINT, grp VARCHAR, "se""lect" BIGINT, amount DOUBLE);
            INSERT INTO sales VALUES
                (1, 'a', 10, 1.5), (2, 'a', 20, NULL), (3, 'b', 10, 2.5), (4, NULL, 30, -1), (5, 'b', 10, 2.5);
            CREATE TABLE people (person BIGINT, home BIGINT);
            INSERT INTO people VALUES (1, 7), (2, 8), (3, NULL);
            CREATE TABLE visits (visit BIGINT, person BIGINT);
            INSERT INTO visits VALUES (10, 1), (11, 1), (12, 2), (13, 3), (14, NULL), (15, 99);
            CREATE TABLE done_1 ("total_41" BIGINT, "grp_42" VARCHAR);
            INSERT INTO done_1 VALUES (3, 'a'), (4, 'b');
        """)
        yield connection


def table(name: str, **more: object) -> Table:
    listed = {c: Listed(c, "bigint", Kind.INTEGER) for c in ("id", "person", "visit")}
    return Table(name, listed, **more)  # type: ignore[arg-type]


def sales(first: int = 1) -> Scan:
    names = (("id", INTEGER), ("grp", TEXT), (ODD, INTEGER), ("amount", Shape(Kind.DOUBLE)))
    fields = tuple(Column(first + n, name, shape) for n, (name, shape) in enumerate(names))
    return Scan(table("sales"), fields, (), PUBLIC)


def call(name: str, *args: Expression) -> Call:
    return Call(name, args, FUNCTIONS[name].shape(args, ""))


def where(relation: Relation, predicate: Expression) -> Filter:
    return Filter(relation, predicate, relation.fields, PUBLIC)


def project(relation: Relation, values: dict[str, Expression], first: int = 100) -> Project:
    fields = tuple(
        replace(v, name=name) if isinstance(v, Column) else Column(first + n, name, v.shape)
        for n, (name, v) in enumerate(values.items())
    )
    return Project(relation, tuple(values.values()), fields, PUBLIC)


def distinct(relation: Relation) -> Distinct:
    return Distinct(relation, relation.fields, PUBLIC)


def limit(relation: Relation, count: int | None, offset: int = 0) -> Limit:
    return Limit(relation, count, offset, relation.fields, PUBLIC)


def sort(relation: Relation, key: Expression, *, descending: bool = False) -> Sort:
    return Sort(relation, (SortKey(key, descending),), relation.fields, PUBLIC)


def join(kind: str, left: Relation, right: Relation, condition: Expression | None) -> Join:
    return Join(kind, left, right, condition, left.fields + right.fields, PUBLIC)


def grouped(relation: Relation, keys: tuple[Expression, ...], *calls: Aggregated) -> Aggregate:
    fields = tuple(Column(200 + n, "key", k.shape) for n, k in enumerate(keys))
    fields += tuple(Column(210 + n, c.function, c.shape) for n, c in enumerate(calls))
    return Aggregate(relation, keys, calls, fields, PUBLIC)


def union(operation: str, *sides: Relation) -> Union:
    fields = tuple(replace(f, number=300 + n) for n, f in enumerate(sides[0].fields))
    return Union(operation, sides, fields, PUBLIC)


SALES = sales()
ID, GRP, KEYWORD, AMOUNT = SALES.fields
TWICE = call("add", KEYWORD, KEYWORD)
COUNT = Aggregated("count", (), INTEGER)
SUM = Aggregated("sum", (KEYWORD,), INTEGER)
COMPUTED = project(SALES, {"twice": TWICE, "id": ID})
[DOUBLED, _] = COMPUTED.fields
OTHER = sales(11)
ROW = Windowed(
    SALES,
    (Window("row_number", (), (GRP,), (SortKey(ID),), None, INTEGER),),
    (*SALES.fields, Column(50, "place", INTEGER)),
    PUBLIC,
)
STORED = Stored("done_1", (Column(41, "total", INTEGER), Column(42, "grp", TEXT)))
VALUES = Values(
    (Column(61, "code", TEXT), Column(62, "rank", INTEGER)), (("a", 1), ("it's", None), (None, 3))
)
GROUPS = grouped(SALES, (GRP,), COUNT, SUM)

CASES: list[tuple[str, Relation, str]] = [
    ("scan", SALES, "FROM sales"),
    ("keyword", project(SALES, {"q": KEYWORD}), 'SELECT "se""lect" FROM sales'),
    ("filter", where(SALES, call("gt", KEYWORD, literal(10))), 'FROM sales WHERE "se""lect" > 10'),
    (
        "filters",
        where(where(SALES, call("gt", ID, literal(1))), call("or", call("lt", ID, literal(3)), call("is_null", GRP))),
        "FROM sales WHERE id > 1 AND (id < 3 OR grp IS NULL)",
    ),
    ("constant filter", where(SALES, literal(False)), "FROM sales WHERE FALSE"),
    ("null filter", where(SALES, NULL), "FROM sales WHERE NULL"),
    ("computed", COMPUTED, 'SELECT "se""lect" * 2, id FROM sales'),
    ("filter computed", where(COMPUTED, call("gt", DOUBLED, literal(20))), 'SELECT "se""lect" * 2, id FROM sales WHERE "se""lect" > 10'),
    ("constant", project(SALES, {"one": literal(1), "none": NULL, "text": literal("x")}), "SELECT 1, NULL, 'x' FROM sales"),
    ("distinct", distinct(project(SALES, {"g": GRP, "k": KEYWORD})), 'SELECT DISTINCT grp, "se""lect" FROM sales'),
    ("distinct computed", distinct(project(SALES, {"t": TWICE})), 'SELECT DISTINCT "se""lect" * 2 FROM sales'),
    (
        "distinct then filter",
        where(distinct(project(SALES, {"g": GRP})), call("is_null", GRP)),
        "SELECT DISTINCT grp FROM sales WHERE grp IS NULL",
    ),
    (
        "distinct then project",
        project(distinct(project(SALES, {"g": GRP, "k": KEYWORD})), {"g": GRP}),
        'SELECT grp FROM (SELECT DISTINCT grp, "se""lect" FROM sales)',
    ),
    (
        "distinct then limit",
        limit(sort(distinct(project(SALES, {"k": KEYWORD})), KEYWORD), 2),
        'SELECT DISTINCT "se""lect" FROM sales ORDER BY 1 LIMIT 2',
    ),
    ("distinct twice", distinct(distinct(project(SALES, {"k": KEYWORD}))), 'SELECT DISTINCT "se""lect" FROM sales'),
    ("distinct groups", distinct(grouped(SALES, (GRP,), COUNT)), "SELECT grp, count(*) FROM sales GROUP BY grp"),
    ("limit", limit(sort(SALES, ID), 2, 1), "FROM sales ORDER BY id LIMIT 2 OFFSET 1"),
    ("offset", limit(sort(SALES, ID), None, 3), "FROM sales ORDER BY id OFFSET 3"),
    ("no rows", limit(SALES, 0), "FROM sales LIMIT 0"),
    (
        "limit then filter",
        where(limit(sort(SALES, ID), 2), call("eq", ID, literal(3))),
        "FROM (FROM sales ORDER BY id LIMIT 2) WHERE id = 3",
    ),
    (
        "limit then project",
        project(limit(sort(SALES, ID), 2), {"t": TWICE}),
        'SELECT "se""lect" * 2 FROM (FROM sales ORDER BY id LIMIT 2)',
    ),
    ("limit then count", grouped(limit(SALES, 2), (), COUNT), "SELECT 2"),
    ("limit twice", limit(limit(sort(SALES, ID), 3), 2, 1), "FROM sales WHERE id IN (2, 3)"),
    ("limit then sort", sort(limit(sort(SALES, ID), 2), ID, descending=True), "FROM sales WHERE id < 3"),
    ("groups", GROUPS, 'SELECT grp, count(*), sum("se""lect") FROM sales GROUP BY grp'),
    ("group by constant", grouped(SALES, (literal(5),), COUNT), "SELECT 5, 5"),
    ("group by text", grouped(SALES, (literal("x"), TWICE), COUNT), "SELECT 'x', \"se\"\"lect\" * 2, count(*) FROM sales GROUP BY ALL"),
    ("total", grouped(SALES, (), COUNT, SUM), 'SELECT count(*), sum("se""lect") FROM sales'),
    ("empty total", grouped(where(SALES, literal(False)), (), COUNT, SUM), "SELECT 0, NULL"),
    (
        "filtered call",
        grouped(SALES, (), Aggregated("count", (KEYWORD,), INTEGER, distinct=True, where=call("is_null", GRP))),
        "SELECT 1",
    ),
    ("having", where(GROUPS, call("gt", GROUPS.fields[1], literal(1))), 'SELECT grp, count(*), sum("se""lect") FROM sales GROUP BY grp HAVING count(*) > 1'),
    ("groups of groups", grouped(grouped(SALES, (GRP,), COUNT), (), COUNT), "SELECT 3"),
    ("groups computed", grouped(COMPUTED, (DOUBLED,), COUNT), 'SELECT "se""lect" * 2, count(*) FROM sales GROUP BY 1'),
    ("project groups", project(GROUPS, {"ratio": call("divide", GROUPS.fields[2], GROUPS.fields[1])}), 'SELECT sum("se""lect") // count(*) FROM sales GROUP BY grp'),
    ("window", ROW, "SELECT *, row_number() OVER (PARTITION BY grp ORDER BY id) FROM sales"),
    (
        "filter window",
        where(ROW, call("eq", ROW.fields[4], literal(1))),
        "SELECT *, 1 FROM sales WHERE id IN (1, 3, 4)",
    ),
    ("window twice", Windowed(ROW, (Window("max", (ROW.fields[4],), (), (), None, INTEGER),), (*ROW.fields, Column(51, "most", INTEGER)), PUBLIC), "SELECT *, row_number() OVER (PARTITION BY grp ORDER BY id), 2 FROM sales"),
    ("self join", join("inner", SALES, OTHER, call("eq", ID, OTHER.fields[0])), "FROM sales a JOIN sales b ON a.id = b.id"),
    ("left join", join("left", SALES, OTHER, call("lt", ID, OTHER.fields[0])), "FROM sales a LEFT JOIN sales b ON a.id < b.id"),
    ("full join", join("full", where(SALES, call("lt", ID, literal(3))), OTHER, call("eq", ID, OTHER.fields[0])), "FROM (FROM sales WHERE id < 3) a FULL JOIN sales b ON a.id = b.id"),
    ("cross join", join("cross", SALES, VALUES, None), "FROM sales, (VALUES ('a', 1), ('it''s', NULL), (NULL, 3))"),
    ("join limited", join("inner", limit(sort(SALES, ID), 2), OTHER, call("eq", ID, OTHER.fields[0])), "FROM sales a JOIN sales b ON a.id = b.id WHERE a.id < 3"),
    (
        "nested join",
        join("left", SALES, join("inner", OTHER, STORED, call("eq", OTHER.fields[1], STORED.fields[1])), call("eq", ID, OTHER.fields[0])),
        "FROM sales a LEFT JOIN (sales b JOIN done_1 c ON b.grp = c.grp_42) ON a.id = b.id",
    ),
    (
        "nested cross join",
        join("full", VALUES, join("cross", sales(21), STORED, None), call("eq", VALUES.fields[1], Column(21, "id", INTEGER))),
        "FROM (VALUES ('a', 1), ('it''s', NULL), (NULL, 3)) v(c, r) FULL JOIN (sales b CROSS JOIN done_1 c) ON v.r = b.id",
    ),
    ("left-deep join", join("inner", join("inner", SALES, OTHER, call("eq", ID, OTHER.fields[0])), STORED, call("eq", GRP, STORED.fields[1])), "FROM sales a JOIN sales b ON a.id = b.id JOIN done_1 c ON a.grp = c.grp_42"),
    ("stored", STORED, "FROM done_1"),
    ("values", VALUES, "VALUES ('a', 1), ('it''s', NULL), (NULL, 3)"),
    ("nothing", project(Values((), ((),)), {"a": literal(7), "b": TWO}) if (TWO := call("divide", literal(7), literal(-2))) else VALUES, "SELECT 7, -3"),
    ("nothing filtered", project(where(Values((), ((),)), literal(False)), {"a": literal(7)}), "SELECT 7 WHERE FALSE"),
    ("nothing counted", grouped(Values((), ((),)), (), COUNT), "SELECT 1"),
    ("union all", union("union all", project(SALES, {"g": GRP}), project(OTHER, {"g": OTHER.fields[1]})), "SELECT grp FROM sales UNION ALL SELECT grp FROM sales"),
    ("union", union("union", project(SALES, {"g": GRP, "k": TWICE}), project(where(OTHER, literal(True)), {"g": OTHER.fields[1], "k": OTHER.fields[0]})), 'SELECT grp, "se""lect" * 2 FROM sales UNION SELECT grp, id FROM sales'),
    ("except", union("except", project(SALES, {"g": GRP}), project(STORED, {"g": STORED.fields[1]})), "SELECT NULL::VARCHAR"),
    ("intersect", union("intersect", project(SALES, {"g": GRP}), project(STORED, {"g": STORED.fields[1]})), "VALUES ('a'), ('b')"),
    ("union of limits", union("union all", limit(sort(project(SALES, {"i": ID}), ID), 1), limit(sort(project(OTHER, {"i": OTHER.fields[0]}), OTHER.fields[0]), 2)), "VALUES (1), (1), (2)"),
    ("union of unions", union("except", union("union all", project(SALES, {"i": ID}), project(OTHER, {"i": OTHER.fields[0]})), project(sales(21), {"i": literal(2)})), "VALUES (1), (3), (4), (5)"),
    ("union of types", union("union all", project(SALES, {"a": AMOUNT}), project(OTHER, {"a": OTHER.fields[0]})), "SELECT amount FROM sales UNION ALL SELECT id FROM sales"),
    ("sort union", sort(union("union all", project(SALES, {"i": ID}), project(OTHER, {"i": OTHER.fields[0]})), Column(300, "i", INTEGER)), "SELECT id FROM sales UNION ALL SELECT id FROM sales"),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_statements_do_what_the_relation_says(
    relation: Relation, wanted: str, engine: duckdb.DuckDBPyConnection
) -> None:
    got = engine.execute(Writer().select(relation)).fetchall()
    rows = engine.execute(wanted).fetchall()
    assert sorted(got, key=repr) == sorted(rows, key=repr)


def test_semi_and_anti_joins_keep_the_left_columns(engine: duckdb.DuckDBPyConnection) -> None:
    for kind, wanted in (("semi", 4), ("anti", 1)):
        relation = Join(
            kind, SALES, STORED, call("eq", GRP, STORED.fields[1]), SALES.fields, PUBLIC
        )
        rows = engine.execute(Writer().select(relation)).fetchall()
        assert len(rows) == wanted
        assert len(rows[0]) == 4


def test_orders_last(engine: duckdb.DuckDBPyConnection) -> None:
    """The order of a Sort is the order of the rows, through columns computed above it."""
    by_id = sort(SALES, ID, descending=True)
    wanted = [5, 4, 3, 2, 1]
    for relation in (
        project(by_id, {"i": ID}),
        project(by_id, {"i": ID, "twice": TWICE}),
        sort(project(sort(SALES, GRP), {"i": ID}), ID, descending=True),
        limit(project(by_id, {"i": ID, "twice": TWICE}), 9),
        sort(COMPUTED, ID, descending=True),
        sort(project(ROW, {"i": ID}), ID, descending=True),
    ):
        rows = engine.execute(Writer().select(relation)).fetchall()
        assert [row[relation.fields.index(_like(relation, 1))] for row in rows] == wanted


def _like(relation: Relation, number: int) -> Column:
    return next(f for f in relation.fields if f.number == number)


def test_fields_of_distinct_rows_are_not_made_distinct(engine: duckdb.DuckDBPyConnection) -> None:
    """Reading some columns of distinct rows keeps one row for each."""
    pairs = distinct(project(SALES, {"g": GRP, "k": KEYWORD}))
    rows = engine.execute(Writer().select(pairs, (KEYWORD,))).fetchall()
    assert sorted(rows) == [(10,), (10,), (20,), (30,)]


def test_chosen_fields_stand_in_their_order(engine: duckdb.DuckDBPyConnection) -> None:
    text = Writer().select(SALES, (KEYWORD, ID, KEYWORD))
    assert engine.execute(text).fetchall()[0] == (10, 1)
    assert [d[0] for d in engine.description or ()] == ["se_lect_3", "id_1"]


def test_stored_values_that_do_not_fit_are_null(engine: duckdb.DuckDBPyConnection) -> None:
    wrong = Scan(table("sales"), (Column(1, "grp", INTEGER),), (), PUBLIC)
    assert engine.execute(Writer().select(wrong)).fetchall() == [(None,)] * 5


def test_grouping_sets(engine: duckdb.DuckDBPyConnection) -> None:
    both = replace(grouped(SALES, (GRP, KEYWORD), COUNT), sets=((0, 1), (0,), ()))
    rows = engine.execute(Writer().select(both)).fetchall()
    wanted = engine.execute(
        'SELECT grp, "se""lect", count(*) FROM sales GROUP BY ROLLUP (grp, "se""lect")'
    ).fetchall()
    assert sorted(rows, key=repr) == sorted(wanted, key=repr)


def test_deep_projections_stay_short() -> None:
    relation: Relation = SALES
    value: Expression = KEYWORD
    for number in range(40):
        relation = project(relation, {"x": call("add", value, value)}, first=1000 + number)
        [value] = relation.fields
    text = Writer().select(relation)
    assert len(text) < 20_000


def test_private_rows_have_their_unit(engine: duckdb.DuckDBPyConnection) -> None:
    """A path of foreign keys leads to the unit; rows without one belong to nobody."""
    unit = Column(9, "home", INTEGER)
    path = (ForeignKey(("person",), "people", ("person",)),)
    visits = table("visits", unit="home", path=path, unit_columns=("home",))
    private = Private("home", (frozenset({9}),), 5)
    scan = Scan(visits, (Column(1, "visit", INTEGER),), (unit,), private)
    writer = Writer()
    assert sorted(engine.execute(writer.select(scan)).fetchall()) == [(10,), (11,), (12,)]
    block = writer.sealed(writer.block(where(scan, call("gt", scan.fields[0], literal(10)))))
    text = writer.statement(block, (scan.fields[0], unit))
    assert sorted(engine.execute(text).fetchall()) == [(11, 7), (12, 8)]
    pairs = join("inner", scan, OTHER, call("lt", OTHER.fields[0], scan.fields[0]))
    counted = grouped(pairs, (unit,), COUNT)
    assert sorted(engine.execute(Writer().select(counted)).fetchall()) == [(7, 10), (8, 5)]


def test_values_of_every_kind(engine: duckdb.DuckDBPyConnection) -> None:
    row: tuple[Scalar | None, ...] = (None, True)
    fields = (Column(1, "nothing", Shape(Kind.NULL)), Column(2, "yes", Shape(Kind.BOOLEAN)))
    assert engine.execute(Writer().select(Values(fields, (row,)))).fetchall() == [row]
