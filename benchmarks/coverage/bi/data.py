"""The shop of the tests (fixtures/datasets/shop.sql) with any number of customers."""

from __future__ import annotations

from pathlib import Path

import duckdb

SCRIPT = Path(__file__).parents[3] / "fixtures" / "datasets" / "shop.sql"


def make(path: Path, scale: float) -> None:
    """``scale`` customers with their orders and visits; the same every time."""
    text = SCRIPT.read_text().replace("range(1, 2001)", f"range(1, {int(scale) + 1})")
    with duckdb.connect(str(path)) as connection:
        connection.execute(text)
