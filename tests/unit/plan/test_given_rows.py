"""Released relations that private rows are joined with: noised first, then given to the engine."""

from __future__ import annotations

import pytest
from support.measured import text_of
from support.shop import priced

from dpsql.plan.nodes import Lookup

TOP = "(SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel ORDER BY n DESC LIMIT 2) AS t"
LARGE = "(SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel) AS t"
QUERIES = (
    f"SELECT COUNT(*) FROM orders AS o JOIN {TOP} ON o.channel = t.channel",
    f"SELECT COUNT(*) FROM orders AS o JOIN {LARGE} ON o.channel = t.channel WHERE t.n > 1000",
    f"SELECT COUNT(*) FROM orders AS o LEFT JOIN {LARGE} ON o.channel = t.channel AND t.n > 10",
    f"SELECT SUM(o.amount) FROM {LARGE} JOIN orders AS o ON o.channel = t.channel AND t.n > 10",
    f"SELECT COUNT(*) FROM orders AS o WHERE EXISTS (SELECT 1 FROM {LARGE} WHERE t.channel = o.channel AND t.n > 9)",
    f"SELECT COUNT(*) FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM {LARGE} WHERE t.channel = o.channel AND t.n > 9)",
    f"WITH w AS (SELECT * FROM {LARGE}) SELECT COUNT(*) FROM orders AS o JOIN w ON o.channel = w.channel JOIN w AS v ON o.channel = v.channel",
)


@pytest.mark.parametrize("sql", QUERIES)
def test_no_true_count_is_used_below_another(sql: str) -> None:
    plan = priced(sql)
    inner, *others = plan.parts
    assert "$x" not in text_of(inner)
    assert others
    given = [v for v in plan.plan.lookups if v.form == "rows"]
    assert given
    for part in others:
        used = [v for v in given if f"${v.name}" in text_of(part)]
        assert used
        assert all(_after(v) for v in used)
        assert text_of(part).count('"orders"') == 1, "only the rows that are counted are read"


def _after(lookup: Lookup) -> bool:
    return lookup.after >= 1
