"""Budgets as an analyst meets them: sessions, accounts of tables, accuracy, dpsql's own tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from support.measured import text_of
from support.services import policy_file, real_service

from dpsql.diagnostics.refusal import LedgerFailed, OutOfBudget, PolicyError, Refused
from dpsql.policy.types import Kind
from dpsql.service import Service, Session, own_tables
from dpsql.service.plan_cache import LONGEST_TEXT, moment

COUNT = "SELECT COUNT(*) FROM orders"
LIMIT = "    max_rows_per_unit: 50\n"


def with_account(text: str) -> str:
    assert text.count(LIMIT) == 1
    return text.replace(LIMIT, f"{LIMIT}    account: {{epsilon: 0.2, delta: 0}}\n")


@pytest.fixture
def service() -> Iterator[Service]:
    with real_service("shop", "shop", with_account) as opened:
        yield opened


@pytest.fixture
def session(service: Service) -> Session:
    return service.session("analyst")


def spent(session: Session) -> dict[str, float]:
    return {r.account: float(r.spent_epsilon) for r in session.budget()}


def test_a_session_is_chosen_by_its_name_and_outlives_connections(service, session):
    session.execute(COUNT)
    session.execute("SET dpsql.session = 'Monday''s'".replace("''", " "))
    assert spent(session)['session "Monday s" of role "analyst"'] == 0
    session.execute(COUNT + " WHERE amount > 1")
    again = service.session("analyst", "Monday s")
    assert spent(again)['session "Monday s" of role "analyst"'] == pytest.approx(0.1)
    assert spent(session)['role "analyst"'] == pytest.approx(0.2)
    session.execute("RESET dpsql.session")
    assert 'session "default" of role "analyst"' in spent(session)
    for wrong in ("''", "'  '", f"'{'x' * 64}'"):
        with pytest.raises(Refused, match="DP401"):
            session.execute(f"SET dpsql.session = {wrong}")


def test_a_table_with_an_account_is_charged_when_it_is_read(session):
    session.execute("SELECT COUNT(*) FROM customers")
    assert spent(session)['table "orders"'] == 0
    session.execute(COUNT)
    session.execute("SELECT COUNT(*) FROM customers JOIN orders USING (customer_id)")
    assert spent(session)['table "orders"'] == pytest.approx(0.2)
    with pytest.raises(OutOfBudget, match='table "orders" has 0 left'):
        session.execute(COUNT + " WHERE amount > 2")
    assert spent(session)["the dataset"] == pytest.approx(0.3, rel=0.2)
    session.execute("SELECT COUNT(*) FROM visits")


def test_accuracy_as_a_share_of_an_expected_size(session):
    session.execute("SET dpsql.max_relative_error = 0.02")
    with pytest.raises(Refused, match=r"DP401.*share of an expected size"):
        session.prepare("SELECT COUNT(*) FROM customers")
    session.execute("SET dpsql.expected_size = 5000")
    plan = session.prepare("SELECT COUNT(*) FROM customers")
    assert plan.cost.epsilon < Fraction(1, 20)
    assert plan.parts[0].noised[0].half_width <= 100
    session.execute("SET dpsql.max_error = 50")
    both = session.prepare("SELECT COUNT(*) FROM customers")
    assert both.parts[0].noised[0].half_width <= 50


def test_accuracy_for_one_statement(session):
    exact = "/* dpsql.max_error = 1700 */ " + COUNT
    wide = "/* dpsql.max_relative_error = 0.5, dpsql.expected_size = 4000 */" + COUNT
    assert session.prepare(exact).parts[0].noised[0].half_width <= 1700
    assert session.prepare(wide).cost.epsilon < session.prepare(exact).cost.epsilon
    assert session.prepare(COUNT).cost.epsilon == Fraction(1, 10)
    assert session.settings.max_error is None
    assert session.prepare("/* dpsql is fun */" + COUNT).cost.epsilon == Fraction(1, 10)
    for wrong in (
        "dpsql.intervals = on",
        "dpsql.nothing = 1",
        "dpsql.epsilon",
        "dpsql.epsilon = x",
    ):
        with pytest.raises(Refused, match="DP401"):
            session.prepare(f"/* {wrong} */ {COUNT}")


def test_explain_says_what_would_be_recalled_and_from_when(session):
    assert "recalled:" not in session.explain(COUNT)
    session.execute(COUNT)
    said = session.explain("select count(*) as n from orders o")
    assert "recalled: m0.s0: the answer of 20" in said
    assert "it costs nothing" in said
    session.execute("SET dpsql.fresh = on")
    assert "recalled:" not in session.explain(COUNT)
    assert "recalled:" not in session.explain("SELECT COUNT(*) FROM countries")


def test_what_is_recalled_needs_no_budget(session):
    first = session.execute(COUNT)
    session.execute(COUNT + " WHERE amount > 1")
    with pytest.raises(OutOfBudget):
        session.execute(COUNT + " WHERE amount > 2")
    again = session.execute(COUNT)
    assert again.recalled
    assert again.cost.epsilon == 0
    assert again.table == first.table
    session.execute("SET dpsql.epsilon = 0.01")
    assert session.execute(COUNT, intervals=True).recalled


def test_more_than_one_query_may_cost_is_refused_unless_it_is_recalled(session):
    session.execute("SET dpsql.epsilon = 4")
    with pytest.raises(OutOfBudget, match="DP403"):
        session.execute(COUNT)


def rows(session: Session, sql: str) -> list[tuple[object, ...]]:
    reply = session.execute(sql)
    return list(
        zip(*(reply.table.column(i).to_pylist() for i in range(len(reply.columns))), strict=True)
    )


def test_the_budget_as_a_table(session):
    session.execute(COUNT)
    assert rows(session, "SHOW dpsql.budget") == rows(session, "SELECT * FROM dpsql.budget")
    assert rows(session, 'select account from dpsql."budget" order by account desc limit 2;') == [
        ("the dataset",),
        ('table "orders"',),
    ]
    assert session.execute("SELECT * FROM dpsql.budget").cost.epsilon == 0


def test_the_ledger_as_a_table_shows_ones_own_role_only(service, session):
    session.execute(COUNT)
    service.session("pure").execute("SELECT COUNT(*) FROM customers")
    mine = rows(session, "SELECT state, session, epsilon, statement FROM dpsql.ledger")
    assert mine == [("committed", "default", pytest.approx(0.1), COUNT)]
    theirs = rows(service.session("pure"), "SELECT statement FROM dpsql.ledger")
    assert theirs == [("SELECT COUNT(*) FROM customers",)]


def test_the_policy_as_a_table(session):
    found = {(r[0], r[1]): r for r in rows(session, "SELECT * FROM dpsql.policy")}
    assert found["orders", "amount"][2:6] == ("double", True, "customer", "0 .. 500")
    assert found["orders", "channel"][5] == "web, shop, phone"
    assert found["customers", "country"][5] == "those of countries.country"
    assert found["customers", "city"][5] is None


def test_dpsqls_tables_are_queried_like_any_other(service, session):
    for number in range(3):
        session.execute(f"SELECT COUNT(*) FROM visits WHERE seconds > {number}")
    session.execute("SET dpsql.session = 'two'")
    session.execute("SELECT COUNT(*) FROM visits WHERE seconds > 7")
    before = session.budget()
    by = (
        "SELECT session, COUNT(*) AS n, ROUND(SUM(epsilon), 6) FROM dpsql.ledger AS l"
        " WHERE state = 'committed' GROUP BY session HAVING COUNT(*) > 0 ORDER BY n DESC"
    )
    assert rows(session, by) == [("default", 3, 0.3), ("two", 1, 0.1)]
    assert rows(session, "SELECT COUNT(*) FROM dpsql.ledger WHERE statement LIKE '%> 7'") == [(1,)]
    assert rows(
        session, "SELECT MAX(time) > TIMESTAMP '2025-01-01 00:00:00' FROM dpsql.ledger"
    ) == [(True,)]
    joined = (
        "SELECT b.account FROM dpsql.budget AS b JOIN dpsql.ledger AS l ON l.session = 'two'"
        " WHERE b.spent_epsilon > 0.35 ORDER BY 1"
    )
    assert [account for (account,) in rows(session, joined)] == ['role "analyst"', "the dataset"]
    reply = session.execute("SELECT DISTINCT role FROM dpsql.ledger")
    assert (reply.cost.epsilon, reply.recalled, reply.notes) == (0, False, ())
    assert session.budget() == before
    assert session.own_columns(by) == (
        ("session", Kind.TEXT), ("n", Kind.INTEGER), ("round", Kind.DOUBLE),
    )  # fmt: skip
    assert session.own_columns(COUNT) is None
    assert "read exactly, free" in session.explain(by)


def test_dpsqls_tables_and_those_of_the_data_do_not_meet(session):
    with pytest.raises(Refused, match="DP104"):
        session.execute("SELECT COUNT(*) FROM dpsql.ledger, orders")
    with pytest.raises(Refused, match="DP104"):
        session.execute("SELECT * FROM dpsql.nothing")
    notes = session.execute("SELECT COUNT(*) FROM orders WHERE channel = 'dpsql.budget'").notes
    assert notes == ("rows beyond 50 a customer do not count (max_rows_per_unit)",)


def test_an_owner_sees_what_all_roles_do():
    def owned(text: str) -> str:
        return text.replace("  pure:\n", "  pure:\n    owner: true\n")

    with real_service("shop", "shop", owned) as opened:
        opened.session("analyst").execute(COUNT)
        owner = opened.session("pure")
        owner.execute("SELECT COUNT(*) FROM customers")
        found = rows(owner, "SELECT role FROM dpsql.ledger ORDER BY hold")
        assert found == [("analyst",), ("pure",)]
        accounts = {account for (account,) in rows(owner, "SELECT account FROM dpsql.budget")}
        assert {'role "analyst"', 'role "pure"', "the dataset"} <= accounts
        assert rows(opened.session("analyst"), "SELECT role FROM dpsql.ledger") == [("analyst",)]


def test_a_long_ledger_says_what_is_left_out(session, monkeypatch):
    session.execute(COUNT)
    monkeypatch.setattr(own_tables, "NEWEST", 1)
    assert session.execute("SELECT * FROM dpsql.ledger").notes == (own_tables.CUT,)
    assert session.execute("SELECT * FROM dpsql.budget").notes == ()


def test_a_column_that_dpsqls_tables_do_not_have(session):
    for sql in ("SELECT nothing FROM dpsql.budget", "SELECT * FROM dpsql.budget ORDER BY nothing"):
        with pytest.raises(Refused, match="DP105"):
            session.execute(sql)


def test_plans_are_remembered_unless_they_ask_what_time_it_is():
    now = [datetime(2025, 6, 1, 12, tzinfo=UTC)]
    with Service.open(policy_file("shop", "shop"), clock=lambda: now[0]) as opened:
        session = opened.session("analyst")
        assert session.prepare(COUNT) is session.prepare(COUNT)
        timed = COUNT + " WHERE placed < CURRENT_DATE"
        one = session.prepare(timed)
        now[0] += timedelta(days=7)
        assert text_of(session.prepare(timed).parts[0]) != text_of(one.parts[0])
        plan = session.prepare(COUNT)
        session.execute("SET dpsql.epsilon = 0.01")
        assert session.prepare(COUNT) is not plan
        assert opened.session("pure").prepare(COUNT) is not plan
        long = COUNT + " " * LONGEST_TEXT
        assert session.prepare(long) is not session.prepare(long)


def test_parameters_are_part_of_what_is_remembered(session):
    sql = COUNT + " WHERE amount > ?"
    assert session.prepare(sql, [1]) is session.prepare(sql, [1])
    assert text_of(session.prepare(sql, [1]).parts[0]) != text_of(
        session.prepare(sql, [2]).parts[0]
    )


def test_a_moment_notes_every_question():
    watched = moment(datetime(2025, 6, 1, tzinfo=UTC))
    assert not watched.asked
    assert watched.year == 2025
    assert watched.asked


def test_a_fresh_answer_takes_the_place_of_the_remembered_one(session):
    session.execute("SELECT COUNT(*) FROM visits")
    old = session.execute("SELECT COUNT(*) FROM visits")
    session.execute("SET dpsql.fresh = on")
    fresh = session.execute("SELECT COUNT(*) FROM visits")
    session.execute("SET dpsql.fresh = off")
    assert not fresh.recalled
    again = session.execute("SELECT COUNT(*) FROM visits")
    assert again.table == fresh.table
    assert old.recalled


def test_a_release_that_was_removed_meanwhile_is_measured_anew(session, monkeypatch):
    session.execute(COUNT)
    session._service.plans.__init__()
    monkeypatch.setattr(session._service.ledger, "recall", lambda key: None)
    assert not session.execute(COUNT).recalled


def test_a_policy_below_what_is_spent_is_not_served():
    path = policy_file("shop", "shop")
    with Service.open(path) as service:
        for number in range(5):
            service.session("analyst").execute(f"{COUNT} WHERE amount > {number}")
    text = path.read_text()
    path.write_text(text.replace("session: {epsilon: 1}", "session: {epsilon: 0.1}"))
    with pytest.raises(PolicyError, match="below what is spent"):
        Service.open(path)
    path.write_text(text)
    Service.open(path).close()


def test_an_answer_that_reads_public_rows_is_recalled_too(session):
    sql = (
        "SELECT k.continent, n.c FROM (SELECT country, COUNT(*) AS c FROM customers GROUP BY 1) AS n"
        " JOIN countries AS k ON k.country = n.country"
    )
    first = session.execute(sql)
    for _ in range(2):
        again = session.execute(sql)
        assert again.recalled
        assert sorted(again.table.to_pylist(), key=repr) == sorted(
            first.table.to_pylist(), key=repr
        )


def test_a_ledger_that_cannot_be_read_hides_no_other_metric(service, session, monkeypatch):
    session.execute(COUNT)
    assert "dpsql_ledger_readable 1" in service.metrics_text()

    def unreadable(*_):
        raise LedgerFailed("the disk is gone")

    monkeypatch.setattr(service.tools.ledger, "balances", unreadable)
    lines = service.metrics_text().splitlines()
    assert "dpsql_ledger_readable 0" in lines
    assert 'dpsql_statements_total{end="answered"} 1' in lines
    assert not any(line.startswith(("dpsql_account", "dpsql_ledger_bytes")) for line in lines)


def test_metrics_of_a_service_say_how_statements_ended(service, session, monkeypatch):
    session.execute(COUNT)
    session.execute(COUNT)
    with pytest.raises(Refused):
        session.execute("SELECT nothing FROM orders")
    session.execute("SHOW dpsql.budget")
    monkeypatch.setattr(service.tools.ledger, "related_releases", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session.execute(COUNT + " WHERE amount > 1")
    lines = service.metrics_text().splitlines()
    for end in ("answered", "recalled", "refused", "failed"):
        assert f'dpsql_statements_total{{end="{end}"}} 1' in lines
    assert "dpsql_seconds_count 4" in lines
    assert 'dpsql_account_epsilon_spent{holder="dataset"} 0.1' in lines
    assert 'dpsql_account_epsilon_limit{holder="role",role="pure"} 5' in lines
    assert any('session="default"' in line for line in lines)
