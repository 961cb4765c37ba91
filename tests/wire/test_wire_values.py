"""Values on the wire: few rows and many are written alike, and what is written reads back."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.errors import WireError
from dpsql.serve.pgwire.oids import column
from dpsql.serve.pgwire.parameters import check_formats, items, spread, value
from dpsql.serve.pgwire.rows import FEW, data_rows
from dpsql.serve.pgwire.scram import Verifier
from dpsql.serve.pgwire.script import read_script
from dpsql.serve.pgwire.transaction import Transaction
from dpsql.serve.pgwire.values import encoder
from dpsql.serve.pgwire.variables import Variables

MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))  # noqa: DTZ001
KINDS = {
    oids.BOOL: (pa.bool_(), st.booleans()),
    oids.INT8: (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    oids.FLOAT8: (pa.float64(), st.floats()),
    oids.TEXT: (pa.string(), st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
    oids.DATE: (pa.date32(), st.dates()),
    oids.TIMESTAMP: (pa.timestamp("us"), MOMENTS),
}


def _fields(rows: bytes) -> list[list[bytes | None]]:
    found, at = [], 0
    while at < len(rows):
        assert rows[at : at + 1] == b"D"
        (length, count) = struct.unpack_from("!iH", rows, at + 1)
        end, at, row = at + 1 + length, at + 7, []
        for _ in range(count):
            (size,) = struct.unpack_from("!i", rows, at)
            row.append(None if size < 0 else rows[at + 4 : at + 4 + size])
            at += 4 + max(0, size)
        assert at == end
        found.append(row)
    return found


def _same(a: object, b: object) -> bool:
    return a == b or (a != a and b != b)


@settings(max_examples=30)
@given(st.data(), st.sampled_from([0, 1]))
def test_few_and_many_rows_read_back(data: st.DataObject, code: int) -> None:
    picked = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    drawn = [data.draw(st.lists(st.none() | KINDS[o][1], min_size=3, max_size=3)) for o in picked]
    columns = [column(f"c{i}", oid) for i, oid in enumerate(picked)]
    for repeats in (1, FEW):
        arrays = [pa.array(v * repeats, KINDS[o][0]) for o, v in zip(picked, drawn, strict=True)]
        table = pa.Table.from_arrays(arrays, names=[c.name for c in columns])
        rows = _fields(data_rows(table, columns, [code] * len(columns)))
        assert len(rows) == 3 * repeats
        for number, row in enumerate(rows):
            for raw, oid, values in zip(row, picked, drawn, strict=True):
                assert _same(value(raw, code, oid), values[number % 3])


def test_very_many_rows_go_in_parts() -> None:
    table = pa.table({"a": pa.array(range(40_000), pa.int64())})
    for code in (0, 1):
        rows = _fields(data_rows(table, [column("a", oids.INT8)], [code]))
        assert [value(r[0], code, oids.INT8) for r in rows] == list(range(40_000))


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=7, min_value=-(10**15), max_value=10**15
    )
)
def test_numerics_read_back(number: Decimal) -> None:
    for code in (0, 1):
        assert value(encoder(oids.NUMERIC, code)(number), code, oids.NUMERIC) == number


@given(st.lists(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_arrays_read_back(values: list[str | None]) -> None:
    assert value(encoder(1009, 1)(values), 1, 1009) == values
    assert items(encoder(1009, 0)(values).decode()) == values


@pytest.mark.parametrize(
    ("oid", "given_", "text"),
    [
        (oids.TIMESTAMPTZ, dt.datetime(2024, 1, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=2))), b"2024-01-01 03:00:00+00"),
        (oids.INTERVAL, dt.timedelta(days=2, seconds=61, microseconds=500), b"2 days 00:01:01.0005"),
        (oids.INTERVAL, dt.timedelta(seconds=5), b"00:00:05"),
        (oids.INTERVAL, dt.timedelta(days=-2), b"-2 days"),
        (oids.INTERVAL, dt.timedelta(seconds=-1), b"-00:00:01"),
        (1009, ["a", "b c", "NULL", "", None], b'{a,"b c","NULL","",NULL}'),
        (oids.BYTEA, b"\x00\xff", b"\\x00ff"),
        (oids.NUMERIC, Decimal("NaN"), b"NaN"),
        (oids.INT2VECTOR, [1, 2], b"1 2"),
        (oids.UUID, uuid.UUID(int=5), b"00000000-0000-0000-0000-000000000005"),
        (1000, [[True], None], b"{{t},NULL}"),
    ],
)  # fmt: skip
def test_text_is_that_of_postgres(oid: int, given_: object, text: bytes) -> None:
    assert encoder(oid, 0)(given_) == text
    if oid != 1000:
        assert encoder(oid, 1)(given_)


@pytest.mark.parametrize(
    ("text", "oid", "read_back"),
    [
        ("2024-01-05 +00", oids.DATE, dt.date(2024, 1, 5)),
        ("2024-01-05 10:00:00+02", oids.TIMESTAMPTZ, dt.datetime(2024, 1, 5, 8)),  # noqa: DTZ001
        ("2024-01-05T10:00:00Z", oids.TIMESTAMP, dt.datetime(2024, 1, 5, 10)),  # noqa: DTZ001
        ("yes", oids.BOOL, True),
        ("{1,NULL}", 1016, [1, None]),
        ("x", oids.UNKNOWN, "x"),
    ],
)
def test_parameters_in_text(text: str, oid: int, read_back: object) -> None:
    assert value(text.encode(), 0, oid) == read_back


@pytest.mark.parametrize(
    ("raw", "code", "oid", "state"),
    [
        (b"x", 0, oids.INT8, "22P02"), (b"\0\0", 1, oids.INT8, "22P03"), (b"\xff", 0, oids.TEXT, "22021"),
        (struct.pack("!hhHHh", 1, 0, 0, 0, 10_001), 1, oids.NUMERIC, "22P03"),
        (struct.pack("!iiI", 2, 0, 23), 1, 1007, "22P03"), (b"a", 0, 1007, "22P02"),
        (b"2024-13-01", 0, oids.DATE, "22P02"), (b"9" * 40, 0, oids.INT8, "22P02"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit(raw: bytes, code: int, oid: int, state: str) -> None:
    with pytest.raises(WireError) as caught:
        value(raw, code, oid)
    assert caught.value.sqlstate == state


def test_formats_spread() -> None:
    assert spread((), 2) == (0, 0)
    assert spread((1,), 2) == (1, 1)
    assert spread((1, 0), 2) == (1, 0)
    with pytest.raises(WireError):
        check_formats((1, 0), 3, results=True)


def test_verifiers_are_those_of_postgres() -> None:
    made = Verifier.of("pencil\u00ad\u2000", bytes(16))
    assert Verifier.parse(str(made)) == made
    assert made == Verifier.of("pencil ", bytes(16))
    for text in ("SCRAM-SHA-256$4096:...", "SCRAM-SHA-256$4096:AA==$AA==:AA==", "md5abc"):
        assert Verifier.parse(text) is None


@pytest.mark.parametrize(
    "text",
    ["FETCH", "DECLARE c CURSOR", "SET", "SET x", "SHOW", "PREPARE q AS", "EXECUTE q (a b)", "CLOSE",
     "COPY (SELECT 1) FROM STDIN", "COPY (SELECT 1) TO STDOUT (FORMAT xml)", "DISCARD x", "BEGIN; SAVEPOINT",
     "COPY (SELECT 1) TO STDOUT (DELIMITER 'ab')", "COMMIT PREPARED 'x'", "PREPARE TRANSACTION 'x'",
     "DECLARE c CURSOR FOR COMMIT", "ROLLBACK AND", "EXECUTE q ('a'", "FETCH 1.5 FROM c"],
)  # fmt: skip
def test_statements_that_do_not_read(text: str) -> None:
    found = read_script(text)
    assert isinstance(found[-1], WireError)


def test_settings_have_limits() -> None:
    variables = Variables("me")
    variables.set("timezone", "Europe/Berlin")
    assert variables.get("timezone") == "UTC"
    for name, given_ in (("server_version", "9"), ("client_encoding", "latin1"), ("no-name", "x"),
                         ("a", "x" * 20_000), ("role", "other")):  # fmt: skip
        with pytest.raises(WireError):
            variables.set(name, given_)
    for text, seconds in (("5s", 5.0), ("250", 0.25), ("2min", 120.0), ("x", 0.0), ("0", 0.0)):
        variables.set("statement_timeout", text)
        assert variables.timeout == seconds
    with pytest.raises(WireError):
        variables.get("nothing")


def test_what_was_saved_is_not_copied_and_does_not_change() -> None:
    variables = Variables("me")
    variables.begin("application_name", "first")
    saved = variables.all()
    assert variables.all() is saved
    for change in (
        lambda: variables.set("my.name", "x"),
        lambda: variables.set("default_transaction_isolation", "serializable"),
        lambda: variables.become("other"),
        lambda: variables.reset("my.name"),
        lambda: variables.reset(None),
        lambda: variables.begin("application_name", "second"),
    ):
        before, copied = variables.all(), dict(variables.all())
        change()
        assert before == copied
    variables.restore(saved)
    assert variables.all() is saved
    assert saved["application_name"] == "first"


def test_savepoints_outside_a_block() -> None:
    for act in (Transaction().release, Transaction().back_to):
        with pytest.raises(WireError):
            act("a")


@pytest.mark.parametrize(
    ("zone", "moved"),
    [("+00:30", "11:30"), ("-00:30", "12:30"), ("+05:30", "06:30"), ("-05:30", "17:30"),
     ("-0530", "17:30"), ("-05", "17:00"), ("Z", "12:00")],
)  # fmt: skip
def test_minutes_of_a_zone_have_the_sign_of_its_hours(zone: str, moved: str) -> None:
    found = value(f"2024-02-29 12:00:00{zone}".encode(), 0, oids.TIMESTAMPTZ)
    assert str(found) == f"2024-02-29 {moved}:00"
