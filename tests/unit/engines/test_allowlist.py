"""Every name that the engine has, in every spelling and place: what is not listed is refused."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import duckdb
import pytest

from dpsql.engines.duckdb.allowlist import Listing, NotListed, StatementCheck, nodes
from dpsql.engines.duckdb.allowlist.generated import GENERATED
from dpsql.engines.duckdb.allowlist.walk import walk
from dpsql.engines.duckdb.syntax_tree import Unreadable, own_views, query_tree
from dpsql.serve.catalog.catalog import SHAPES, macros, relations
from dpsql.serve.catalog.client_words import check_words
from dpsql.serve.catalog.listing import make_listing
from dpsql.serve.catalog.rewrite import rewrite_query
from dpsql.serve.pgwire.errors import WireError
from dpsql.serve.tokens import tokens

CATALOG = make_listing(relations(), macros(), SHAPES, [("orders", "amount"), ("orders", "user")])
WORD = re.compile(r"[a-z_]\w*")
SPELLINGS = (
    "{f}('1')", "main.{f}('1')", "system.main.{f}('1')", "memory.main.{f}('1')",
    "pg_catalog.{f}('1')", 'main."{f}"(1)', '"{f}"(1)', "{F}(1)", "'x'.{f}()", "(1).{f}(2)",
    "relname.{f}()", "{f}(path := '1')", "{f}(DISTINCT 1)", "{f}(*)", "[1].{f}()",
)  # fmt: skip
PLACES = (
    "SELECT {x}", "SELECT 1 WHERE {x} IS NULL", "SELECT 1 ORDER BY {x}", "SELECT 1 GROUP BY {x}",
    "SELECT count(*) HAVING {x} > 1", "SELECT 1 LIMIT (SELECT {x})", "VALUES (1), ({x})",
    "SELECT lower({x})", "WITH a AS (SELECT {x}) SELECT 1", "SELECT (SELECT {x})",
    "SELECT 1 FROM pg_class a JOIN pg_class b ON {x}", "SELECT 1 FROM pg_class, LATERAL (SELECT {x}) l",
    "SELECT 1 WHERE EXISTS (SELECT {x})", "SELECT 1 WHERE 1 IN (SELECT {x})", "SELECT 1 IN (2, {x})",
    "SELECT CASE WHEN {x} THEN 1 END", "SELECT CAST({x} AS VARCHAR)", "SELECT ARRAY[{x}]",
    "SELECT count(*) FILTER (WHERE {x})", "SELECT max(1) OVER (PARTITION BY {x})",
    "SELECT max(1) OVER (ORDER BY {x})", "SELECT array_agg(1 ORDER BY {x})", "SELECT ({x}).a",
    "SELECT list_transform([1], lambda v: {x})", "SELECT 1 BETWEEN 0 AND {x}", "SELECT (ARRAY[1])[{x}]",
    "SELECT 1 UNION SELECT {x}", "SELECT * FROM (VALUES ({x})) v", "SELECT * FROM unnest([{x}])",
    "SELECT DISTINCT ON ({x}) 1", "SELECT {{'a': {x}}}", "SELECT a FROM (SELECT {x} AS a) AS t",
    "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT {x} FROM r) SELECT * FROM r",
)  # fmt: skip
FROM = (
    "SELECT * FROM {x}", "FROM {x}", "SELECT * FROM pg_class, {x}", "SELECT * FROM pg_class, LATERAL {x}",
    "SELECT * FROM pg_class CROSS JOIN {x} AS t(a)", "SELECT (SELECT 1 FROM {x})",
    "WITH a AS (SELECT * FROM {x}) SELECT 1", "SELECT * FROM {x} WITH ORDINALITY",
    "SELECT 1 UNION ALL SELECT * FROM {x}",
)  # fmt: skip
TEXTS = (
    "'/etc/passwd'",
    '"/etc/passwd"',
    "'x.csv'",
    "main.'x.csv'",
    '"x.parquet"',
    "'s3://a/b.csv'",
)


@cache
def engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def _column(sql: str) -> list[str]:
    return sorted({str(row[0]).lower() for row in engine().execute(sql).fetchall()})


@cache
def functions() -> list[str]:
    """Every function, table function, macro and pragma."""
    return _column("SELECT function_name FROM duckdb_functions()")


class Refusing:
    """A check that keeps nothing."""

    def __init__(self, allowed: Listing) -> None:
        self.listing = allowed

    def admits(self, sql: str) -> bool:
        try:
            walk(query_tree(sql), self.listing)
        except (NotListed, Unreadable):
            return False
        return True


def calls(name: str, spellings: tuple[str, ...] = SPELLINGS) -> Iterator[str]:
    """A function in each spelling; operators between two values and before one."""
    if WORD.fullmatch(name):
        yield from (s.format(f=name, F=name.upper()) for s in spellings)
    else:
        yield from (f"(1 {name} 2)", f"({name} 2)", f'"{name}"(1, 2)', f'main."{name}"(1, 2)')


@pytest.mark.parametrize(
    ("allowed", "spellings"), [(CATALOG, SPELLINGS), (GENERATED, SPELLINGS[:3])],
    ids=["catalog", "generated"],
)  # fmt: skip
def test_every_function_in_every_spelling_and_place(
    allowed: Listing, spellings: tuple[str, ...]
) -> None:
    check = Refusing(allowed)
    assert len(functions()) > 700
    turn = itertools.cycle(PLACES)
    for name in functions():
        for call in calls(name, spellings):
            sql = next(turn).format(x=call)
            if check.admits(sql):
                used = _called(sql)
                assert used <= allowed.functions | allowed.windows | allowed.rows, sql
                assert name not in used or name in allowed.functions, sql
                assert not re.search(r"(main|memory|pg_catalog|relname)\.", call), sql


def test_every_place_refuses_what_is_not_listed() -> None:
    check = Refusing(CATALOG)
    for place in PLACES:
        admitted = [
            call for name in ("read_text", "pgx_stop", "getvariable") for call in calls(name)
            if check.admits(place.format(x=call))
        ]  # fmt: skip
        assert not admitted, place
        if "orders" not in place:
            assert check.admits(place.format(x="lower('1')")), place


@pytest.mark.parametrize(
    ("allowed", "spellings"), [(CATALOG, SPELLINGS[:7]), (GENERATED, SPELLINGS[:2])],
    ids=["catalog", "generated"],
)  # fmt: skip
def test_every_function_in_from(allowed: Listing, spellings: tuple[str, ...]) -> None:
    check = Refusing(allowed.with_relations(["pg_class"]))
    turn = itertools.cycle(FROM)
    for name in functions():
        for call in calls(name, spellings):
            sql = next(turn).format(x=call)
            if check.admits(sql):
                assert name in allowed.rows, sql
    for place in FROM:
        assert not check.admits(place.format(x="read_csv('x')")), place
        assert check.admits(place.format(x="generate_series(1, 2)")), place


def test_every_relation_of_the_engine_and_every_text() -> None:
    check = Refusing(CATALOG)
    views = _column("SELECT view_name FROM duckdb_views() WHERE internal")
    names = [*views, *functions(), "pgx_nothing", "nobody", "unnest"]
    named = [n for n in names if WORD.fullmatch(n) and ("", n) not in CATALOG.relations]
    spelled = [
        *(s.format(n) for n in named for s in ("{}", "main.{}", "system.main.{}", '"{}"')),
        *TEXTS,
    ]
    spelled += [f"pg_catalog.{n}" for n in ("pg_class", "pg_type")]
    for relation, place in zip(spelled, itertools.cycle([*FROM[:3], "TABLE {x}", "(TABLE {x})"])):
        assert not check.admits(place.format(x=relation)), relation


def test_every_pragma_setting_and_statement() -> None:
    check = Refusing(CATALOG)
    pragmas = _column("SELECT function_name FROM duckdb_functions() WHERE function_type = 'pragma'")
    settings = _column("SELECT name FROM duckdb_settings()")
    tried = [f.format(p) for p in pragmas for f in ("PRAGMA {}", "PRAGMA {}('x')", "CALL {}('x')",
                                                    "SELECT * FROM pragma_{}('x')")]  # fmt: skip
    tried += [f.format(s) for s in settings for f in ("SET {} = 1", "RESET {}", "SET GLOBAL {} = 'x'",
              "SELECT current_setting('{}')", "SELECT getvariable('{}')", "PRAGMA {}=1")]  # fmt: skip
    assert len(tried) > 800
    assert not [sql for sql in tried if check.admits(sql)]


@pytest.mark.parametrize("sql", [
    "PREPARE p AS SELECT 1", "EXECUTE p", "DEALLOCATE p", "COPY pg_class TO '/tmp/x'", "COPY pg_class FROM '/tmp/x'",
    "COPY (SELECT 1) TO '/tmp/x'", "PIVOT pg_class ON relname", "UNPIVOT pg_class ON relname",
    "EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT 1", "DESCRIBE pg_class", "DESCRIBE SELECT 1", "SHOW pg_class",
    "SHOW TABLES", "SHOW ALL TABLES", "SUMMARIZE pg_class", "SUMMARIZE SELECT 1", "CALL pragma_version()",
    "PRAGMA version", "SET x = 1", "SET VARIABLE x = 1", "RESET x", "ATTACH 'x'", "DETACH x", "LOAD x", "INSTALL x",
    "EXPORT DATABASE 'x'", "IMPORT DATABASE 'x'", "VACUUM", "CHECKPOINT", "FORCE CHECKPOINT", "USE x", "BEGIN",
    "COMMIT", "ROLLBACK", "CREATE TABLE x (a INT)", "CREATE MACRO x() AS 1", "CREATE SECRET (TYPE s3)", "DROP TABLE x",
    "INSERT INTO pg_class SELECT 1", "UPDATE pg_class SET oid = 1", "DELETE FROM pg_class", "ALTER TABLE x RENAME TO y",
    "COMMENT ON TABLE x IS 'x'", "MERGE INTO x USING y ON true WHEN MATCHED THEN DELETE", "ANALYZE",
    "SELECT 1; SELECT 2", "", ";", "SELECT", "SELECT 1 INTO x", "UPDATE EXTENSIONS",
    # relations that are more than names
    "SELECT * FROM (DESCRIBE pg_class)", "SELECT * FROM (SUMMARIZE pg_class)", "SELECT * FROM (SHOW TABLES)",
    "SELECT * FROM pg_class PIVOT (max(oid) FOR relname IN ('a'))", "SELECT * FROM (PIVOT pg_class ON relname)",
    "SELECT * FROM pg_class UNPIVOT (a FOR b IN (oid))", "SELECT * FROM pg_class POSITIONAL JOIN pg_type",
    "SELECT * FROM pg_class ASOF JOIN pg_type USING (oid)", "SELECT * FROM pg_class SEMI JOIN pg_type USING (oid)",
    "SELECT * FROM pg_class ANTI JOIN pg_type USING (oid)", "SELECT * FROM pg_class TABLESAMPLE 10%",
    "SELECT * FROM pg_class USING SAMPLE 3", "SELECT * FROM pg_class AT (VERSION => 1)",
    "SELECT * FROM memory.main.pg_class", "SELECT * FROM system.main.duckdb_settings",
    "WITH a AS (SELECT 1 UNION SELECT * FROM a) SELECT * FROM a", "SELECT 1 FROM a, (WITH a AS (SELECT 1) SELECT 1) b",
    "WITH duckdb_tables AS (SELECT 1) SELECT 1", "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT 1",
    "WITH RECURSIVE a(x) USING KEY (x) AS (SELECT 1 UNION SELECT 2 FROM a) SELECT * FROM a",
    # columns that are more than names
    "SELECT COLUMNS('a') FROM pg_class", "SELECT COLUMNS(*) FROM pg_class", "SELECT *COLUMNS(*) FROM pg_class",
    "SELECT * EXCLUDE (oid) FROM pg_class", "SELECT * REPLACE (1 AS oid) FROM pg_class",
    "SELECT * RENAME (oid AS x) FROM pg_class", "SELECT * LIKE 'a%' FROM pg_class", "SELECT max(c.*) FROM pg_class c",
    "SELECT oid FROM pg_class QUALIFY true", "SELECT oid FROM pg_class GROUP BY ALL", "SELECT oid FROM pg_class ORDER BY ALL",
    "SELECT current_user", 'SELECT "user"', "SELECT current_schema", "SELECT LOCALTIME", 'SELECT "Current_Date"',
    "SELECT 1 UNION BY NAME SELECT 2", "SELECT 1 LIMIT 10%", "SELECT oid COLLATE nocase FROM pg_class",
    "SELECT [x FOR x IN [1]]", "SELECT MAP {1: 2}", "SELECT lower(string := 'a')", "SELECT unnest([[1]], max_depth := 2)",
    "SELECT '{}'::json -> read_text('x')", "SELECT read_text('x') -> 'a'", "SELECT list_transform([1], lambda x: glob(x))", "SELECT max(oid IGNORE NULLS) OVER () FROM pg_class",
    "SELECT max(oid) OVER (ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM pg_class",
    # types
    "SELECT 1::pg_name", "SELECT CAST('a' AS ENUM('a'))", "SELECT 1::main.bigint", "SELECT NULL::STRUCT(a INT)",
    "SELECT NULL::MAP(INT, INT)", "SELECT NULL::UNION(a INT)", "SELECT x'00'::GEOMETRY", "SELECT DEFAULT",
])  # fmt: skip
def test_forms_that_are_not_listed(sql: str) -> None:
    allowed = CATALOG.with_relations(["pg_class"])
    assert not Refusing(_without(allowed, "user")).admits(sql)


def _without(allowed: Listing, column: str) -> Listing:
    from dataclasses import replace

    views = own_views() - {name for _, name in allowed.relations}
    return replace(allowed, columns=allowed.columns - {column}, hidden=views)


@pytest.mark.parametrize("sql", [
    "SELECT 1", "TABLE pg_class", "SELECT * FROM PG_CLASS c, LATERAL (SELECT c.oid) x", "VALUES (1, 'a'), (2, NULL)",
    "SELECT c.* FROM pg_class c RIGHT JOIN pg_type USING (oid) NATURAL JOIN pg_am",
    "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM A WHERE n < 3) SELECT * FROM a",
    "WITH a AS (SELECT 1), b AS MATERIALIZED (SELECT * FROM a) SELECT (SELECT 1 FROM B) FROM b ORDER BY 1 DESC LIMIT 1",
    "SELECT DISTINCT ON (oid) oid, $1::int[] FROM pg_class WHERE oid = ANY($2) AND relname LIKE 'a' ESCAPE 'b'",
    "SELECT count(*), sum(oid) FILTER (WHERE true) OVER (PARTITION BY relname ORDER BY oid ROWS 1 PRECEDING) FROM pg_class",
    "SELECT unnest([{'x': 1}], recursive := true), list_transform([1], lambda v, i: v + i)",
    "SELECT EXTRACT(year FROM now()) - INTERVAL '1' DAY, 'a' SIMILAR TO 'b', 1 IS DISTINCT FROM 2, NOT EXISTS (SELECT 1)",
    'SELECT "user", amount FROM pgx_shapes.Orders', "SELECT a.current_user FROM (SELECT 1) AS a", "SELECT '{}' -> 'a' ->> 'b'",
    "(SELECT 1 EXCEPT SELECT 2) INTERSECT ALL SELECT 3", "SELECT GROUPING(oid) FROM pg_class GROUP BY ROLLUP (oid)",
])  # fmt: skip
def test_forms_that_are_listed(sql: str) -> None:
    assert Refusing(CATALOG).admits(sql)


def test_what_a_client_calls_is_in_its_own_list() -> None:
    """Through the words, the rewrite and the tree: PostgreSQL's names, and no other, in one schema."""
    from dpsql.serve.catalog.words import BUILTIN, ELSEWHERE, NO_NAMES

    check, known = Refusing(CATALOG), BUILTIN | set(ELSEWHERE)
    known |= {name[4:] for name in macros()}
    names = {n for n in functions() if WORD.fullmatch(n)} | macros()
    names |= {"pgx_stop", "pgx_set", "pgx_login", "pgx_as_json", "pgx_must_be", "pgx_series"}
    for name in sorted(names - NO_NAMES):
        for spelling in SPELLINGS[:12]:
            sql = f"SELECT {spelling.format(f=name, F=name.upper())}"
            read = tokens(sql)
            try:
                check_words(read)
                sent = rewrite_query(read, macros(), {})
            except WireError:
                continue
            if check.admits(sent):
                assert name in known, sql
                assert spelling.startswith(("{f}", "{F}", "pg_catalog.", '"')), sql


@pytest.mark.parametrize(("sql", "state"), [
    ("SELECT main.read_csv('x')", "3F000"), ("SELECT system.main.read_csv('x')", "0A000"),
    ("SELECT 'x'.upper()", "42601"), ("SELECT (1).abs()", "42601"), ("SELECT a.upper() FROM pg_class a", "3F000"),
    ("SELECT pgx_stop(1, true)", "42883"), ('SELECT "PGX_stop"(1, true)', "42883"), ("SELECT pg_catalog.pgf_version()", "42883"),
    ("SELECT * FROM pgx_nothing", "42703"), ("SELECT 'a' LIKE 'b' ESCAPE pgx_login()", "42883"), ("SELECT {'a': 1}", "42601"),
    (".upper('a')", "42601"), ("SELECT information_schema._pg_truetypid(1, 2)", None), ("SELECT pg_catalog.upper('a')", None),
])  # fmt: skip
def test_words_that_clients_may_not_write(sql: str, state: str | None) -> None:
    if state is None:
        check_words(tokens(sql))
        return
    with pytest.raises(WireError) as caught:
        check_words(tokens(sql))
    assert caught.value.sqlstate == state


def test_an_answer_that_was_admitted_for_one_set_of_relations_is_not_for_another() -> None:
    check = StatementCheck(GENERATED)
    check.check("SELECT * FROM m0", ["m0"])
    check.check("SELECT * FROM m0", ["m0"])
    with pytest.raises(NotListed):
        check.check("SELECT * FROM m0", ["m1"])
    with pytest.raises(NotListed):
        check.check("SELECT * FROM m0")


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.engines.duckdb.allowlist.MOST_KNOWN", 2)
    check = StatementCheck(GENERATED)
    for number in range(5):
        check.check(f"SELECT {number}")
    assert len(check._known) <= 2


def test_deep_statements_are_read_or_refused() -> None:
    check = Refusing(CATALOG)
    for depth in (50, 400, 3_000):
        check.admits("SELECT " + "lower(" * depth + "'a'" + ")" * depth)
        assert not check.admits("SELECT " + "lower(" * depth + "read_text('a')" + ")" * depth)


def test_a_field_or_class_that_is_not_known_is_refused() -> None:
    """What a later engine adds to its tree is refused until somebody has looked at it."""
    for sql in (
        "SELECT 1 FROM pg_class a JOIN pg_type b ON true",
        "SELECT lower('a'), max(1) OVER (), 1::int",
    ):
        tree = query_tree(sql)
        for node in list(_nodes(tree)):
            node["new"] = None
            with pytest.raises(NotListed):
                walk(tree, CATALOG)
            del node["new"]
            for tag in {"class", "type"} & node.keys():
                kept, node[tag] = node[tag], "NEW"
                with pytest.raises(NotListed):
                    walk(tree, CATALOG)
                node[tag] = kept
        walk(tree, CATALOG)


def test_a_name_is_the_same_in_every_field() -> None:
    for sql, path in (
        ("SELECT lower('a')", ["glob"]),
        ("SELECT 1 FROM pg_class", ["/x"]),
        ("SELECT 1::int", ["x"]),
    ):
        tree = query_tree(sql)
        found = [node for node in _nodes(tree) if "qualified_name" in node]
        found[0]["qualified_name"] = {"path": path}
        with pytest.raises(NotListed):
            walk(tree, CATALOG)


def _nodes(tree: object) -> Iterator[dict[str, object]]:
    if isinstance(tree, dict):
        if {"class", "type", "cte_map"} & tree.keys():
            yield tree
        for child in list(tree.values()):
            yield from _nodes(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from _nodes(child)


def _called(sql: str) -> set[str]:
    found = set[str]()
    todo: list[object] = [query_tree(sql)]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            found |= {node["function_name"]} if "function_name" in node else set()
            todo += node.values()
        elif isinstance(node, list):
            todo += node
    return found - {"row"}


def _any_schema(
    what: str, node: Mapping[str, Any], fields: tuple[str, ...], names: frozenset[str]
) -> str:
    """A planted fault: a dotted call is taken for a bare one."""
    name = str(node[fields[-1]]).lower()
    if name not in names:
        raise NotListed(what, name)
    return name


@pytest.mark.parametrize("fault", ["no check", "a dotted call escapes"])
def test_a_fault_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "no check":
        monkeypatch.setattr(sys.modules[__name__], "walk", lambda *_: None)
    else:
        monkeypatch.setattr(nodes, "check_listed_name", _any_schema)
        monkeypatch.setattr(nodes, "require_empty", lambda *_: ())
        for name in ("_CALL", "_WINDOW"):
            monkeypatch.setattr(nodes, name, lambda *_: ())
    with pytest.raises(AssertionError):
        test_every_function_in_every_spelling_and_place(CATALOG, SPELLINGS[:4])


def test_the_lists_name_what_the_engine_has() -> None:
    """A name with a mistake in it would allow nothing, and hide that something is missing."""
    own = {"btrim", "coalesce", "every", "extract", "initcap"}
    for allowed in (CATALOG, GENERATED):
        named = allowed.functions | allowed.rows | allowed.windows
        unknown = {n for n in named if not n.startswith(("pgf_", "pgx_", "pgt_"))} - set(
            functions()
        )
        assert unknown <= own, unknown
    assert nodes.VALUES
