"""Grouping sets over public tables: what they give is in several rows, and so is no key."""

from __future__ import annotations

import pytest
from support.corpus import WORLDS
from support.measured import opened

from dpsql.diagnostics.refusal import Refused
from dpsql.sql.bind import join_rules

SETS = ("GROUPING SETS ((part_id), (part_id))", "ROLLUP (part_id)", "CUBE (part_id, brand)")
JOIN = "SELECT COUNT(*) FROM lineitem AS l JOIN (SELECT part_id FROM part GROUP BY %s) AS p ON l.part_id = p.part_id"


@pytest.mark.parametrize("sets", SETS)
def test_private_rows_do_not_meet_one_group_twice(
    sets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them would count as often as the key is there, unnoticed by the row limit."""
    session = opened(WORLDS["trade"]).session()
    assert session.prepare(JOIN % "part_id").parts
    with pytest.raises(Refused) as refused:
        session.prepare(JOIN % sets)
    assert refused.value.code == "DP304"
    shared = join_rules.find_fan_outs
    monkeypatch.setattr(
        join_rules, "find_fan_outs", lambda r: shared(r) or [({f.number}, 1) for f in r.fields[:1]]
    )
    assert session.prepare(JOIN % sets + " -- were they taken for a key").parts


def test_several_sets_are_several_rows() -> None:
    sets = "SELECT COUNT(*) FROM part GROUP BY GROUPING SETS ((), ())"
    with pytest.raises(Refused) as refused:
        opened(WORLDS["trade"]).session().prepare(
            f"SELECT COUNT(*) FROM lineitem WHERE quantity > ({sets})"
        )
    assert refused.value.code == "DP112"
