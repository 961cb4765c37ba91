"""Qrlew: it rewrites a query into one of PostgreSQL's, which DuckDB runs; its usual options.

The schema is told by an SQLite file with as many empty rows, ranges and values by hand.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from asked import opened, task, turns
from pyqrlew import Dataset, Dialect
from sqlalchemy import create_engine

FILLED = """
INSERT INTO {table} ({column})
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n
"""


def schema(place: str, groups: int, rows: int, units: int) -> Dataset:
    """What is public about the tables; it counts their rows itself."""
    path = Path(place) / "schema.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY)")
        db.execute("CREATE TABLE t (id INTEGER, grp TEXT, x FLOAT)")
        db.execute(FILLED.format(table="people", column="id", rows=units))
        db.execute(FILLED.format(table="t", column="id", rows=rows))
    found = Dataset.from_database("bench", create_engine(f"sqlite:///{path}"), None)
    found = found.with_range(None, "t", "x", 0.0, 500.0)
    return found.with_possible_values(None, "t", "grp", [str(g) for g in range(groups)])


def main() -> None:
    asked = task()
    connection = opened(asked)
    connection.execute("ALTER TABLE t ALTER grp TYPE VARCHAR")
    with tempfile.TemporaryDirectory() as place:
        dataset = schema(place, asked["groups"], asked["rows"], asked["units"])
        unit = [("t", [], "id")]
        guarantee = {"epsilon": asked["epsilon"], "delta": asked["delta"]}

        def rewritten(text: str) -> str:
            relation = dataset.relation(text, Dialect.PostgreSql)
            private = relation.rewrite_with_differential_privacy(
                dataset, unit, guarantee,
                max_multiplicity=float(asked["most"]), max_multiplicity_share=1.0,
                max_privacy_unit_groups=asked["groups"],
            )  # fmt: skip
            return private.relation().to_query(Dialect.PostgreSql)

        turns(
            asked,
            lambda text: connection.sql(text).fetchall(),
            lambda text: connection.sql(rewritten(text)).fetchall(),
        )


if __name__ == "__main__":
    main()
