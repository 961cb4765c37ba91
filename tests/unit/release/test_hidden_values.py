"""What noise alone may decide is NULL, with a note; what the numbers settle is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.corpus import unlimited
from support.services import service

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.record import AggregateRecord, Needs
from dpsql.diagnostics.refusal import Refused
from dpsql.plan import noise_alone
from dpsql.release.hidden_values import NOTE
from dpsql.service import Reply, Session
from dpsql.service.settings import Settings

NOBODY = "FROM customers WHERE age > 60 AND city = 'nowhere'"
EACH_DAY = "FROM orders JOIN customers USING (customer_id) WHERE city = 'nowhere' GROUP BY placed"
DAYS = 731


@pytest.fixture(scope="module")
def opened() -> Iterator[Session]:
    with service("shop", "shop", seed=11) as here:
        yield here.session("analyst")


@pytest.fixture
def session(opened: Session) -> Session:
    opened.settings = Settings()
    return opened


def values(reply: Reply, column: int = 0) -> list[Any]:
    return list(reply.table.column(column).to_pylist())


def hidden(session: Session, sql: str, *, intervals: bool = False) -> Reply:
    """An answer in which something is hidden. Each has it with a probability of 95 % or more."""
    session.settings = replace(session.settings, fresh=True)
    for _ in range(9):
        reply = session.execute(sql, intervals=intervals)
        if NOTE in reply.notes:
            return reply
    raise AssertionError("nothing is hidden")


@pytest.mark.parametrize("value", [
    "AVG(age)", "AVG(age + 1) - 1", "GEOMETRIC_MEAN(age)", "VAR_POP(age)", "STDDEV(age)", "SKEWNESS(age)",
    "KURTOSIS(age)", "COVAR_POP(age, 2 * age)", "CORR(age, 2 * age)", "REGR_SLOPE(age, 2 * age)",
    "REGR_R2(age, 2 * age)", "REGR_INTERCEPT(age, 2 * age)",
])  # fmt: skip
def test_an_average_over_nobody_is_null(session: Session, value: str) -> None:
    session.settings = replace(session.settings, fresh=True)
    replies = [session.execute(f"SELECT {value}, COUNT(*) {NOBODY}") for _ in range(5)]
    hidden = [reply for reply in replies if NOTE in reply.notes]
    assert len(hidden) >= 3, "each is hidden in 19 of 20 answers"
    assert all(values(reply) == [None] for reply in hidden)
    assert all(values(reply, 1) != [None] for reply in replies), "a count is a number"
    session.execute("SET dpsql.show = 'always'")
    shown = session.execute(f"SELECT {value} {NOBODY}")
    assert NOTE not in shown.notes
    if value.startswith(("AVG", "GEO", "VAR", "COVAR")):  # others are NULL where nothing varies
        assert values(shown) != [None]


def test_an_average_of_one_possible_value_is_null_over_nobody(session: Session) -> None:
    nobody = "FROM customers WHERE age > 99 AND city = 'nowhere'"
    assert values(hidden(session, f"SELECT AVG(age) {nobody}")) == [None]
    assert values(session.execute("SELECT AVG(7) FROM customers")) == [7]


def test_an_average_over_many_is_shown_and_has_no_note(session: Session) -> None:
    reply = session.execute("SELECT AVG(age) FROM customers")
    assert 18 < values(reply)[0] < 100
    assert NOTE not in reply.notes
    assert NOTE not in session.execute(f"SELECT COUNT(*) {NOBODY}").notes


def test_operators_above_see_the_null(session: Session) -> None:
    below = f"SELECT AVG(age) AS a, COUNT(*) AS n {NOBODY}"
    reply = hidden(session, f"SELECT a, COALESCE(a, -1), n FROM ({below}) AS t")
    assert (values(reply), values(reply, 1)) == ([None], [-1])
    days = f"SELECT placed, AVG(amount) AS a {EACH_DAY}"
    shown = session.execute(f"SELECT COALESCE(a, -1) FROM ({days}) AS t")
    assert values(shown).count(-1) > 0.9 * DAYS
    assert NOTE not in shown.notes, "no NULL is shown"
    kept = session.execute(f"SELECT placed FROM ({days}) AS t WHERE a >= 0")
    assert kept.table.num_rows < 0.1 * DAYS


def test_what_is_hidden_has_no_interval(session: Session) -> None:
    reply = hidden(session, f"SELECT AVG(age) {NOBODY}", intervals=True)
    assert values(reply) == [None]
    assert [end.to_pylist() for end in reply.intervals[0]] == [[None], [None]]
    asked = f"SELECT a, DP_INTERVAL_HIGH(a) AS h FROM (SELECT AVG(age) AS a {NOBODY}) AS t"
    assert values(hidden(session, asked), 1) == [None]


def test_what_is_shown_has_the_interval_that_it_would_always_have(session: Session) -> None:
    sql = f"SELECT placed, AVG(amount) {EACH_DAY}"
    sensible = session.execute(sql, intervals=True)
    session.execute("SET dpsql.show = 'always'")
    always = session.execute(sql, intervals=True)
    assert always.recalled, "the same numbers"
    for one, other in zip(sensible.intervals[1], always.intervals[1], strict=True):
        pairs = list(zip(one.to_pylist(), other.to_pylist(), strict=True))
        assert all(a in (None, b) for a, b in pairs)
        assert any(a is not None for a, _ in pairs)


def test_a_median_is_hidden_where_a_number_of_its_rows_is_released(session: Session) -> None:
    for value in ("MEDIAN(age)", "MAX(age)", "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age)"):
        assert values(hidden(session, f"SELECT {value}, COUNT(*) {NOBODY}")) == [None]
        alone = session.execute(f"SELECT {value} {NOBODY}")
        assert values(alone) != [None], "no released number tells how many rows there are"
    assert values(session.execute("SELECT MEDIAN(age), COUNT(*) FROM customers")) != [None]


def test_which_setting_shows_them(session: Session) -> None:
    assert values(session.execute("SHOW dpsql.show")) == ["sensible"]
    session.execute("SET dpsql.show = always")
    assert values(session.execute("SHOW dpsql.show")) == ["always"]
    with pytest.raises(Refused, match=r"SET dpsql\.show = 'always'"):
        session.execute("SET dpsql.show = 'never'")


@pytest.mark.parametrize("record", [
    r for r in AGGREGATES.values() if r.needs in (Needs.BOUNDS, Needs.POSITIVE_BOUNDS) and r.name != "sum"
], ids=lambda r: r.name)  # fmt: skip
def test_each_aggregate_that_divides_by_a_number_of_rows_may_be_hidden(
    record: AggregateRecord, session: Session
) -> None:
    values = ", ".join(("age", "2 * age")[: record.values[0]])
    [measurement] = session.prepare(
        f"SELECT {record.name}({values}) FROM customers"
    ).plan.measurements
    assert bool(measurement.hidden) == (record.name != "regr_count")


def shown_over_nobody(session: Session) -> float:
    """The share of days without rows whose average is shown."""
    reply = session.execute(f"SELECT placed, AVG(amount) {EACH_DAY}")
    found = values(reply, 1)
    assert len(found) == DAYS
    return 1 - found.count(None) / DAYS


def test_the_average_of_nobody_is_hidden_as_often_as_is_said(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown_over_nobody(session) < 0.075
    monkeypatch.setattr(noise_alone, "WIDTH", noise_alone.WIDTH / 2)
    session.settings = replace(session.settings, fresh=True)
    assert shown_over_nobody(session) > 0.1, "half of the width is too little, and is noticed"


def test_without_noise_only_what_plain_sql_leaves_null_is_null() -> None:
    with service("shop", "shop", unlimited) as here:
        plain = here.session("oracle")
        sql = "SELECT placed, AVG(amount), COUNT(amount) FROM orders WHERE placed < '2024-03-01' AND customer_id < 40 GROUP BY placed"  # fmt: skip
        reply = plain.execute(sql)
        rows = list(zip(values(reply, 1), values(reply, 2), strict=True))
        assert all((average is None) == (count == 0) for average, count in rows)
        assert {count for _, count in rows} >= {0, 1}
        assert NOTE in reply.notes
