"""Joins on a foreign key that pairs rows of one unit, though the way to the unit is another one."""

from __future__ import annotations

import pytest
from support.corpus import World
from support.measured import opened, text_of

from dpsql.diagnostics.refusal import Refused
from dpsql.policy.model import Policy
from dpsql.service import Session


def _undeclared(text: str) -> str:
    return text.replace(", same_unit: true", "")


FAR = World("far", "trade")
WITHOUT = World("far", "trade", _undeclared)
ON = "r.order_id = l.order_id AND r.line = l.line"
JOINS = {
    "inner": f"SELECT COUNT(*) FROM refunds AS r JOIN lineitem AS l ON {ON}",
    "comma": f"SELECT COUNT(*) FROM lineitem AS l, refunds AS r WHERE {ON}",
    "left": f"SELECT COUNT(r.paid) FROM lineitem AS l LEFT JOIN refunds AS r ON {ON}",
    "right": f"SELECT COUNT(r.paid) FROM refunds AS r RIGHT JOIN lineitem AS l ON {ON}",
    "semi": f"SELECT COUNT(*) FROM lineitem AS l WHERE EXISTS (SELECT 1 FROM refunds AS r WHERE {ON})",
    "anti": f"SELECT COUNT(*) FROM lineitem AS l WHERE NOT EXISTS (SELECT 1 FROM refunds AS r WHERE {ON})",
    "grouped": "SELECT SUM(n) FROM (SELECT order_id, line, COUNT(*) AS n FROM refunds GROUP BY order_id, line)"
    f" AS r JOIN lineitem AS l ON {ON}",
    "scalar": f"SELECT COUNT(*) FROM lineitem AS l WHERE quantity > (SELECT SUM(paid) FROM refunds AS r WHERE {ON})",
    "three": f"SELECT COUNT(*) FROM refunds AS r, lineitem AS l, orders AS o WHERE {ON} AND o.order_id = l.order_id",
    "below a left join": f"SELECT COUNT(*) FROM refunds AS r JOIN lineitem AS l ON {ON}"
    " LEFT JOIN part AS p ON p.part_id = l.part_id",
}


def _session(world: World = FAR) -> Session:
    return opened(world).session("strict")


@pytest.mark.parametrize("kind", JOINS)
def test_the_units_of_both_rows_are_compared(kind: str) -> None:
    """Whatever the data is, the statement pairs rows of one unit."""
    (part,) = _session().prepare(JOINS[kind]).parts
    conditions = text_of(part).split(" ON ")[1:]
    compared = [c for c in conditions if "customer_region" in c and "customer_number" in c]
    assert compared, text_of(part)


@pytest.mark.parametrize("kind", [k for k in JOINS if k not in ("grouped", "scalar")])
def test_without_the_declaration_the_join_is_refused(kind: str) -> None:
    """Groups of refunds are not: they are measured, and one refund is too little to be shown."""
    with pytest.raises(Refused) as refused:
        _session(WITHOUT).prepare(JOINS[kind])
    assert refused.value.code == "DP301"


@pytest.mark.parametrize(
    "on",
    ["r.order_id = l.order_id", "r.line = l.line", "r.order_id = l.line AND r.line = l.order_id"],
)
def test_a_part_of_the_key_declares_nothing(on: str) -> None:
    with pytest.raises(Refused) as refused:
        _session().prepare(f"SELECT COUNT(*) FROM refunds AS r JOIN lineitem AS l ON {on}")
    assert refused.value.code == "DP301"


def test_the_way_to_the_unit_stays_the_other_key() -> None:
    policy: Policy = opened(FAR).policy
    assert policy.tables["refunds"].path == ()
    (part,) = _session().prepare("SELECT COUNT(*) FROM refunds").parts
    assert "JOIN" not in text_of(part).split("AS l ")[0]
