"""Zones that statements may name: the engine knows each, and its offsets are those that are listed."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb
import pytest

from dpsql.catalog.functions import FUNCTIONS
from dpsql.engines.duckdb.functions import WRITERS
from dpsql.ir.domain import interval
from dpsql.ir.expressions import Column, Shape
from dpsql.ir.zones import ZONES, zone_named
from dpsql.policy.types import INSTANT, Kind

SINCE = "range(TIMESTAMP '1971-01-03', TIMESTAMP '2037-12-01', INTERVAL 17 DAY) AS r(t)"
MINUTES = "epoch(timezone('{0}', timezone('UTC', t)) - t) / 60"


def test_the_engine_knows_every_zone_and_its_offsets() -> None:
    """Of all times of a year, in every year since 1971."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE s AS SELECT t FROM {SINCE}")
        for name, (least, most) in ZONES.items():
            text = MINUTES.format(name)
            ((low, high),) = connection.execute(
                f"SELECT min({text}), max({text}) FROM s"
            ).fetchall()
            assert least <= low <= high <= most, name
            assert high - low >= most - least - 150, f"{name}: listed far wider than it is"


def test_names_are_read_however_they_are_written_and_short_ones_are_not() -> None:
    assert zone_named("EUROPE/vienna") == "Europe/Vienna"
    for short in ("CET", "CEST", "EST", "IST", "BST", "+02", "Europe", ""):
        assert zone_named(short) is None


@pytest.mark.parametrize("function", ["to_zone", "from_zone"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Pacific/Apia", "UTC"])
def test_no_time_is_an_error_and_all_are_within_the_domain(function: str, zone: str) -> None:
    """Each hour and half of it, around the changes of clocks and the ends of the calendar."""
    kind = Kind.TIMESTAMP
    low, high = datetime(2011, 12, 25), datetime(2012, 12, 25)  # noqa: DTZ001
    column = Column(1, "t", Shape(kind, False, interval(low, high)))
    call = FUNCTIONS[function]
    shape = call.shape((column,), zone)
    assert shape.type_name == ("" if function == "to_zone" else INSTANT)
    assert not shape.nullable
    text = WRITERS[function](["t"], (column,), zone)
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")  # plays no part
        times = f"range(TIMESTAMP '{low}', TIMESTAMP '{high + timedelta(1)}', INTERVAL 30 MINUTE) AS r(t)"
        ((least, most, missing),) = connection.execute(
            f"SELECT min({text}), max({text}), count(*) - count({text}) FROM {times}"
            f" WHERE t <= TIMESTAMP '{high}'"
        ).fetchall()
        assert shape.domain.low <= least <= most <= shape.domain.high
        assert missing == 0
        for odd in (
            "'infinity'",
            "'-infinity'",
            "'290309-12-22 (BC) 00:00:00'",
            "'294247-01-10 04:00:54'",
            "NULL",
        ):
            connection.execute(
                f"SELECT {text} FROM (SELECT CAST({odd} AS TIMESTAMP) AS t)"
            ).fetchall()


@pytest.mark.parametrize(
    ("low", "high", "zone"),
    [
        ("1969-01-01", "1999-01-01", "Europe/Berlin"),
        ("1999-01-01", "9999-12-31 23:00", "Asia/Tokyo"),
    ],
)
def test_what_is_not_known_of_offsets_has_no_domain(low: str, high: str, zone: str) -> None:
    ends = interval(datetime.fromisoformat(low), datetime.fromisoformat(high))
    column = Column(1, "t", Shape(Kind.TIMESTAMP, False, ends))
    assert not FUNCTIONS["to_zone"].shape((column,), zone).domain.bounded
