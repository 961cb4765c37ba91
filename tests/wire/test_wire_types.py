"""Every type of a parameter, in text and binary, comes back as from a real PostgreSQL, or is refused.

Each value goes to both servers in both formats, as the bytes that PostgreSQL itself makes of it,
and is asked for in both. What comes back is the same value under the same type, the type that
``NAMED`` says instead, or an error with a SQLSTATE that says what it is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import psycopg
import pytest
from endpoint import Endpoint
from psycopg import pq
from support.postgres_server import shared_server

from dpsql.serve.pgwire.parameters import value

TEXT = 25
NAMED = {'"char"': TEXT}
"""Types that go by another name here."""
VALUES: dict[str, tuple[str, ...]] = {
    "bool": ("t", "f"),
    "int2": ("0", "-32768", "32767"),
    "int4": ("-2147483648", "2147483647"),
    "int8": ("-9223372036854775808", "9223372036854775807"),
    "float4": ("1.5", "-0", "NaN", "Infinity", "-Infinity", "3.4e38", "1e-45", "0.1", "999999", "1234567", "0.00012", "0.000012"),
    "float8": ("1.5", "-0", "NaN", "Infinity", "-Infinity", "1.7e308", "5e-324", "0.1", "1e15", "123456789012345680", "1e-5", "0.0001"),
    "numeric": ("0", "0.00", "1.5", "-1.50", "1e20", "12345678901234567890.123456789", "-0.0001", "10000", "99999.00010000",
                "9999999999999999999999999999.9999999999"),
    "text": ("", "a", "ä€😀", "it's", "a\\b", "x\ty"),
    "varchar": ("abc",), "bpchar": ("ab ",), "name": ("n",), '"char"': ("a",),
    "date": ("2024-02-29", "0001-01-01", "9999-12-31", "1970-01-01"),
    "timestamp": ("2024-02-29 12:34:56.789", "1960-01-01 00:00:00.000001", "0001-01-01 00:00:00"),
    "timestamptz": ("2024-02-29 12:34:56.789+00", "2024-01-01 00:00:00+05:30"),
    "time": ("00:00:00", "23:59:59.999999", "12:00:00"),
    "interval": ("1 day", "1 mon 2 days 03:04:05.006", "-1 day", "-00:00:01", "1 year", "0", "100000000 days", "36:00:00",
                 "1 year -2 days 00:00:01", "-13 mons 5 days -00:00:00.5"),
    "uuid": ("00000000-0000-0000-0000-000000000005", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "bytea": ("\\x00ff", "\\x", "\\x5c27", "a\\\\b\\001"),
    "json": ('{"a": 1}', "null"), "jsonb": ('{"a": 1}',),
    "oid": ("0", "4294967295"),
    "int2[]": ("{}", "{1,-2,NULL}"), "int4[]": ("{1,2}",), "int8[]": ("{9223372036854775807,NULL}",),
    "float8[]": ("{1.5,NaN,NULL}",), "text[]": ('{a,"b,c",NULL,"NULL",""}',), "bool[]": ("{t,f}",),
    "date[]": ("{2024-01-01,NULL}",), "timestamp[]": ('{"2024-01-01 00:00:00"}',),
    "uuid[]": ("{00000000-0000-0000-0000-000000000005}",),
}  # fmt: skip
REFUSED: dict[str, tuple[str, ...]] = {
    "numeric": ("NaN", "Infinity", "-Infinity", "1e28", "1e100", "1e500", "0.000000000000000000001"),
    "date": ("infinity", "-infinity", "0044-03-15 BC", "20000-01-01"),
    "timestamp": ("infinity", "-infinity", "0044-03-15 00:00:00 BC", "20000-01-01 00:00:00"),
    "timestamptz": ("infinity", "0044-03-15 00:00:00+00 BC"),
    "time": ("24:00:00",), "timetz": ("12:00:00+02",), "int4[]": ("{{1,2},{3,4}}",), "numeric[]": ("{1.50,NaN}",),
    "money": ("$1.00",), "xml": ("<a/>",), "bit": ("1",),
}  # fmt: skip
"""What has no counterpart: the error names a value, its format, or a type."""
ABOUT_VALUES = {"22003", "22007", "22008", "22021", "22P02", "22P03", "42704"}


@dataclass
class Both:
    """A connection to the endpoint, and one to PostgreSQL."""

    mine: psycopg.Connection
    real: psycopg.Connection


@pytest.fixture(scope="module")
def both(shop: Endpoint) -> Iterator[Both]:
    with (
        psycopg.connect(shop.dsn(), autocommit=True) as mine,
        psycopg.connect(shared_server().dsn, autocommit=True) as real,
    ):
        real.execute("SET timezone = 'UTC'")
        yield Both(mine, real)


def ask(
    connection: psycopg.Connection, sql: str, raw: bytes, oid: int, formats: tuple[int, int]
) -> tuple[str, int, bytes | None]:
    """SQLSTATE (empty when it worked), type and bytes of the answer."""
    found = connection.pgconn.exec_params(sql.encode(), [raw], [oid], formats[:1], formats[1])
    if found.status == pq.ExecStatus.TUPLES_OK:
        return "", found.ftype(0), found.get_value(0, 0)
    state = found.error_field(pq.DiagnosticField.SQLSTATE)
    assert state is not None
    return state.decode(), 0, None


def sent(both: Both, kind: str, text: str) -> Iterator[tuple[str, bytes, int, tuple[int, int]]]:
    """The value in both formats, as PostgreSQL writes it, to be answered in both."""
    row = both.real.execute("SELECT %s::regtype::oid", (kind,)).fetchone()
    assert row is not None
    sql = f"SELECT $1::{kind} AS v"
    state, _, binary = ask(both.real, sql, text.encode(), row[0], (0, 1))
    assert not state
    assert binary is not None
    for given, raw in ((0, text.encode()), (1, binary)):
        for wanted in (0, 1):
            yield sql, raw, row[0], (given, wanted)


@pytest.mark.parametrize(("kind", "text"), [(k, v) for k, many in VALUES.items() for v in many])
def test_a_value_comes_back_as_from_postgres(both: Both, kind: str, text: str) -> None:
    for sql, raw, oid, formats in sent(both, kind, text):
        state, named, found = ask(both.mine, sql, raw, oid, formats)
        _, real, wanted = ask(both.real, sql, raw, oid, formats)
        assert (state, named) == ("", NAMED.get(kind, real)), formats
        if kind == "numeric":  # zeros at the end are not kept
            assert value(found, formats[1], oid) == value(wanted, formats[1], oid) == Decimal(text)
        else:
            assert found == wanted, formats


@pytest.mark.parametrize(("kind", "text"), [(k, v) for k, many in REFUSED.items() for v in many])
def test_what_has_no_counterpart_is_refused(both: Both, kind: str, text: str) -> None:
    for sql, raw, oid, formats in sent(both, kind, text):
        assert ask(both.mine, sql, raw, oid, formats)[0] in ABOUT_VALUES, formats


OVER_TABLES = {
    "int2": ("SELECT country FROM countries WHERE population > $1 ORDER BY 1", "5"),
    "int8": ("SELECT country FROM countries WHERE population > $1 ORDER BY 1", "100"),
    "float8": ("SELECT country FROM countries WHERE population > $1 ORDER BY 1", "1e2"),
    "numeric": ("SELECT country FROM countries WHERE population > $1 ORDER BY 1", "99.5"),
    "text": ("SELECT country FROM countries WHERE country > $1 ORDER BY 1", "d"),
    "varchar": ("SELECT country FROM countries WHERE country > $1 ORDER BY 1", "d"),
    "bool": ("SELECT country FROM countries WHERE (population > 100) = $1 ORDER BY 1", "t"),
}


@pytest.mark.parametrize("kind", OVER_TABLES)
def test_values_mean_the_same_beside_columns(both: Both, shop: Endpoint, kind: str) -> None:
    """Rows of a public table, chosen by a parameter in either format."""
    sql, text = OVER_TABLES[kind]
    rows = shop.service.tools.engine.read_public(
        'SELECT t."country" AS country, t."population" AS population FROM "countries" AS t'
    ).to_pylist()
    chosen = {
        "int2": lambda r: r["population"] > 5,
        "text": lambda r: r["country"] > "d",
        "varchar": lambda r: r["country"] > "d",
    }.get(kind, lambda r: r["population"] > 100)
    wanted = sorted(r["country"] for r in rows if chosen(r))
    assert wanted
    for _, raw, oid, formats in sent(both, kind, text):
        found = both.mine.pgconn.exec_params(sql.encode(), [raw], [oid], formats[:1], formats[1])
        names = [(found.get_value(i, 0) or b"").decode() for i in range(found.ntuples)]
        assert names == wanted, found.error_message


@pytest.mark.parametrize("kind", ["bytea", "uuid", "interval", "time", "jsonb", "numeric"])
def test_values_that_columns_are_not_of_are_refused(both: Both, kind: str) -> None:
    text = {"numeric": "NaN"}.get(kind) or VALUES[kind][0]
    for _, raw, oid, formats in sent(both, kind, text):
        sql = "SELECT country FROM countries WHERE population = $1"
        state = ask(both.mine, sql, raw, oid, formats)[0]
        assert state[:2] in ("42", "22", "0A"), (state, formats)
