"""Answers made of stored ones: per statistic, merged with new noise, added up from finer groups."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support.services import real_service, service

from dpsql import pipeline
from dpsql.diagnostics.refusal import Stopped
from dpsql.ledger.charge import NANO
from dpsql.privacy.accounting import rho_of_pure
from dpsql.privacy.mechanisms import DiscreteLaplace
from dpsql.reuse.encoding import from_bytes
from dpsql.reuse.pieces import AS_GOOD
from dpsql.reuse.refined import Refined
from dpsql.reuse.source import align_rows
from dpsql.reuse.stored import Stored
from dpsql.service import Reply, Service, Session

COUNT = "SELECT COUNT(*) FROM orders"
BY_CHANNEL = "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel"
GAUSSIAN = "mechanism = 'gaussian'"


def rich(text: str) -> str:
    """A shop whose queries may be as exact as a test wants."""
    for old, new in (
        ("{epsilon: 20,", "{epsilon: 1e6,"),
        ("epsilon: 5\n    delta: 1e-6\n    per: month", "epsilon: 1e6\n    delta: 1e-6"),
        ("session: {epsilon: 1}", "session: {epsilon: 1e6}"),
        ("query: {epsilon: 0.1}", "query: {epsilon: 1e5, delta: 1e-8}"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.fixture
def opened() -> Iterator[Service]:
    with real_service("shop", "shop", rich) as made:
        yield made


@pytest.fixture
def session(opened: Service) -> Session:
    return opened.session("analyst")


def ask(session: Session, sql: str, *settings: str, intervals: bool = False) -> Reply:
    """The answer under settings, which are then forgotten."""
    for setting in settings:
        session.execute(f"SET dpsql.{setting}")
    try:
        return session.execute(sql, intervals=intervals)
    finally:
        for setting in settings:
            session.execute(f"RESET dpsql.{setting.split()[0]}")


def column(reply: Reply, at: int = 0) -> list[object]:
    return reply.table.column(at).to_pylist()  # type: ignore[no-any-return]


def epsilon(value: str) -> str:
    return f"epsilon = {value}"


# One statistic at a time


def test_a_query_pays_for_the_statistic_that_is_new_and_no_other(session):
    count = ask(session, COUNT, epsilon("0.1"))
    both = "SELECT SUM(amount), COUNT(*) FROM orders"
    said = ask(session, "EXPLAIN " + both, epsilon("0.1"))
    text = "\n".join(map(str, column(said)))
    assert "recalled: m0.s1: the answer of" in text
    assert "to pay: epsilon 0.05, delta 0," in text
    paid = ask(session, both, epsilon("0.1"))
    assert not paid.recalled
    assert paid.cost.epsilon == Fraction(1, 20), "its share, as if both were measured"
    assert paid.cost.rho == rho_of_pure(Fraction(1, 20))
    assert column(paid, 1) == column(count)
    again = ask(session, "SELECT SUM(amount) AS s FROM orders", epsilon("0.05"))
    assert again.recalled
    assert column(again) == column(paid)


def test_gaussian_noise_pays_the_rho_of_what_is_new(session):
    ask(session, COUNT, epsilon("1"), GAUSSIAN)
    both = "SELECT SUM(amount), COUNT(*) FROM orders"
    whole = session.prepare(both)
    session.execute("SET dpsql.epsilon = 1")
    session.execute("SET dpsql.mechanism = 'gaussian'")
    whole, paid = session.prepare(both), session.execute(both)
    assert paid.cost.rho == whole.cost.rho / 2
    assert paid.cost.epsilon < whole.cost.epsilon
    assert paid.cost.delta == whole.cost.delta


def test_a_measurement_of_other_groups_is_paid_and_those_that_are_known_are_not(session):
    ask(session, BY_CHANNEL, epsilon("1"))
    joined = (
        "SELECT a.channel, a.n, b.n FROM (SELECT channel, COUNT(*) AS n FROM orders GROUP BY 1) AS a,"
        " (SELECT COUNT(*) AS n FROM visits) AS b"
    )
    paid = ask(session, joined, epsilon("1"))
    assert paid.cost.epsilon == Fraction(1, 2)
    assert ask(session, joined, epsilon("1")).recalled


def test_groups_that_passed_a_threshold_are_recalled_together_or_not_at_all(session):
    cities = "SELECT city, COUNT(*) FROM customers GROUP BY city"
    first = ask(session, cities, epsilon("1"))
    assert ask(session, cities, epsilon("1")).table == first.table
    assert ask(session, "SELECT DISTINCT city FROM customers", epsilon("1")).cost.epsilon > 0
    assert ask(session, "SELECT DISTINCT city FROM customers", epsilon("1")).recalled
    assert not ask(session, cities, epsilon("2")).recalled
    assert not ask(session, "SELECT COUNT(*) FROM customers", epsilon("0.01")).recalled


def test_a_query_that_uses_its_own_answers_is_recalled_as_a_whole(session):
    nested = "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)"
    ask(session, "SELECT AVG(amount) FROM orders", epsilon("5"))
    first = ask(session, nested, epsilon("1"))
    assert first.cost.epsilon == 1, "the inner answer was not the one that is stored"
    assert ask(session, nested, epsilon("1")).table == first.table


# More accuracy


@pytest.mark.parametrize("settings", [(), (GAUSSIAN,)])
def test_more_accuracy_pays_the_difference(opened, session, settings):
    worse = ask(session, COUNT, epsilon("0.3"), *settings)
    better = ask(session, COUNT, epsilon("0.5"), *settings)
    whole = ask(opened.session("analyst", "x"), COUNT, epsilon("0.5"), "fresh = on", *settings)
    assert not better.recalled
    assert better.cost.epsilon < whole.cost.epsilon
    assert float(worse.cost.rho + better.cost.rho) == pytest.approx(float(whole.cost.rho), rel=0.04)
    assert ask(session, COUNT, epsilon("0.5"), *settings).table == better.table


def test_explain_says_that_only_the_difference_is_paid(session):
    ask(session, COUNT, epsilon("0.3"))
    text = "\n".join(map(str, column(ask(session, "EXPLAIN " + COUNT, epsilon("0.5")))))
    assert "refined: m0.s0: the answer of" in text
    assert float(text.partition("to pay: epsilon ")[2].partition(",")[0]) == pytest.approx(
        0.4, rel=1e-3
    )


@pytest.mark.parametrize("settings", [(), (GAUSSIAN,)])
def test_merged_answers_err_as_promised(settings):
    """Over many ledgers: the error of merged answers, and how often intervals hold the truth."""
    errors, held, widths, by = [], 0, [], BY_CHANNEL + " ORDER BY channel"
    opened = service("shop", "shop", rich, seed=5)
    session = opened.session("analyst")
    [truth] = column(ask(session, COUNT + " WHERE channel = 'phone'", epsilon("1e5")))
    for _ in range(150):
        opened.tools.ledger.__init__()
        opened.tools.answers.__init__()
        for wanted in ("0.3", "0.5", "0.8"):
            reply = ask(session, by, epsilon(wanted), *settings, intervals=True)
        assert not reply.recalled
        low, high = (end.to_pylist()[0] for end in reply.intervals[1])
        errors.append(column(reply, 1)[0] - truth)
        widths.append((high - low) / 2)
        held += low <= truth <= high
    session.execute("SET dpsql.epsilon = 0.8")
    for setting in settings:
        session.execute(f"SET dpsql.{setting}")
    promised = session.prepare(by).parts[0].noise(0)
    assert np.std(errors) <= promised.standard_deviation() * 1.2
    assert np.std(errors) >= promised.standard_deviation() * 0.75
    assert abs(np.mean(errors)) < 4 * promised.standard_deviation() / math.sqrt(150)
    assert max(widths) <= promised.half_width() * AS_GOOD
    assert held >= 134, "19 of 20, less four deviations"


def test_a_stored_answer_that_is_nearly_good_enough_costs_next_to_nothing(session):
    ask(session, COUNT, epsilon("0.5"))
    assert ask(session, COUNT, epsilon("0.50001")).cost.epsilon < Fraction(3, 10)


def test_values_chosen_by_rank_are_measured_anew(session):
    median = "SELECT MEDIAN(amount) FROM orders"
    ask(session, median, epsilon("0.3"))
    assert ask(session, median, epsilon("0.5")).cost.epsilon == Fraction(1, 2)
    assert ask(session, median, epsilon("0.4")).recalled


def test_everything_that_was_drawn_is_charged(opened, session):
    """Refining step by step spends no less rho than the accuracy that is reached."""
    for tenths in range(1, 9):
        ask(session, COUNT, epsilon(f"0.{tenths}"))
    spent = opened.ledger.balances(session._accounts())[0].spent
    assert spent.rho >= 0.97 * float(rho_of_pure(Fraction(8, 10))) * NANO
    assert opened.ledger.verify().sound


# Accuracy that is there already


def test_intervals_of_a_recalled_answer_are_about_its_own_noise(session):
    exact = ask(session, COUNT, epsilon("10"), intervals=True)
    rough = ask(session, COUNT, epsilon("0.01"), intervals=True)
    assert rough.recalled
    assert rough.intervals[0][0].to_pylist() == exact.intervals[0][0].to_pylist()
    doubled = "SELECT 2 * COUNT(*) FROM orders"
    narrow = ask(session, doubled, epsilon("0.01"), intervals=True)
    low, high = (end.to_pylist()[0] for end in narrow.intervals[0])
    one_low, one_high = (end.to_pylist()[0] for end in exact.intervals[0])
    assert narrow.recalled
    assert high - low < 3 * (one_high - one_low)


# Finer groups


def finer(session: Session) -> dict[object, int]:
    """Counts by channel, good enough to be added up."""
    reply = ask(session, BY_CHANNEL, epsilon("5"))
    return dict(zip(column(reply), column(reply, 1), strict=True))


def test_a_total_is_added_up_from_its_groups(session):
    groups = finer(session)
    text = "\n".join(map(str, column(ask(session, "EXPLAIN " + COUNT, epsilon("1")))))
    assert "for finer groups, added up; it costs nothing" in text
    assert "to pay: nothing" in text
    total = ask(session, COUNT, epsilon("1"), intervals=True)
    assert total.recalled
    assert total.cost.epsilon == 0
    assert column(total) == [sum(groups.values())]
    again = ask(session, COUNT, epsilon("1"))
    assert column(again) == column(total)


def test_the_interval_of_a_sum_is_about_all_its_noise():
    held, opened = 0, service("shop", "shop", rich, seed=11)
    session = opened.session("analyst")
    [truth] = column(ask(session, COUNT, epsilon("1e5")))
    for _ in range(200):
        opened.tools.ledger.__init__()
        opened.tools.answers.__init__()
        ask(session, BY_CHANNEL, epsilon("1"))
        total = ask(session, COUNT, epsilon("0.4"), intervals=True)
        assert total.recalled
        low, high = (end.to_pylist()[0] for end in total.intervals[0])
        held += low <= truth <= high
    assert held >= 178, "19 of 20, less four deviations"
    assert held < 200, "no wider than it must be"


def test_a_sum_with_more_noise_than_was_asked_for_is_not_used(session):
    finer(session)
    paid = ask(session, COUNT, epsilon("4.9"))
    assert not paid.recalled


def test_conditions_and_coarser_keys_over_stored_keys(session):
    groups = finer(session)
    web = ask(session, COUNT + " WHERE channel = 'web'", epsilon("5"))
    assert web.recalled
    assert column(web) == [groups["web"]]
    some = "SELECT channel, COUNT(*) FROM orders WHERE channel <> 'web' GROUP BY channel"
    shown = ask(session, some, epsilon("5"))
    assert shown.recalled
    assert dict(zip(column(shown), column(shown, 1), strict=True)) == {
        key: n for key, n in groups.items() if key not in ("web", None)
    }
    split = "SELECT channel = 'web' AS w, COUNT(*) FROM orders GROUP BY 1"
    parts = ask(session, split, epsilon("2"), intervals=True)
    assert parts.recalled
    assert dict(zip(column(parts), column(parts, 1), strict=True)) == {
        True: groups["web"],
        False: groups["shop"] + groups["phone"],
        None: groups[None],
    }
    low, high = (end.to_pylist() for end in parts.intervals[1])
    wide = [h - lo for lo, h in zip(low, high, strict=True)]
    at = column(parts).index(False)
    assert wide[at] > 1.2 * min(wide), "two groups err more than one"
    assert sorted(set(wide)) == sorted({min(wide), wide[at]})


def test_sums_of_values_are_added_up_too(session):
    by = "SELECT channel, SUM(amount) FROM orders GROUP BY channel"
    groups = ask(session, by, epsilon("5"))
    total = ask(session, "SELECT SUM(amount) FROM orders", epsilon("1"))
    assert total.recalled
    assert column(total) == [pytest.approx(sum(column(groups, 1)))]


MEANS = (
    "SELECT country, AVG(age) AS a, COUNT(*) AS n, SUM(age) AS s FROM customers GROUP BY country"
)


def test_a_sum_a_count_and_a_mean_are_two_numbers_in_whatever_order(session):
    first = ask(session, MEANS, epsilon("0.1"))
    for sql in ("AVG(age)", "COUNT(*), SUM(age)", "SUM(age) / COUNT(*), AVG(age)"):
        again = ask(
            session, f"SELECT country, {sql} FROM customers GROUP BY country", epsilon("0.1")
        )
        assert again.recalled
    assert not first.recalled


@pytest.mark.parametrize("before", ["0.02", "0.05", "0.09"])
@pytest.mark.parametrize("count", [True, False])
def test_what_is_due_of_two_halves_costs_no_more_than_both(session, before, count):
    if count:
        ask(session, "SELECT country, COUNT(*) FROM customers GROUP BY country", epsilon(before))
    else:
        ask(session, MEANS, epsilon(before))
    session.execute("SET dpsql.epsilon = 0.1")
    priced = session.prepare(MEANS)
    sources = session.sources(priced)
    assert sources is not None
    assert 0 < sources.due.cost.epsilon <= priced.cost.epsilon
    refined = [isinstance(source, Refined) for source in sources.pieces]
    assert all(refined) or not any(refined)
    reply = session.execute(MEANS)
    assert reply.cost == sources.due.cost
    again = session.execute(MEANS)
    assert again.recalled
    assert again.table == reply.table


def test_one_half_is_refined_where_the_other_is_stored(session):
    ask(session, "SELECT country, COUNT(*) FROM customers GROUP BY country", epsilon("0.2"))
    ask(session, MEANS, epsilon("0.05"))
    session.execute("SET dpsql.epsilon = 0.06")
    sources = session.sources(session.prepare(MEANS))
    assert sources is not None
    assert [type(source) for source in sources.pieces] == [Refined, Stored]
    assert sources.due.cost.epsilon < Fraction(6, 100)


def test_finer_groups_that_were_refined_are_added_up(session):
    finer(session)
    better = ask(session, BY_CHANNEL, epsilon("9"))
    total = ask(session, COUNT, epsilon("2"))
    assert total.recalled
    assert abs(column(total)[0] - sum(column(better, 1))) <= 2, "numbers are rounded last"


@pytest.mark.parametrize(
    "sql",
    [
        COUNT + " WHERE amount > 10",
        "SELECT COUNT(DISTINCT customer_id) FROM orders",
        "SELECT COUNT(amount) FROM orders",
        "SELECT placed < DATE '2025-01-01', COUNT(*) FROM orders GROUP BY 1",
        "SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM customers JOIN orders USING (customer_id)",
    ],
)
def test_what_the_stored_groups_do_not_determine_is_measured(session, sql):
    finer(session)
    assert not ask(session, sql, epsilon("0.1")).recalled


def test_groups_of_fewer_rows_do_not_give_a_total_of_more(session):
    ask(session, BY_CHANNEL.replace("GROUP", "WHERE amount > 10 GROUP"), epsilon("5"))
    assert not ask(session, COUNT, epsilon("0.1")).recalled
    assert ask(session, COUNT + " WHERE amount > 10", epsilon("0.1")).recalled


def test_groups_whose_units_were_cut_give_no_total():
    cut = ("max_rows_per_unit: 50\n", "max_rows_per_unit: 50\n    max_rows_per_group: 2\n")
    with real_service("shop", "shop", lambda text: rich(text).replace(*cut)) as opened:
        session = opened.session("analyst")
        ask(session, "SELECT placed, COUNT(*) FROM orders GROUP BY placed", epsilon("1000"))
        assert not ask(session, COUNT, epsilon("0.0001")).recalled


def test_units_with_one_row_are_added_up(session):
    by = "SELECT country, COUNT(DISTINCT customer_id) FROM customers GROUP BY country"
    groups = ask(session, by, epsilon("5"))
    total = ask(session, "SELECT COUNT(DISTINCT customer_id) FROM customers", epsilon("1"))
    assert total.recalled
    assert column(total) == [sum(column(groups, 1))]


def test_fresh_noise_is_paid_whatever_is_stored(session):
    finer(session)
    assert ask(session, COUNT, epsilon("1"), "fresh = on").cost.epsilon == 1
    text = "\n".join(map(str, column(ask(session, "EXPLAIN " + COUNT, epsilon("1"), "fresh = on"))))
    assert "recalled" not in text
    assert "to pay" not in text


def test_a_stored_piece_that_was_removed_is_measured_anew(opened, session, monkeypatch):
    finer(session)
    monkeypatch.setattr(opened.ledger, "recall", lambda key: None)
    for sql in (COUNT, BY_CHANNEL):
        assert not ask(session, sql, epsilon("4")).recalled


def test_a_total_over_no_group_is_measured(session):
    finer(session)
    none = COUNT + " WHERE channel = 'web' AND channel = 'shop'"
    assert not ask(session, none, epsilon("1")).recalled


def test_a_total_that_is_more_exact_than_every_group_is_measured(session):
    finer(session)
    assert ask(session, COUNT, epsilon("9")).cost.epsilon == 9


def test_explain_names_groups_that_are_recalled_without_numbers(session):
    distinct = "SELECT DISTINCT city FROM customers"
    ask(session, distinct, epsilon("1"))
    said = ask(session, "EXPLAIN " + distinct, epsilon("1"))
    assert any("recalled: m0: the answer" in str(line) for line in column(said))


def test_columns_are_put_side_by_side_by_their_keys():
    table = pa.table({"k": ["a", "b", None], "v": [1, 2, 3]})
    other = table.take(pa.array([2, 0, 1]))
    assert align_rows(table, other, 1) == table
    assert align_rows(table, table, 1) is table
    assert align_rows(table, table.take(pa.array([0, 1, 2])), 1) == table


def test_nothing_is_looked_up_in_the_data_for_what_is_stored(opened, session, monkeypatch):
    """Neither an answer from the store, nor its price, can depend on a row that is not in it."""
    finer(session)
    ask(session, "SELECT SUM(amount) FROM orders", epsilon("1"))
    monkeypatch.setattr(opened.tools.engine, "measure", lambda *_: 1 / 0)
    for sql, wanted in (
        (BY_CHANNEL, "5"),
        (COUNT, "1"),
        (COUNT + " WHERE channel = 'web'", "2"),
        ("SELECT SUM(amount) / 2, COUNT(*) FROM orders", "1"),
    ):
        assert ask(session, sql, epsilon(wanted), intervals=True).recalled
        ask(session, "EXPLAIN " + sql, epsilon("100"))


def test_people_who_open_a_dashboard_at_once_pay_for_it_once(opened):
    """Who asks what another is asking waits for that answer."""
    engine, slow = opened.tools.engine, threading.Event()
    real, replies = engine.measure, []

    def measure(*arguments):
        slow.wait(0.3)
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "measure", measure)
        people = [
            threading.Thread(
                target=lambda i=i: replies.append(
                    opened.session("analyst", f"person {i}").execute(BY_CHANNEL)
                )
            )
            for i in range(5)
        ]
        for person in people:
            person.start()
        for person in people:
            person.join()
    assert sorted(reply.recalled for reply in replies) == [False, True, True, True, True]
    assert len({str(reply.table.to_pydict()) for reply in replies}) == 1
    assert len(opened.tools.single_flight) == 0


def test_what_is_paid_between_looking_and_paying_is_not_paid_again(opened, session, monkeypatch):
    real, others = pipeline.match_stored, iter([opened.session("analyst", "another")])

    def slow(*values):
        found = real(*values)
        for other in others:
            assert not other.execute(COUNT).recalled
        return found

    session.prepare(COUNT)
    monkeypatch.setattr(pipeline, "match_stored", slow)
    assert session.execute(COUNT).recalled


def test_whoever_stops_waiting_pays_nothing(opened):
    """Somebody else asks the same and fails; who gave up meanwhile must not be charged for it."""
    engine, slow, inside = opened.tools.engine, threading.Event(), threading.Event()

    def measure(*_):
        inside.set()
        slow.wait(20)
        raise ZeroDivisionError

    def ask(name, found):
        try:
            opened.session("analyst", name).execute(COUNT)
        except (Stopped, ZeroDivisionError) as error:
            found.append(error)

    failed, given_up = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "measure", measure)
        first = threading.Thread(target=ask, args=("first", failed))
        second = threading.Thread(target=ask, args=("second", given_up))
        first.start()
        assert inside.wait(20)
        second.start()
        while not opened.tools.single_flight._changed._waiters:
            time.sleep(0.01)
        opened.session("analyst").interrupt(second.ident)
        second.join(20)
        assert not second.is_alive(), "it did not wait for the first"
        slow.set()
        first.join(20)
    assert [type(e) for e in failed + given_up] == [ZeroDivisionError, Stopped]
    charged = {r.content["session"] for r in opened.ledger.events() if "session" in r.content}
    assert charged == {"first"}
    assert len(opened.tools.single_flight) == 0


def test_an_answer_that_fails_lets_the_next_one_try(opened, session, monkeypatch):
    monkeypatch.setattr(opened.tools.engine, "measure", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session.execute(COUNT)
    monkeypatch.undo()
    assert not session.execute(COUNT).recalled
    assert [r.content["state"] for r in opened.ledger.events() if r.hold] == [
        "started", "forfeited", "started", "committed",
    ]  # fmt: skip


def drawn_beside(runs: int, *, narrower: float = 1.0) -> tuple[float, float]:
    """The deviation of what was drawn to refine answers, and the one that was charged for.

    What was drawn is what remains of a stored average without the older number. ``narrower`` plants
    a fault: noise is drawn with a part of the scale that was charged.
    """
    opened = service("shop", "shop", rich, seed=23)
    session, ledger = opened.session("analyst"), opened.tools.ledger
    [truth] = column(ask(session, COUNT, epsilon("1e5")))
    new, charged = [], set()
    real = DiscreteLaplace.sample
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            DiscreteLaplace, "sample", lambda *a: np.round(real(*a) * narrower).astype(int)
        )
        for _ in range(runs):
            ledger.__init__()
            opened.tools.answers.__init__()
            for wanted in ("0.3", "0.5"):
                ask(session, COUNT, epsilon(wanted))
            first, second = (from_bytes(ledger.released[k.key.key])[0] for k in ledger.kept)
            [law] = second.noise
            old, weight = first.table.column(0)[0].as_py(), law.terms[1].weight
            merged = second.table.column(0)[0].as_py()
            new.append((merged - float(1 - weight) * old) / float(weight) - truth)
            charged.add(math.sqrt(2) * float(50 / ledger.charges[1].epsilon))
    [wanted_deviation] = charged
    return float(np.std(new)), wanted_deviation


def test_the_noise_that_is_drawn_is_the_noise_that_is_paid_for():
    found, charged = drawn_beside(200)
    assert found == pytest.approx(charged, rel=0.2)


def test_noise_that_was_narrower_than_paid_for_would_be_seen():
    found, charged = drawn_beside(200, narrower=0.7)
    assert found < 0.8 * charged


def test_what_is_computed_from_rows_that_differ_in_noise_is_drawn_row_by_row(session):
    finer(session)
    doubled = "SELECT channel = 'web' AS w, 2 * COUNT(*) AS n FROM orders GROUP BY 1"
    reply = ask(session, doubled, epsilon("2"), intervals=True)
    assert reply.recalled
    low, high = (end.to_pylist() for end in reply.intervals[1])
    wide = dict(zip(column(reply), (h - lo for lo, h in zip(low, high, strict=True)), strict=True))
    assert all(60 < width < 250 for width in wide.values()), "twice 60, and twice 85"
