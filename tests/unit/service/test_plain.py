"""A reply as JSON is written part by part, and is what it would be in one."""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
import pytest

from dpsql.policy.types import Kind
from dpsql.privacy.cost import Cost
from dpsql.release.rows import OutputColumn
from dpsql.service import plain
from dpsql.service.reply import Reply

COLUMNS = (
    OutputColumn("n", Kind.INTEGER),
    OutputColumn("n", Kind.DATE),
    OutputColumn("x", Kind.DOUBLE),
)


def _reply(rows: int) -> Reply:
    numbers = pa.array(range(rows), pa.int64())
    dates = pa.array([date(2026, 1, 1) if i % 2 else None for i in range(rows)], pa.date32())
    doubles = pa.array(
        [[0.5, float("nan"), float("inf")][i % 3] for i in range(rows)], pa.float64()
    )
    table = pa.Table.from_arrays([numbers, dates, doubles], names=["o0", "o1", "o2"])
    ends = {2: (doubles, doubles), 0: (numbers, numbers)}
    return Reply("SELECT", COLUMNS, table, ends, Cost.zero(), recalled=True, notes=("cut",))


def _whole(reply: Reply) -> str:
    def listed(columns: list[pa.Array]) -> list[list[object]]:
        return [
            [plain._value(v) for v in r]
            for r in zip(*(c.to_pylist() for c in columns), strict=True)
        ]

    names = plain.distinct([c.name for c in reply.columns])
    document = {
        "columns": [{"name": c.name, "type": c.kind.value} for c in reply.columns],
        "rows": listed(reply.table.columns),
        "intervals": {names[i]: listed(list(ends)) for i, ends in sorted(reply.intervals.items())},
        "cost": plain.cost(reply.cost),
        "remaining": plain.describe_remaining(reply.remaining),
        "recalled": True,
        "notes": ["cut"],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


@pytest.mark.parametrize("rows", [0, 1, 3, 7])
def test_parts_make_the_whole(rows: int) -> None:
    whole = _whole(_reply(rows))
    assert "".join(plain.json_pieces(_reply(rows), 3)) == whole
    assert plain.to_json(_reply(rows)) == whole
