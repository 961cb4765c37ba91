"""Attacks from the literature, through the whole line; each works once the protection is gone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from audit import ABSENT
from scipy.optimize import linprog
from support.datasets import database, folder
from support.services import FreeLedger, Seeded, noon, real_service
from test_audit import SCENARIOS, samples

from dpsql.diagnostics.refusal import OutOfBudget
from dpsql.engines.duckdb import DuckDB
from dpsql.policy.load import load
from dpsql.privacy.entropy import Entropy
from dpsql.service import Service, Session

Bits = npt.NDArray[np.int64]
EXACT = 10**9
BITS, QUERIES, EACH = 128, 512, 16
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


def traced(epsilon: float) -> float:
    """How many members of a study are recognised from its counts where 1 % of others are."""
    _, _, traits = _world()
    reply = _session(epsilon).execute("SELECT trait, COUNT(*) FROM traits GROUP BY trait")
    shares = np.array(reply.table.column(1).to_pylist(), dtype=float) / PEOPLE
    scores = (traits - 0.5) @ (shares - 0.5)
    members, others = scores[:PEOPLE], scores[PEOPLE:]
    return float(np.mean(members > np.sort(others)[-2]))


def test_members_are_not_traced() -> None:
    assert traced(EXACT) >= 0.9, "the attack works on exact counts"
    assert traced(1) <= math.e * 0.01 + 0.1


def guessed(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], at: float) -> float:
    """How often a threshold tells the runs apart."""
    return float((np.mean(one > at) + np.mean(other <= at)) / 2)


@pytest.mark.parametrize(("answers", "least", "most"), [(1, 0.6, 0.77), (60, 0.97, 1.0)])
def test_averages_tell_what_was_paid_for(answers: int, least: float, most: float) -> None:
    """One answer at epsilon 1 stays within its bound; sixty unpaid ones would tell everything."""
    means = [
        np.mean(samples(SCENARIOS["COUNT"], side, answers).reshape(answers, -1), axis=0)
        for side in ("with", "without")
    ]
    assert least <= guessed(*means, at=2.5) <= most


def _answers(session: Session, sql: str) -> int:
    """How many answers there are before the budget ends."""
    for count in range(200):
        try:
            session.execute(sql)
        except OutOfBudget:
            return count
    return 200


def test_nobody_averages_for_long() -> None:
    """A repeated question is answered from store; fresh noise ends with the budget."""
    session = real_service("shop", "shop").session("analyst")
    sql = "SELECT COUNT(*) FROM orders"
    repeated = {str(session.execute(sql).table.to_pydict()) for _ in range(20)}
    assert len(repeated) == 1
    session.execute("SET dpsql.fresh = on")
    assert 0 < _answers(session, sql) <= 20
    again = real_service("shop", "shop").session("analyst")
    assert again.budget()[0].epsilon == session.budget()[0].epsilon


def differenced(epsilon: float) -> float:
    """How often the difference of two counts tells the secret of a person."""
    _, secrets, _ = _world()
    session, right = _session(epsilon), 0
    for victim in range(BITS // 2):
        sql = f"SELECT COUNT(*) FILTER (WHERE secret = 1) - COUNT(*) FILTER (WHERE secret = 1 AND id <> {victim}) FROM people"
        right += (session.execute(sql).table.column(0).to_pylist()[0] > 0.5) == secrets[victim]
    return right / (BITS // 2)


def test_differences_of_counts_tell_nothing_about_one() -> None:
    assert differenced(EXACT) == 1, "the attack works on exact counts"
    assert differenced(1) <= math.e / (1 + math.e) + 0.17


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
