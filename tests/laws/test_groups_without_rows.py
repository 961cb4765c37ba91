"""Groups without rows take part above as rarely as is said, whatever the noise; others take part."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from test_counts import people

from dpsql.plan import empty_groups
from dpsql.service import Service

RUNS = 300
GROUPS = 50
ROWS = f"SELECT i AS id, 1 + i % {GROUPS} AS cell, 1.0 AS value, 'w' AS word FROM range(1, 20001) AS r(i)"
EMPTY = "SELECT cell, COUNT(*) AS n, SUM(value) AS s FROM people WHERE id < 0 GROUP BY cell"
FULL = "SELECT cell, COUNT(*) AS n, SUM(value) AS s FROM people GROUP BY cell"


def _with_any(opened: Service, *settings: str) -> float:
    """The share of answers in which a group without rows is."""
    session = opened.session("analyst")
    for setting in ("fresh = on", "epsilon = 0.1", "empty_groups = 'drop'", *settings):
        session.execute(f"SET dpsql.{setting}")
    return float(np.mean([session.execute(EMPTY).table.num_rows > 0 for _ in range(RUNS)]))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_any_group_without_rows_takes_part_in_a_twentieth_of_answers(mechanism: str) -> None:
    opened = people(ROWS, GROUPS)
    # 300 answers at 5 %: 15 on average, more than 30 once in 10,000.
    assert 0.01 < _with_any(opened, f"mechanism = '{mechanism}'") < 0.1


def test_a_lower_threshold_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty_groups, "CHANCE", Fraction(1, 4))
    assert _with_any(people(ROWS, GROUPS)) > 0.15


def test_groups_with_many_units_take_part() -> None:
    session = people(ROWS, GROUPS).session("analyst")
    sql = f"SELECT COUNT(n), MIN(n), AVG(n + 0) FROM ({FULL}) AS t"
    [[groups], [least], [mean]] = session.execute(sql).table.to_pydict().values()
    assert groups == GROUPS
    assert least == pytest.approx(400, abs=30)
    assert mean == pytest.approx(400, abs=5)
