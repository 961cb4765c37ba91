"""Public rows are read as far as they are needed."""

from __future__ import annotations

import pytest
from support.corpus import SHOP
from support.measured import plan_of

from dpsql.engines.duckdb.groups import write_public

ASIA = "(SELECT country FROM countries WHERE continent = 'asia')"


@pytest.mark.parametrize(("sql", "read", "where"), [
    (f"SELECT continent FROM countries WHERE country IN {ASIA} AND population > 5", {"continent", "country"}, "population"),
    (f"SELECT continent FROM countries WHERE country IN {ASIA}", {"continent", "country"}, ""),
    (f"SELECT continent, COUNT(*) FROM countries WHERE country NOT IN {ASIA} GROUP BY 1 ORDER BY 1", {"continent", "country"}, ""),
    ("SELECT COUNT(*) FROM countries WHERE (SELECT COUNT(*) FROM countries) > 1", {"country"}, ""),
    (f"SELECT c.continent FROM countries c JOIN countries d ON c.country = d.country WHERE c.country IN {ASIA} AND d.population > 5", {"continent", "country"}, "population"),
    (f"SELECT * FROM countries WHERE country IN {ASIA}", {"country", "continent", "population"}, ""),
    (f"SELECT DISTINCT continent FROM (SELECT * FROM countries LIMIT 9) AS x WHERE country IN {ASIA}", {"continent", "country"}, ""),
])  # fmt: skip
def test_of_public_rows_what_is_needed_is_read(sql: str, read: set[str], where: str) -> None:
    first = plan_of(sql, SHOP).publics[0]
    assert {f.name for f in first.fields} == read
    sql = write_public(first)
    assert where in sql.partition(" WHERE ")[2]
    assert ("WHERE" in sql) == bool(where)
