"""What a client sends is read in time that grows with its length, whatever it is."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable
from decimal import Decimal

import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from talk import Client, FixedHouse, errors, kinds, message, query, startup

from dpsql.diagnostics.refusal import Refused
from dpsql.serve.catalog.casts import pack_casts
from dpsql.serve.catalog.names import column_names
from dpsql.serve.catalog.privileges import cast_names
from dpsql.serve.lists import with_lists
from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.errors import WireError
from dpsql.serve.pgwire.messages import Startup
from dpsql.serve.pgwire.parameters import value
from dpsql.serve.pgwire.startup import read_start_parameters
from dpsql.serve.tokens import tokens
from dpsql.serve.uses import in_byte_order, in_database, tables, with_limits
from dpsql.sql.parse import Source, parse

LONG = 4.0
"""Seconds of this thread's own work. Each case takes some milliseconds, a tenth of a second where lines are
counted and the machine is slow; read in a square or a power of its length it takes far longer."""


def _worked(do: Callable[[], object]) -> float:
    begun = time.thread_time()
    with contextlib.suppress(Refused, WireError):
        do()
    return time.thread_time() - begun


def test_a_proof_with_many_extensions(shop: Endpoint) -> None:
    client = Client(FixedHouse(shop.house))
    client.send(startup("nobody"))
    first = b"n,,n=,r=abc"
    client.send(message("p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
    data = message("p", b"c=biws,r=x" + b",a====" * 1000)
    assert _worked(lambda: client.send(data)) < LONG
    assert errors(client.received)[-1:] == ["08P01"]


@pytest.mark.parametrize("options", ["-" * 9_000, "--a\\ " * 1_800, "-c " * 3_000])
def test_options_that_are_none(options: str) -> None:
    assert (
        _worked(lambda: read_start_parameters(Startup(0, {"user": ROLE, "options": options})))
        < LONG
    )


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("-c a=b --c-d=e", {"a": "b", "c_d": "e"}), ("-ca=b", {"a": "b"}), ("-c  a=\\ b=", {"a": " b="}),
        ("-c a -d x=y --=z", {}), ("-c -c a=b", {}), ("-c a\\=b=c", {"a=b": "c"}),
    ],
)  # fmt: skip
def test_options_are_read_as_a_command_line(options: str, settings: dict[str, str]) -> None:
    found = read_start_parameters(Startup(0, {"user": ROLE, "options": options}))
    assert found.settings == settings


def _read(sql: str) -> tuple[str, list[object]]:
    text, _, values = with_lists(sql, tokens(sql), [[1], 2])
    return text, values


NESTED = [
    ("a=any(" * 4_000, "a=any(" * 4_000, [[1], 2]),
    ("a=any($1) " * 4_000, "a IN (1) " * 4_000, [2]),
    ("a=any(" * 4_000 + ")" * 4_000, "a=any(" * 4_000 + ")" * 4_000, [[1], 2]),
    ("a=any(array[" * 4_000 + "1", "a=any(array[" * 4_000 + "1", [[1], 2]),
    ("(" * 4_000 + "a=any($1)" + ")" * 4_000, "(" * 4_000 + "a IN (1)" + ")" * 4_000, [2]),
    ("a=any($1) and b=$2 and (" * 2_000, "a IN (1) and b=$1 and (" * 2_000, [2]),
    ("a=any(" * 4_000 + "array[1, 2])" + ")" * 3_999,
     "a=any(" * 3_999 + "a IN (1, 2)" + ")" * 3_999, [[1], 2]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "text", "values"), NESTED)
def test_lists_in_one_another(sql: str, text: str, values: list[object]) -> None:
    """Lists are read in time that grows with the text, each where it stands, and nothing else is."""
    assert _worked(lambda: _read(sql)) < LONG
    assert _read(sql) == (text, values)


def test_many_parameters_close_ranks() -> None:
    sql = "SELECT " + ", ".join(f"${i}" for i in range(2, 20_000)) + " LIMIT $1"
    assert _worked(lambda: with_limits(sql, tokens(sql), [5] * 20_000)) < LONG


@pytest.mark.parametrize(
    "sql", ["x" + "::int" * 4_000, "[" * 4_000 + ")" * 600, "(" * 9_000, "'1'::name," * 4_000]
)
def test_names_of_columns_of_deep_expressions(sql: str) -> None:
    read = tokens("SELECT " + sql)
    assert _worked(lambda: column_names(read)) < LONG
    assert _worked(lambda: pack_casts(read)) < LONG


@pytest.mark.parametrize("end", ["", "'a', 'select'" + ")" * 6_000])
def test_calls_in_one_another(end: str) -> None:
    read = tokens("SELECT " + "has_table_privilege(" * 6_000 + end)
    assert _worked(lambda: cast_names(read)) < LONG


def test_brackets_before_names_of_queries() -> None:
    read = tokens("WITH " + "(" * 3_000 + ") AS ()" * 3_000)
    assert _worked(lambda: tables(read)) < LONG


def test_orders_and_databases_that_say_nothing() -> None:
    text = 'a COLLATE "C",' * 20_000
    read = tokens(text)
    assert _worked(lambda: in_byte_order(text, read)) < LONG
    tabled = "SELECT 1 FROM " + "shop.public.t, " * 8_000
    read = tokens(tabled)
    assert _worked(lambda: in_database(tabled, read, "shop")) < LONG


@pytest.mark.parametrize(
    "call", ["set_config('a.b', 'x', false)", "set_config('a.b', repeat('x', 30000), false)"]
)
def test_a_statement_sets_so_much(shop: Endpoint, call: str) -> None:
    """Rows that cost nothing to make do not fill the session, nor keep others waiting for it."""
    client = Client(FixedHouse(shop.house))
    client.login(ROLE, PASSWORD)
    said = client.send(query(f"SELECT {call} FROM generate_series(1, 200)"))
    assert errors(said) == ["22023"]
    assert errors(client.send(query("SELECT current_setting('a.b')"))) == ["42704"]
    assert errors(client.send(query(f"SET a.{'b' * 10_000} = 1"))) == ["22023"]
    said = client.send(
        query("SELECT pg_cancel_backend(n) FROM generate_series(2000000000, 2000000999) t(n)")
    )
    assert 0 < kinds(said).count("N") < 200


def test_deep_json(shop: Endpoint) -> None:
    client = Client(FixedHouse(shop.house))
    client.login(ROLE, PASSWORD)
    for depth in (300, 900, 3_000, 100_000):
        for kind in ("json", "jsonb"):
            said = client.send(query(f"SELECT '{'[' * depth}{']' * depth}'::{kind}"))
            assert set(errors(said)) <= {"54000", "0A000"}, "too deep, or too long to be read"


def test_moments_with_blanks() -> None:
    text = b"2024-01-01 10:00" + b" " * 30_000 + b"x"
    assert _worked(lambda: value(text, 0, oids.TIMESTAMP)) < LONG


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "0e999999", "9" * 100_000])
def test_numbers_that_are_too_large_to_reckon_with(text: str) -> None:
    with pytest.raises(WireError, match="invalid input syntax"):
        value(text.encode(), 0, oids.NUMERIC)
    assert value(b"1.50", 0, oids.NUMERIC) == Decimal("1.50")
    assert value(b"NaN", 0, oids.NUMERIC).is_nan()


@pytest.mark.parametrize("start", ["SELECT $1x$ ", "SELECT "])
def test_tags_that_never_close(start: str) -> None:
    text = start + " ".join(f"$t{i}$" for i in range(12_000))
    with pytest.raises(Refused):
        parse(Source(text))
    assert _worked(lambda: parse(Source(text))) < LONG
