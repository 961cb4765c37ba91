"""Names of outputs inside aggregates mean what is grouped by, for each row."""

from __future__ import annotations

import pytest
from support.corpus import SHOP
from support.measured import plan_of

from dpsql.diagnostics.refusal import Refused
from dpsql.plan.identity import identity

SELECT = "SELECT age > 50 AS old, SUM(age) AS years FROM customers GROUP BY "


@pytest.mark.parametrize(("named", "spelled"), [
    ("1 HAVING COUNT(DISTINCT CASE WHEN country <> 'va' THEN old END) > 0",
     "1 HAVING COUNT(DISTINCT CASE WHEN country <> 'va' THEN age > 50 END) > 0"),
    ("old HAVING MAX(CASE WHEN old THEN age END) > 60",
     "old HAVING MAX(CASE WHEN age > 50 THEN age END) > 60"),
    ("ROLLUP (old) HAVING SUM(CASE WHEN old THEN age END) > 60",
     "ROLLUP (old) HAVING SUM(CASE WHEN age > 50 THEN age END) > 60"),
    ("1 QUALIFY SUM(CASE WHEN old THEN age END) > 60",
     "1 QUALIFY SUM(CASE WHEN age > 50 THEN age END) > 60"),
])  # fmt: skip
def test_a_name_in_an_aggregate_is_the_key_of_a_row(named: str, spelled: str) -> None:
    one, other = (plan_of(SELECT + clause, SHOP) for clause in (named, spelled))
    assert list(map(identity, one.measurements)) == list(map(identity, other.measurements))
    assert len(one.measurements[0].statistics) > 1


def test_an_aggregate_has_no_name_inside_another() -> None:
    with pytest.raises(Refused, match="DP105"):
        plan_of(SELECT + "1 HAVING SUM(years) > 60", SHOP)
