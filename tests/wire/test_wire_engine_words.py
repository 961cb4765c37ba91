"""No reply of the catalog holds words of the engine behind it: not in errors, names, or names of types."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from talk import Client, FixedHouse, errors, fields, kinds, messages, query

from dpsql.engines.catalog.content import CatalogFailed
from dpsql.serve.catalog import catalog
from dpsql.serve.pgwire.errors import WireError

STATEMENTS = """
select x from pg_class
select c.nope from pg_class c, pg_namespace n
select relname from pg_class group by oid
select sum(relname) from pg_class
select relname + 1 from pg_class
select lower(1, 2)
select substr('a')
select pg_get_expr('a')
select format_type('x', 1)
select 'a' + 1
select 'abc'::int
select '2020-13-01'::date
select 1/0
select 9999999999::int
select 100000000000000000000000000000::bigint
select repeat('x', 10000000)
select * from pg_class where relname = 5
select * from pg_class where oid = 'abc'
select 'nope'::regclass
select 1 union select 'a'
select relname from pg_class union select 1, 2
select (select 1, 2)
select (select oid from pg_class)
select * from pg_class order by 500
select * from pg_class limit -1
select * from pg_class limit 'a'
select count(*) from pg_class having nope
select nope.* from pg_class
select * from pg_class c join pg_class c on true
select relname from pg_class, pg_namespace where oid = 1
select * from pg_class join pg_namespace using (nope)
select 1 from
select $1
select 'a'::nope
select array[1, 'a']
select '{1,2}'::int[]
select row(1, 2)
select unnest(1)
select generate_series('a', 'b')
select * from generate_series(1, 'x')
select interval 'nope'
select timestamp 'nope'
select extract(nope from now())
select to_char(1, 'x')
select 'a' ~ '('
select regexp_replace('a', '(', 'b')
select 'a' like 'b' escape 'cc'
select sqrt(-1)
select ln(0)
select 2 ^ 100000
select chr(-1)
select current_setting('nope')
select pg_terminate_backend('a')
select has_table_privilege('nope', 'select')
select coalesce()
select greatest()
select case when 'a' then 1 end
select 1 where 'a'
select sum(1) filter (where 'x')
select 1 in (select relname from pg_class)
select 1 = any(array['a'])
select 1 = any(5)
select exists(select nope)
with t as (select 1) select x from t
select avg('a') from pg_class
select percentile_cont(0.5) within group (order by relname) from pg_class
select json_build_object('a')
select '{'::json
select ''::uuid
select 'zz'::bytea
select '1'::numeric(5,2) + 'a'
select 1::decimal(100,2)
select 12345.6::numeric(2,1)
select pg_size_pretty('a')
select now() + 1
select now() + 'x'
select date '2020-01-01' - 'x'
select 'a' collate "nope"
select * from information_schema.tables where nope = 1
select * from information_schema.nope
select * from pg_class tablesample system(10)
select * from (values (1, 2), (3)) v
values (1), ('a')
select a from (values (1)) v(a, b)
select lag(relname, 'a') over () from pg_class
select relname from pg_class window w as (order by nope)
select sum(sum(1)) from pg_class
select relname from pg_class where count(*) > 1
select array_length(1, 1)
select array_to_string(1, ',')
select string_to_array(1, 2)
select quote_ident(1)
select pg_get_indexdef('a')
select *, pg_get_expr(adbin, adrelid), 1::text, generate_series(1, 2), 'a' || 'b' from pg_attrdef
select *, pg_table_is_visible(oid), *, case when true then 1 end from pg_namespace
select * from (select pg_typeof(1), 1 + 1, cast(1 as text), array[1]) t
select pg_typeof(relname), pg_typeof(relkind), pg_typeof(oid), pg_typeof(1.5), pg_typeof(null) from pg_class
""".strip().split("\n")

WORDS = re.compile(
    r"Binder|Parser|Catalog Error|Conversion|INTERRUPT|Could not|Referenced|Candidate|LINE 1|DuckDB|duckdb"
    r"|pg[ftx]_|_LITERAL|ENUM|STRUCT|VARCHAR|BIGINT|INT32|INT64|DOUBLE|DECIMAL|CAST\(|list_transform|lambda"
    r"|explicit cast|No function matches|[Mm]acro|INTEGER|varchar"
)


@pytest.fixture
def client(shop: Endpoint) -> Client:
    found = Client(FixedHouse(shop.house))
    found.login(ROLE, PASSWORD)
    return found


def _said(client: Client, statements: Sequence[str] = STATEMENTS) -> dict[str, str]:
    """What each statement is answered, without its rows where it names none of the engine's types."""
    found = {}
    for sql in statements:
        data = client.send(query(sql))
        assert kinds(data).endswith("Z")
        assert "XX000" not in errors(data), sql
        wanted = "ENT" + ("D" if "typeof" in sql else "")
        told = [body for kind, body in messages(data) if kind in wanted]
        found[sql] = b"\n".join(told).decode("utf-8", "replace")
    return found


def test_no_reply_holds_words_of_the_engine(client: Client) -> None:
    assert [(sql, said) for sql, said in _said(client).items() if WORDS.search(said)] == []


def test_words_of_the_engine_would_be_noticed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(failure: CatalogFailed, _: object) -> WireError:
        return WireError("42703", "it failed", failure.words)

    monkeypatch.setattr(catalog, "translate_failure", told)
    monkeypatch.setattr(catalog, "shown_names", lambda _, found: list(found))
    statements = [sql.replace("select", "SELECT", 1) for sql in STATEMENTS]  # none was answered yet
    noticed = [sql for sql, said in _said(client, statements).items() if WORDS.search(said)]
    assert len(noticed) > len(STATEMENTS) / 3
    assert any(sql.startswith("SELECT *, pg_get_expr") for sql in noticed)


def test_a_column_that_does_not_exist_is_named_in_the_words_of_the_client(client: Client) -> None:
    for sql, name in (("select x from pg_class", "x"), ("select c.Nope from pg_class c", "nope")):
        ((_, body),) = [m for m in messages(client.send(query(sql))) if m[0] == "E"]
        assert fields(body)["M"] == f'column "{name}" does not exist'
        assert "D" not in fields(body)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("relname", "name"), ("relkind", '"char"'), ("oid", "oid"), ("reltuples", "real"),
        ("relnatts", "smallint"), ("1", "integer"), ("1::bigint", "bigint"), ("1.5", "numeric"),
        ("1::float8", "double precision"), ("true", "boolean"), ("null", "unknown"),
        ("now()", "timestamp with time zone"), ("current_date", "date"), ("array[1]", "integer[]"),
        ("'a'::text", "text"), ("array['a']", "text[]"), ("interval '1 day'", "interval"),
    ],
)  # fmt: skip
def test_types_have_the_names_of_postgresql(client: Client, value: str, name: str) -> None:
    said = client.send(query(f"select pg_typeof({value}) from pg_class limit 1"))
    assert [body[6:].decode() for kind, body in messages(said) if kind == "D"] == [name]
