"""Attacks from the literature, through the whole line; each works once the protection is gone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from audit import ABSENT
from scipy.optimize import linprog
from support.daily import NIGHTLY
from support.datasets import database, folder
from support.services import FreeLedger, Seeded, noon, real_service
from test_audit import SCENARIOS, samples

from dpsql.diagnostics.refusal import OutOfBudget
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.ledger.open import open_ledger
from dpsql.ledger.store import Ledger
from dpsql.policy.load import load
from dpsql.privacy.cost import Cost
from dpsql.privacy.entropy import Entropy
from dpsql.service import Service, Session

Bits = npt.NDArray[np.int64]
EXACT = 10**9
BITS, QUERIES, EACH = 128, 512 if NIGHTLY else 256, 16
PEOPLE, ATTRIBUTES = 100, 2_000
POLICY = """
source: {{engine: duckdb, path: data.duckdb}}
data_version: "1"
units: {{person: {{table: people, key: id}}}}
tables:
  people:
    unit: person
    columns: {{id: {{type: bigint}}, secret: {{type: integer, values: [0, 1]}}}}
  traits:
    unit: person
    foreign_keys: [{{columns: [id], references: people}}]
    max_rows_per_unit: 2000
    columns:
      id: {{type: bigint}}
      trait: {{type: integer, range: [1, 2000]}}
accounts: {{dataset: {{epsilon: 1e9, delta: 0.5}}}}
roles:
  analyst:
    epsilon: 1e9
    delta: 0
    composition: basic
    session: {{epsilon: 1e9}}
    query: {{epsilon: {epsilon}}}
    max_groups_per_unit: 2000
"""


def coins(seed: int, *shape: int) -> Bits:
    """Fair coins."""
    drawn = Seeded(seed).u64(math.prod(shape)) >> np.uint64(63)
    return np.asarray(drawn.astype(np.int64).reshape(shape))


@functools.cache
def _world() -> tuple[Path, Bits, Bits]:
    """People with a secret bit, those of them who are in a study, and the traits of everyone."""
    place, secrets, traits = folder() / "attacks", coins(7, BITS), coins(8, 2 * PEOPLE, ATTRIBUTES)
    place.mkdir()
    with duckdb.connect(str(place / "data.duckdb")) as connection:
        listed = ", ".join(f"({i}, {b})" for i, b in enumerate(secrets.tolist()))
        connection.execute(
            f"CREATE TABLE people AS SELECT * FROM (VALUES {listed}) AS v(id, secret)"
        )
        who, which = np.nonzero(traits[:PEOPLE])
        rows = {"id": who, "trait": which + 1}
        connection.register("rows", __import__("pyarrow").table(rows))
        connection.execute("CREATE TABLE traits AS SELECT * FROM rows")
    return place, secrets, traits


def _session(epsilon: float) -> Session:
    place = _world()[0]
    path = place / f"policy{epsilon}.yaml"
    path.write_text(POLICY.format(epsilon=epsilon))
    policy = load(path)
    engine = DuckDB(policy.source.path, policy.limits)
    return Service(policy, engine, FreeLedger(), clock=noon, entropy=Entropy()).session()


def reconstructed(epsilon: float) -> float:
    """The share of secret bits that a linear programme finds from counts of random subsets."""
    _, secrets, _ = _world()
    chosen, session = coins(9, QUERIES, BITS), _session(epsilon * EACH / QUERIES)
    answers: list[int] = []
    for start in range(0, QUERIES, EACH):
        items = ", ".join(
            f"COUNT(*) FILTER (WHERE secret = 1 AND id IN ({', '.join(map(str, np.nonzero(row)[0]))}))"
            for row in chosen[start : start + EACH]
        )
        table = session.execute(f"SELECT {items} FROM people").table
        answers += [column.to_pylist()[0] for column in table.columns]
    exact, count = np.array(answers, dtype=float), QUERIES
    above = np.hstack([chosen, -np.eye(count)])
    below = np.hstack([-chosen, -np.eye(count)])
    cost = np.concatenate([np.zeros(BITS), np.ones(count)])
    limits = [(0, 1)] * BITS + [(0, None)] * count
    found = linprog(cost, np.vstack([above, below]), np.concatenate([exact, -exact]), bounds=limits)
    return float(np.mean((found.x[:BITS] > 0.5) == secrets))


def test_secret_bits_are_not_reconstructed_from_counts() -> None:
    assert reconstructed(EXACT) >= 0.98, "the attack works on exact counts"
    assert reconstructed(1) <= math.e / (1 + math.e) + 0.1


def traced(epsilon: float, answers: int) -> float:
    """How many members of a study are recognised from its counts where 1 % of others are."""
    _, _, traits = _world()
    session, found = _session(epsilon), []
    session.execute("SET dpsql.fresh = on")
    for _ in range(answers):
        reply = session.execute("SELECT trait, COUNT(*) FROM traits GROUP BY trait")
        shares = np.array(reply.table.column(1).to_pylist(), dtype=float) / PEOPLE
        scores = (traits - 0.5) @ (shares - 0.5)
        members, others = scores[:PEOPLE], scores[PEOPLE:]
        found.append(float(np.mean(members > np.sort(others)[-2])))
    return float(np.mean(found))


def test_members_are_not_traced() -> None:
    """Where nothing is told, members above the second of 100 others are two, with a variance of four.

    Of 40 answers the mean is then above 4.7 in less than one run of 10**9: a negative binomial law.
    """
    assert traced(EXACT, 1) >= 0.9, "the attack works on exact counts"
    assert traced(1, 40) <= math.e * 0.01 + 0 + 0.02


def guessed(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], at: float) -> float:
    """How often a threshold tells the runs apart."""
    return float((np.mean(one > at) + np.mean(other <= at)) / 2)


TOLD = math.e / (1 + math.e)
"""How often a guess about one person is right at most, at epsilon 1."""


def averaged(answers: int, epsilon: Fraction) -> float:
    """How often the mean of several answers tells whether somebody is there, in 10,000 trials."""
    return guessed(
        *(
            np.mean(
                samples(SCENARIOS["COUNT"], side, answers, epsilon).reshape(answers, -1), axis=0
            )
            for side in ("with", "without")
        ),
        at=2.5,
    )


def test_averages_tell_what_was_paid_for() -> None:
    """The deviation of 10,000 trials is 0.005 at most: 0.03 more than the bound is six of them."""
    for answers in (1, 10, 100):
        assert averaged(answers, Fraction(1, answers)) <= TOLD + 0.03
    assert averaged(10, Fraction(1)) >= 0.8, "the attack works on answers that nobody pays"
    assert averaged(100, Fraction(1)) >= 0.99


def _answers(session: Session, sql: str) -> int:
    """How many answers there are before the budget ends."""
    for count in range(200):
        try:
            session.execute(sql)
        except OutOfBudget:
            return count
    return 200


def test_nobody_averages_for_long() -> None:
    """A repeated question is answered from store; fresh noise ends with the budget, also for who reconnects."""
    sql = "SELECT COUNT(*) FROM orders"
    with real_service("shop", "shop") as opened:
        session, path = opened.session("analyst"), opened.policy.path
        repeated = {str(session.execute(sql).table.to_pydict()) for _ in range(20)}
        assert len(repeated) == 1
        session.execute("SET dpsql.fresh = on")
        assert 0 < _answers(session, sql) <= 20
        left = session.budget()
    with Service.open(path, clock=noon) as opened:
        again = opened.session("analyst")
        assert again.budget() == left, "the same accounts, out of the same file"
        again.execute("SET dpsql.fresh = on")
        assert _answers(again, sql) == 0


@pytest.mark.parametrize("counts", [2, 10, 100])
def test_differences_of_counts_tell_nothing_about_one(counts: int) -> None:
    """Half of the counts have the victim: 10,000 victims, with a deviation of 0.005 at most."""

    def told(epsilon: Fraction) -> float:
        runs = [
            np.mean(samples(SCENARIOS["a difference"], s, asked, epsilon).reshape(asked, -1), axis=0)
            for s in ("with", "without")
        ]  # fmt: skip
        return guessed(*runs, at=0.5)

    asked = counts // 2
    assert told(Fraction(1, asked)) <= TOLD + 0.03
    if counts == 2:
        assert told(Fraction(10**6)) == 1, "the attack works on exact counts"


class Late:
    """A ledger that charges after looking: a query that finds nobody is free."""

    def __init__(self, ledger: Ledger, found: Callable[[], bool]) -> None:
        self._ledger, self._found = ledger, found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def reserve(self, accounts: Any, cost: Cost, *rest: Any, **named: Any) -> Any:
        due = cost if self._found() else Cost.zero()
        return self._ledger.reserve(accounts, due, *rest, **named)


POOR = POLICY.replace("    epsilon: 1e9\n", "    epsilon: 1\n").replace(
    "session: {{epsilon: 1e9}}", "session: {{epsilon: 1}}"
)


def _drained(side: str, *, late: bool) -> list[str]:
    """What is said of a person until the budget is gone, and what is left each time."""
    place = folder() / f"drained-{side}-{late}"
    place.mkdir()
    there = 1 if side == "with" else 0
    with duckdb.connect(str(place / "data.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, 1 AS secret FROM range(9) AS r(i)"
            f" WHERE i <> 5 OR {there}; CREATE TABLE traits AS SELECT 1 AS id, 1 AS trait"
        )
    (place / "policy.yaml").write_text(POOR.format(epsilon=0.3))
    policy = load(place / "policy.yaml")
    ledger: Any = open_ledger(policy, noon)
    if late:
        ledger = Late(ledger, lambda: bool(there))
    engine = DuckDB(policy.source.path, policy.limits)
    said = []
    with Service(policy, engine, ledger, clock=noon, entropy=Entropy()) as opened:
        session = opened.session()
        session.execute("SET dpsql.fresh = on")
        for _ in range(6):
            try:
                cost = session.execute("SELECT COUNT(*) FROM people WHERE id = 5").cost
                said.append(f"answered for {cost.epsilon}")
            except OutOfBudget as refused:
                said.append(str(refused))
            said.append(str([balance.left_epsilon for balance in session.budget()]))
    return said


def test_what_an_empty_budget_says_tells_nothing() -> None:
    """A refusal, and what is left, are of what was asked; who charges after looking tells who is there."""
    one, other = (_drained(side, late=False) for side in ("with", "without"))
    assert one == other
    assert one[0].startswith("answered")
    assert one[-2].startswith("DP402")
    assert _drained("with", late=True) != _drained("without", late=True), "the attack works"


def _shown(side: str) -> float:
    return float(np.mean(samples(SCENARIOS["a key of one unit"], side, 10) > ABSENT))


def test_nobody_is_singled_out_by_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown("with") <= 0.02 * 1.2
    monkeypatch.setattr("dpsql.release.noise._selected", lambda table, part, entropy: (table, None))
    assert _shown("with") == 1, "the attack works without a threshold"
    assert _shown("without") == 0


def _fails(sql: str, connection: duckdb.DuckDBPyConnection) -> bool:
    try:
        connection.execute(sql)
    except duckdb.Error:
        return True
    return False


ORACLES = (
    "SELECT COUNT(*) FROM customers WHERE CASE WHEN customer_id = {} THEN CAST(email AS INTEGER) = 1 ELSE TRUE END",
    "SELECT COUNT(*) FROM customers WHERE CASE WHEN customer_id = {} THEN age * 9223372036854775807 > 1 ELSE TRUE END",
    "SELECT COUNT(*) FROM customers WHERE CASE WHEN customer_id = {} THEN 1 % (age - age) = 1 ELSE TRUE END",
)


@pytest.mark.parametrize("oracle", ORACLES)
def test_errors_and_charges_tell_nothing(oracle: str) -> None:
    """The same query about one who is there and one who is not; DuckDB itself fails on one."""
    with duckdb.connect(str(database("shop")), read_only=True) as plain:
        raw = [_fails(oracle.format(who), plain) for who in (5, 99_999)]
        assert raw == [True, False], "the attack works on the database itself"
    opened = real_service("shop", "shop")
    session = opened.session("analyst")
    costs = {session.execute(oracle.format(who)).cost.epsilon for who in (5, 99_999)}
    assert costs == {Fraction(1, 10)}
    opened.close()


def _order(change: Callable[[str], str]) -> list[list[object]]:
    """The first keys that come back, with each of three people gone."""
    found = []
    for gone in (1, 2, 3):
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT 'k' || hash(i) % 50 AS k FROM range(400) AS r(i)"
                f" WHERE i >= {gone}"
            )
            rows = connection.execute(change("SELECT k, count(*) FROM t GROUP BY k")).fetchall()
        found.append([row[0] for row in rows])
    return found


def test_the_order_of_rows_is_that_of_their_keys() -> None:
    first, *others = _order(lambda sql: sql)
    assert any(o != first for o in others), "an engine's own order tells"
    with real_service("shop", "shop") as opened:
        session = opened.session("analyst")
        for sql in (
            "SELECT city, COUNT(*) FROM customers GROUP BY city",
            "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
        ):
            keys = session.execute(sql).table.column(0).to_pylist()
            assert keys == sorted(keys, key=lambda k: (k is None, k))
