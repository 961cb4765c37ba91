"""Forms of SQL that clients write about the catalog, and that its engine does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from endpoint import Endpoint

FORMS: list[tuple[str, list[tuple[Any, ...]]]] = [
    (("SELECT relname FROM pg_class c WHERE relkind = 'r' AND EXISTS (SELECT FROM pg_constraint k"
     " WHERE k.conrelid = c.oid AND contype = 'f') AND relnamespace = 'public'::regnamespace"
     " ORDER BY 1"), [("orders",), ("visits",)]),
    (("SELECT relname FROM pg_class WHERE oid = ANY(ARRAY(SELECT conrelid FROM pg_constraint"
     " WHERE contype = 'f')) ORDER BY 1"), [("orders",), ("visits",)]),
    (("SELECT c.relname, k, f, n FROM pg_constraint con JOIN pg_class c ON c.oid = conrelid,"
     " unnest(conkey, confkey) WITH ORDINALITY u(k, f, n) WHERE contype = 'f' ORDER BY 1"),
     [("orders", 1, 1, 1), ("visits", 1, 1, 1)]),
    ("SELECT a, b FROM unnest(ARRAY[1, 2], ARRAY['x']) AS u(a, b) ORDER BY a", [(1, "x"), (2, None)]),
    (("SELECT n FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey, i.indoption) WITH ORDINALITY"
     " AS u(k, o, n) WHERE indrelid = 'customers'::regclass"), [(1,)]),
    (("SELECT count(*) FROM pg_attribute a WHERE attrelid = 'orders'::regclass AND attnum > 0"
     " AND atttypid = ANY('{int8,date}'::regtype[])"), [(2,)]),
    (("SELECT COALESCE(proallargtypes::regtype[], proargtypes::regtype[])::text[] FROM pg_proc"
     " WHERE proname = 'substr' ORDER BY pronargs LIMIT 1"), [(["text", "integer"],)]),
    (("SELECT proargtypes::regtype[]::text[], oidvectortypes(proargtypes) FROM pg_proc"
     " WHERE proname = 'translate'"), [(["text", "text", "text"], "text, text, text")]),
    ("SELECT datcollate as collate FROM pg_database", [("C",)]),
    (("SELECT at.attname FROM pg_catalog.pg_attribute at WHERE at.attrelid = 'orders'::regclass"
     " AND at.attnum = 2"), [("amount",)]),
    (("SELECT substring('a=12;b' from 'a=([0-9]*)'), substring('xay' from 'a.'),"
     " substring('x' from 'y'), substring('abc' from 2)"), [("12", "ay", None, "bc")]),
    (("SELECT (d).grantee FROM (SELECT aclexplode(relacl) AS d FROM pg_class"
     " WHERE relname = 'orders') a"), []),
    (("SELECT relname, heap_blks_read FROM pg_statio_all_tables WHERE schemaname = 'public'"
     " ORDER BY 1"), [(t, None) for t in ("countries", "customers", "orders", "visits")]),
    ("SELECT c.xmin::text::int FROM pg_class c WHERE relname = 'orders'", [(2,)]),
]  # fmt: skip


@pytest.fixture
def conn(shop: Endpoint) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shop.dsn(), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize(("sql", "rows"), FORMS)
def test_a_form_is_answered(
    conn: psycopg.Connection, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert conn.execute(sql).fetchall() == rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pgx_matched('a', 'a', 0)",
        "SELECT pgx_names(ARRAY[23], 'regtype')",
        "SELECT * FROM unnest(ARRAY[1], glob('/*')) AS u(a, b)",
        "SELECT substring(read_text('/etc/passwd') from 'a')",
        "SELECT 1 = ANY(ARRAY(SELECT getvariable('settings')))",
        "SELECT relname FROM pg_class WHERE EXISTS (SELECT FROM duckdb_tables())",
    ],
)
def test_no_form_brings_in_what_is_not_listed(conn: psycopg.Connection, sql: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        conn.execute(sql)
    assert caught.value.sqlstate in ("42883", "42P01", "0A000", "42601")
