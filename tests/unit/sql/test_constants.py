"""VALUES: constants that the engine takes for equal are equal, and meet a row as often."""

# ruff: noqa: DTZ001 (naive by design)

from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest
from support.datasets import in_memory
from support.services import session

DAY, AT = "DATE '2025-03-01'", "TIMESTAMP '2025-03-01 00:00:00'"
LATER = "TIMESTAMP '2025-03-02 00:00:00'"
JOINED = "SELECT COUNT(*) FROM orders AS o JOIN (VALUES {}) AS d(day) ON o.placed = d.day"


@pytest.mark.parametrize(("rows", "many"), [
    (f"({DAY}), ({LATER})", 1), (f"({DAY}), ({AT})", 2), (f"({AT}), ({DAY})", 2),
    (f"({DAY}), ({AT}), ({LATER})", 3), (f"({DAY}), ({DAY})", 2), (f"({DAY}), (NULL)", 1),
])  # fmt: skip
def test_a_row_meets_as_many_constants_as_are_equal(rows: str, many: int) -> None:
    sql, here = JOINED.format(rows), session("oracle", "shop")
    (part,) = here.prepare(sql).parts
    assert part.measurement.privacy.max_rows == 50 * many
    found = here.execute(sql).table.column(0).to_pylist()
    assert found == [n for (n,) in in_memory("shop").execute(sql).fetchall()]


@pytest.mark.parametrize("value", [
    dt.date(2025, 3, 1), dt.datetime(2025, 3, 1, fold=1), pd.Timestamp("2025-03-01"),
    pd.Timestamp("2025-03-01 00:00:00.000000001"),
], ids=repr)  # fmt: skip
def test_so_it_does_for_parameters(value: dt.date) -> None:
    parameters = (dt.datetime(2025, 3, 1), value)
    (part,) = session("oracle", "shop").prepare(JOINED.format("($1), ($2)"), parameters).parts
    assert part.measurement.privacy.max_rows == 100


def test_a_column_of_numbers_is_of_one_kind() -> None:
    reply = session("oracle", "shop").execute("SELECT x FROM (VALUES (1), (2.5), (NULL)) AS v(x)")
    assert reply.table.column(0).to_pylist() == [1.0, 2.5, None]
