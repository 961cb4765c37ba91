"""Strict timing: conditions leave WHERE and joins, and the second check sees to it."""

from __future__ import annotations

import re
from itertools import count

import pytest
from support.measured import text_of
from support.shop import catalog, priced

from dpsql.bound.copies import companion
from dpsql.bound.reading import match_copies
from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.guard import Guard, Unsafe
from dpsql.ir.relations import Filter, Limit, Private, Scan, walk_relations
from dpsql.plan.lift import lift_conditions
from dpsql.plan.nodes import Lifted
from dpsql.policy.prepared_copies import PreparedCopies
from dpsql.reuse.pieces import pieces

STRICT, UNSTEADY = "policies/strict.yaml", "policies/unsteady.yaml"
WEB = "FROM orders WHERE channel = 'web'"
LIFTED = {
    "a filter": "SELECT COUNT(*) FROM customers WHERE age > 40",
    "a filter on a side of a join": "SELECT COUNT(*) FROM orders o JOIN customers c ON o.customer_id = c.customer_id WHERE c.city = 'linz'",
    "a condition of a join": "SELECT COUNT(*) FROM orders o JOIN customers c ON o.customer_id = c.customer_id AND o.amount > c.age AND c.age > 20 AND o.amount > 9",
    "thresholded groups": "SELECT c.city, COUNT(*), SUM(o.amount) FROM orders o JOIN customers c ON o.customer_id = c.customer_id WHERE o.amount > 1 GROUP BY c.city",
    "thresholded groups of one row": "SELECT city, COUNT(*) FROM customers WHERE age > 40 GROUP BY city",
    "a public table": "SELECT COUNT(*) FROM customers c JOIN countries n ON n.country = c.country WHERE n.continent = 'EU'",
    "constants beside each row": "SELECT COUNT(*) FROM customers c JOIN (VALUES (18, 40), (41, 100)) AS b(lo, hi) ON c.age > 5",
    "EXISTS": "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.amount > 9 AND c.age > 5)",
    "EXISTS of a join": "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o JOIN visits v ON v.customer_id = o.customer_id WHERE o.customer_id = c.customer_id AND o.amount > 9)",
    "EXISTS in EXISTS": "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND EXISTS (SELECT 1 FROM visits v WHERE v.customer_id = o.customer_id AND v.page = 'home'))",
    "NOT EXISTS": "SELECT COUNT(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.amount > 9)",
    "a public list": "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM countries n WHERE n.country = c.country AND n.continent = 'EU')",
    "a grouped side that may lack": "SELECT COUNT(*) FROM customers c WHERE c.age > (SELECT AVG(v.seconds) FROM visits v WHERE v.customer_id = c.customer_id AND v.page = 'home')",
    "DISTINCT": f"SELECT COUNT(*) FROM (SELECT DISTINCT customer_id, placed {WEB}) AS o",
    "a union": f"SELECT COUNT(*) FROM (SELECT customer_id {WEB} UNION ALL SELECT customer_id FROM visits) AS u",
    "a union of different rows": f"SELECT COUNT(*) FROM (SELECT customer_id {WEB} UNION SELECT customer_id FROM visits) AS u",
    "a window": f"SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY customer_id ORDER BY amount) AS r {WEB}) AS o WHERE r = 1",
    "a window of all": "SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY customer_id ORDER BY amount) AS r FROM orders) AS o WHERE r = 1",
    "a unit's groups": f"SELECT COUNT(*) FROM (SELECT customer_id, SUM(amount) FILTER (WHERE amount > 1) AS s, COUNT(*) AS n {WEB} GROUP BY customer_id HAVING COUNT(*) > 1) AS o WHERE s > 5",
    "a median": f"SELECT placed, MEDIAN(amount) {WEB} GROUP BY placed",
    "a median of text groups": "SELECT c.city, MEDIAN(o.amount) FROM orders o JOIN customers c ON o.customer_id = c.customer_id WHERE o.amount > 1 GROUP BY c.city",
    "different values": f"SELECT COUNT(DISTINCT placed) {WEB}",
    "row weights": "SELECT channel, SUM(amount), COUNT(*) FROM orders WHERE amount > 1 GROUP BY channel",
    "a cap of the query": "SELECT WITH DIFFERENTIAL_PRIVACY SUM(age, contribution_bounds_per_group => (5, 40)) FROM customers WHERE age > 40",
}  # fmt: skip
UNLIFTED = {
    "constants": "SELECT COUNT(*) FROM customers c JOIN (VALUES (18, 40), (41, 100)) AS b(lo, hi) ON c.age BETWEEN b.lo AND b.hi",
    "all of a unit's groups": "SELECT SUM(LEAST(n, 5)) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id ORDER BY n) AS o",
    "all rows": "SELECT COUNT(*) FROM customers",
    "a union of everything": "SELECT COUNT(*) FROM (SELECT customer_id FROM orders UNION ALL SELECT customer_id FROM visits) AS u",
    "all different rows": "SELECT COUNT(*) FROM (SELECT DISTINCT customer_id, page FROM visits) AS v",
    "a left join": "SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON c.customer_id = o.customer_id",
}


def _statements(sql: str, policy: str = STRICT) -> list[str]:
    return [text_of(part) for part in priced(sql, policy=policy, dialect=_dialect(sql)).parts]


def _dialect(sql: str) -> str:
    return "bigquery" if "DIFFERENTIAL_PRIVACY" in sql else "postgres"


@pytest.mark.parametrize("what", [*LIFTED, *UNLIFTED])
def test_no_condition_is_left_where_rows_are_read(what: str) -> None:
    """The guard's rules for steady statements know nothing of how conditions were lifted."""
    guard = Guard(catalog(STRICT).policy)
    for text in _statements({**LIFTED, **UNLIFTED}[what]):
        guard.check(text)
        assert not re.search(r"SEMI|ANTI", text)


@pytest.mark.parametrize("what", LIFTED)
def test_the_same_question_without_strict_timing_does_not_pass(what: str) -> None:
    """What makes the test above say something."""
    (text, *_) = _statements(LIFTED[what], UNSTEADY)
    with pytest.raises(Unsafe, match="decides which"):
        Guard(catalog(STRICT).policy).check(text)
    Guard(catalog(UNSTEADY).policy).check(text)


@pytest.mark.parametrize("what", [*LIFTED, *UNLIFTED])
def test_it_costs_the_same_and_recalls_the_same(what: str) -> None:
    sql = {**LIFTED, **UNLIFTED}[what]
    plans = [priced(sql, policy=policy, dialect=_dialect(sql)) for policy in (STRICT, UNSTEADY)]
    strict, usual = plans
    assert (strict.cost, strict.events) == (usual.cost, usual.events)
    names = [[(p.key, p.family, p.base) for p in pieces(plan, "1")] for plan in plans]
    assert names[0] == names[1]


def test_what_is_kept_is_a_condition_over_other_rows() -> None:
    plan = priced(LIFTED["a filter"], policy=STRICT).plan
    (measurement,) = plan.measurements
    assert isinstance(measurement.lifted, Lifted)
    assert measurement.lifted.kept is not None
    assert not any(isinstance(r, Filter) for r in walk_relations(measurement.lifted.input))
    assert any(isinstance(r, Filter) for r in walk_relations(measurement.input))


def test_what_is_not_known_is_refused() -> None:
    (measurement,) = priced(UNLIFTED["all rows"], policy=STRICT).plan.measurements
    scan = next(r for r in walk_relations(measurement.input) if isinstance(r, Scan))
    assert isinstance(scan.privacy, Private)
    cut = Limit(scan, 5, 0, scan.fields, scan.privacy)
    with pytest.raises(Refused, match="DP306"):
        lift_conditions(cut, count(100))
    assert lift_conditions(scan, count(100)) == Lifted(scan, None)


def test_prepared_copies_are_not_read() -> None:
    policy = catalog(STRICT).policy
    shelf = PreparedCopies({"orders": companion(policy.tables["orders"])}, frozenset({"customers"}))
    for name, read in ((STRICT, False), (UNSTEADY, True)):
        (measurement,) = priced("SELECT COUNT(*) FROM orders", policy=name).plan.measurements
        assert (match_copies(measurement, shelf) is not None) is read
