"""DP_INTERVAL_LOW and DP_INTERVAL_HIGH: the ends that an answer's own intervals have."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.services import service

from dpsql.diagnostics.refusal import Refused
from dpsql.privacy.mechanisms import DiscreteLaplace
from dpsql.privacy.mechanisms.noise_sum import NoiseSum, NoiseTerm
from dpsql.release.rows import ColumnNoise
from dpsql.service import Session

BY_CHANNEL = "SELECT channel, COUNT(*) AS c FROM orders GROUP BY channel"


@pytest.fixture(scope="module")
def session() -> Session:
    return service("shop", "shop", seed=7).session("analyst")


def ask(session: Session, sql: str) -> tuple[list[dict[str, Any]], Any]:
    reply = session.execute(sql, intervals=True)
    names = [c.name for c in reply.columns]
    return reply.table.rename_columns(names).to_pylist(), reply


@pytest.mark.parametrize("name", ["c", "'c'", "C", "COUNT(*)"])
def test_the_ends_of_a_count_are_those_of_its_interval(session: Session, name: str) -> None:
    sql = f"SELECT COUNT(*) AS c, DP_INTERVAL_LOW({name}) AS l, DP_INTERVAL_HIGH({name}) AS h"
    rows, reply = ask(session, sql + ", channel FROM orders GROUP BY channel")
    low, high = reply.intervals[0]
    assert [r["l"] for r in rows] == low.to_pylist()
    assert [r["h"] for r in rows] == high.to_pylist()
    assert 1 not in reply.intervals, "an end has no interval of its own"
    assert reply.cost.epsilon in (0, session.prepare(sql + " FROM orders").cost.epsilon)


def test_noise_of_one_law_is_the_same_in_all_rows() -> None:
    """So its interval is computed and not simulated. It catches simulations of what is known."""
    law = NoiseSum((NoiseTerm(DiscreteLaplace(Fraction(3))),))
    assert ColumnNoise((law,)).even
    assert not ColumnNoise((law, law), np.zeros(2, np.int64)).even


def test_the_ends_of_what_is_computed_are_simulated(session: Session) -> None:
    sql = "SELECT AVG(amount) AS a, DP_INTERVAL_LOW(a) AS l, DP_INTERVAL_HIGH(a) AS h FROM orders"
    ((row,), reply) = ask(session, sql)
    assert 0 <= row["l"] <= row["a"] <= row["h"] <= 500
    low, high = (end.to_pylist()[0] for end in reply.intervals[0])
    assert abs(row["l"] - low) + abs(row["h"] - high) < (high - low)


def test_they_stand_above_the_frontier_too(session: Session) -> None:
    sql = f"SELECT c, DP_INTERVAL_LOW(c) AS l FROM ({BY_CHANNEL}) AS t WHERE DP_INTERVAL_LOW(c) > -1e9"
    rows, _ = ask(session, sql + " ORDER BY DP_INTERVAL_HIGH(c) DESC LIMIT 2")
    assert len(rows) == 2
    assert rows[0]["c"] >= rows[1]["c"]
    assert all(r["l"] < r["c"] for r in rows)
    (total,), _ = ask(
        session, f"SELECT SUM(DP_INTERVAL_HIGH(c)) AS s, SUM(c) AS t FROM ({BY_CHANNEL}) AS t"
    )
    assert total["s"] > total["t"]
    rows, _ = ask(
        session,
        f"SELECT a.c, b.l FROM ({BY_CHANNEL}) AS a JOIN (SELECT channel, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS l FROM orders GROUP BY channel) AS b ON a.channel = b.channel",
    )
    assert all(r["l"] < r["c"] for r in rows)


def test_several_simulated_ends_share_a_table(session: Session) -> None:
    sql = (
        "SELECT AVG(age) AS a, SUM(age) / COUNT(*) AS r, DP_INTERVAL_LOW(a) AS al,"
        " DP_INTERVAL_HIGH(a) - DP_INTERVAL_LOW(a) AS aw, DP_INTERVAL_LOW(r) AS rl FROM customers"
    )
    ((row,), _) = ask(session, sql)
    assert row["al"] <= row["a"]
    assert row["aw"] > 0
    assert row["rl"] <= row["r"]


def test_what_is_not_noised_has_no_ends(session: Session) -> None:
    rows, _ = ask(session, "SELECT population, DP_INTERVAL_LOW(population) AS l FROM countries")
    assert rows
    assert all(r["l"] is None for r in rows)
    rows, _ = ask(
        session,
        "SELECT seconds, COUNT(*) AS n, DP_INTERVAL_LOW(seconds) AS l FROM visits WHERE seconds IN (1, 2) GROUP BY seconds",
    )
    assert [r["l"] for r in rows] == [None, None]
    assert ask(session, "SELECT 1 AS v, DP_INTERVAL_LOW(v) AS l")[0] == [{"v": 1, "l": None}]


def test_ends_of_an_output_win_over_a_column_of_its_name(session: Session) -> None:
    ((row,), _) = ask(
        session, "SELECT SUM(amount) AS amount, DP_INTERVAL_LOW(amount) AS l FROM orders"
    )
    assert row["l"] < row["amount"]


def test_a_recalled_answer_has_them_for_nothing() -> None:
    opened = service("shop", "shop").session("analyst")
    plain = opened.execute("SELECT COUNT(*) AS c FROM orders")
    again = opened.execute("SELECT COUNT(*) AS c, DP_INTERVAL_LOW(c) AS l FROM orders")
    assert not plain.recalled
    assert again.recalled
    assert again.cost.epsilon == 0


def test_no_answer_is_paid_that_cannot_have_them() -> None:
    opened = service("shop", "shop")
    for sql, code in (
        ("SELECT MAX(age) AS m, DP_INTERVAL_LOW(m) FROM customers", "DP110"),
        (
            f"SELECT DP_INTERVAL_LOW(a.c) FROM ({BY_CHANNEL}) a JOIN ({BY_CHANNEL}) b ON a.channel = b.channel",
            "DP110",
        ),
        (
            "SELECT COUNT(*) FROM orders JOIN (SELECT channel, DP_INTERVAL_LOW(COUNT(*)) AS l FROM orders GROUP BY channel) t USING (channel) WHERE l > 0",
            "DP110",
        ),
        ("SELECT DP_INTERVAL_LOW(n) AS n FROM orders", "DP105"),
        (
            "SELECT "
            + "+".join(["COUNT(*)"] * 900)
            + " AS n, "
            + ", ".join(["DP_INTERVAL_LOW(n)"] * 20)
            + " FROM orders",
            "DP115",
        ),
    ):
        with pytest.raises(Refused) as caught:
            opened.session("analyst").execute(sql)
        assert caught.value.code == code, sql
    assert "reserve started" not in opened.ledger.calls  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", ["c", "c * 2.0 + d"])
def test_windows_beside_them_change_nothing(value: str) -> None:
    session = service("shop", "shop", seed=5).session("analyst")
    groups = "SELECT channel, COUNT(*) AS c, COUNT(amount) AS d FROM orders GROUP BY channel"
    ends = f"channel, {value} AS v, DP_INTERVAL_LOW({value}) AS l, DP_INTERVAL_HIGH({value}) AS h"
    alone, _ = ask(session, f"SELECT {ends} FROM ({groups}) AS t ORDER BY channel")
    beside, _ = ask(
        session,
        f"SELECT {ends}, SUM(c) OVER () AS s, RANK() OVER (ORDER BY d) AS r FROM ({groups}) AS t"
        " ORDER BY channel",
    )
    assert sorted(r["r"] for r in beside) == [1, 2, 3, 4]
    for one, other in zip(alone, beside, strict=True):
        assert (one["channel"], one["v"]) == (other["channel"], other["v"])
        assert other["l"] < other["v"] < other["h"]
        assert one["h"] - one["l"] == pytest.approx(other["h"] - other["l"], rel=0.3)


def test_what_a_window_makes_has_no_ends(session: Session) -> None:
    with pytest.raises(Refused, match="DP110"):
        ask(
            session,
            f"SELECT s, DP_INTERVAL_LOW(s) AS l FROM (SELECT SUM(c) OVER () AS s FROM ({BY_CHANNEL}) AS t) AS u",
        )
