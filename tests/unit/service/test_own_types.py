"""Columns are answered in their own types, on the faces that are no wire; sums of decimals are exact."""

from __future__ import annotations

import functools
import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from support.corpus import unlimited
from support.datasets import in_memory
from support.services import service

from dpsql.cli.answer import answer_table as printed
from dpsql.cli.formats import encode_reply
from dpsql.diagnostics.refusal import Refused
from dpsql.policy.types import Kind
from dpsql.release.rows import OutputColumn
from dpsql.service import Reply, Service, plain

SELECTED = "SELECT article, price, size, weight, tag, since FROM articles WHERE article = 1"


@functools.cache
def _service() -> Service:
    return service("types", "types", unlimited)


def _answer(sql: str, *values: object) -> Reply:
    return _service().session().execute(sql, values)


def test_json_names_the_types_and_has_exact_values() -> None:
    found = json.loads(plain.to_json(_answer(SELECTED)))
    assert [c["type"] for c in found["columns"]] == [
        "integer", "decimal(7, 2)", "smallint", "real", "uuid", "timestamptz",
    ]  # fmt: skip
    assert found["rows"] == [
        [1, 1.01, 1, 0.125, "00000000-0000-4000-8000-000000000001", "2024-03-30T21:30:00+00:00"]
    ]


def test_arrow_has_them() -> None:
    assert _answer(SELECTED).table.schema.types == [
        pa.int32(), pa.decimal128(7, 2), pa.int16(), pa.float32(), pa.string(),
        pa.timestamp("us", "UTC"),
    ]  # fmt: skip


def test_the_terminal_and_csv_write_them() -> None:
    reply = _answer(SELECTED)
    assert printed(reply).row_count == 1
    assert encode_reply(reply, "csv", intervals=False).splitlines()[1] == (
        b'1,1.01,1,0.125,"00000000-0000-4000-8000-000000000001",2024-03-30 21:30:00.000000Z'
    )


def test_what_is_computed_is_of_a_kind_or_a_decimal() -> None:
    reply = _answer("SELECT article * 2, price + 1, CAST(article AS bigint) FROM articles LIMIT 1")
    assert [c.type for c in reply.columns] == ["bigint", "decimal(8, 2)", "bigint"]


@pytest.mark.parametrize("where", ["", " WHERE paid < 0.05", " WHERE article = 3"])
def test_sums_of_decimals_are_exact(where: str) -> None:
    """The last digit too, where the grid of other numbers rounds it away."""
    (mine,) = _answer(f"SELECT SUM(paid) FROM sales{where}").table.column(0).to_pylist()
    ((wanted,),) = in_memory("types").execute(f"SELECT SUM(paid) FROM sales{where}").fetchall()
    assert mine == wanted
    assert isinstance(mine, Decimal)


def test_sums_of_groups_are_exact_too() -> None:
    sql = "SELECT article, SUM(paid) AS total, COUNT(*) AS n FROM sales GROUP BY article"
    mine = {a: total for a, total, n in _rows(_answer(sql)) if n}
    assert mine == {a: total for a, total, n in in_memory("types").execute(sql).fetchall()}


def _rows(reply: Reply) -> list[tuple[object, ...]]:
    return plain.python_rows(reply)


def test_instants_with_an_offset_are_read_in_utc() -> None:
    sql = "SELECT article FROM articles WHERE since = {}"
    for constant in ("'2024-03-30T23:30:00+02:00'", "TIMESTAMPTZ '2024-03-30 16:30:00-05'"):
        assert _rows(_answer(sql.format(constant))) == [(1,)]
    aware = datetime(2024, 3, 30, 21, 30, tzinfo=UTC)
    assert _rows(_answer(sql.format("$1"), aware)) == [(1,)]


@pytest.mark.parametrize(
    ("sql", "headline"),
    [
        ("SELECT since AT TIME ZONE 'CEST' FROM articles", "takes the literal name of a zone"),
        ("SELECT since AT TIME ZONE name FROM articles", "takes the literal name of a zone"),
        (
            "SELECT made AT TIME ZONE 'Europe/Berlin' FROM articles",
            "is not answered for a value of type date",
        ),
        ("SELECT name::uuid FROM articles", "CAST to uuid is not answered"),
        ("SELECT * FROM articles WHERE tag = 'a'", "'a' is not a uuid"),
        ("SELECT * FROM articles WHERE since > 'noon'", "'noon' is not a timestamp"),
        ("SELECT * FROM articles WHERE added > '2024-03-30T23:30:00+02:00'", "is not a timestamp"),
    ],
)
def test_what_has_no_one_meaning_is_refused(sql: str, headline: str) -> None:
    with pytest.raises(Refused) as caught:
        _service().session().prepare(sql)
    assert headline in caught.value.headline


def test_a_parameter_is_cast_before_its_zone_is_named() -> None:
    """Whether it was an instant is not seen here any more, and means the opposite."""
    at = datetime(2024, 3, 30, 21, 30)  # noqa: DTZ001
    with pytest.raises(Refused, match="is not answered for a value of type timestamp"):
        _answer("SELECT $1 AT TIME ZONE 'Europe/Berlin'", at)
    local = _answer("SELECT $1::timestamptz AT TIME ZONE 'Europe/Berlin'", at)
    instant = _answer("SELECT $1::timestamp AT TIME ZONE 'Europe/Berlin'", at)
    assert _rows(local) == [(datetime(2024, 3, 30, 22, 30),)]  # noqa: DTZ001
    assert _rows(instant) == [(datetime(2024, 3, 30, 20, 30, tzinfo=UTC),)]


@pytest.mark.parametrize(
    ("name", "held", "other"),
    [
        ("smallint", [1, -(2**15), None], 2**15),
        ("integer", [1, -(2**31), None], 2**31),
        ("decimal(3, 1)", [1.5, -99.0, None], 100.0),
        ("decimal(3, 1)", [99.94], 99.96),
    ],
)
def test_what_a_type_does_not_hold_is_null(
    name: str, held: list[float | None], other: float
) -> None:
    """Types are no wider in the source: such a value would be a defect, and must not be an error."""
    kind = Kind.DOUBLE if name.startswith("decimal") else Kind.INTEGER
    shown = OutputColumn("x", kind, name).shown(pa.chunked_array([[*held, other]]))
    assert [None if v is None else round(float(v), 1) for v in shown.to_pylist()] == [
        *(v if v is None else round(v, 1) for v in held), None,
    ]  # fmt: skip


def test_the_time_of_a_statement_is_an_instant() -> None:
    """The clock of tests stands at noon of 2025-06-01, in UTC."""
    reply = _answer(
        "SELECT now() AS at, now() AT TIME ZONE 'Europe/Berlin' AS there FROM articles LIMIT 1"
    )
    assert [c.type for c in reply.columns] == ["timestamptz", "timestamp"]
    assert _rows(reply) == [(datetime(2025, 6, 1, 12, tzinfo=UTC), datetime(2025, 6, 1, 14))]  # noqa: DTZ001


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("to_timestamp(article * 0 + 1711848600)", "03:30"),
        ("(SELECT MAX(c) FROM (VALUES (TIMESTAMPTZ '2024-03-31 01:30:00Z')) AS v(c))", "03:30"),
        ("g.t", "03:30"),
        ("GREATEST(g.t, TIMESTAMP '2000-01-01 00:00:00')", "03:30"),
        ("CASE WHEN article = 1 THEN g.t END", "03:30"),
        ("NULLIF(g.t, TIMESTAMP '2000-01-01 00:00:00')", "03:30"),
        ("COALESCE(NULL, g.t)", "03:30"),
        ("DATE_BIN('30 minutes', g.t, TIMESTAMP '2000-01-01 00:00:00')", "03:30"),
        ("LAG(g.t, 0) OVER ()", "03:30"),
        ("MAX(g.t) OVER ()", "03:30"),
        ("g.t::timestamp", "00:30"),
        ("DATE_BIN('30 minutes', g.t::timestamp, TIMESTAMP '2000-01-01 00:00:00')", "00:30"),
    ],
)
def test_what_is_made_of_instants_is_one(value: str, wanted: str) -> None:
    """Of an instant the zone gives local time; of a timestamp it gives the instant."""
    series = "GENERATE_SERIES(TIMESTAMPTZ '2024-03-31 01:30:00Z', TIMESTAMPTZ '2024-03-31 01:30:00Z', INTERVAL '1 day')"
    inner = f"SELECT {value} AS x FROM articles, {series} AS g(t) WHERE article = 1"
    reply = _answer(f"SELECT x AT TIME ZONE 'Europe/Berlin' AS y FROM ({inner}) AS s")
    ((at,),) = _rows(reply)
    assert isinstance(at, datetime)
    assert f"{at:%H:%M}" == wanted
    assert (at.tzinfo is None) == (wanted == "03:30")
