"""Several kinds of unit in one policy: mixed above aggregates, never below."""

from __future__ import annotations

import pytest
from shop import priced

POLICY = "refusals/two_units.yaml"


@pytest.mark.parametrize("sql", [
    "SELECT a.n - b.n FROM (SELECT COUNT(*) AS n FROM customers) AS a, (SELECT COUNT(*) AS n FROM visits) AS b",
    "SELECT COUNT(*) FROM customers UNION ALL SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM customers WHERE age > (SELECT COUNT(*) FROM visits)",
    "SELECT page FROM visits GROUP BY page HAVING COUNT(*) > (SELECT COUNT(*) FROM customers)",
    "SELECT COUNT(*) FROM customers AS c JOIN (SELECT customer_id, COUNT(*) AS n FROM visits GROUP BY 1) AS v USING (customer_id)",
])  # fmt: skip
def test_noisy_results_of_different_kinds_meet(sql: str) -> None:
    plan = priced(sql, policy=POLICY)
    assert {part.measurement.privacy.unit for part in plan.parts} == {"customer", "visit"}
    assert len(plan.parts) == 2
