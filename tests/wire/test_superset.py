"""Apache Superset connects, syncs a schema, builds data sets and charts: `make superset`.

Each step is taken beside a real PostgreSQL with the same tables.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bi
import pytest
from sides import Side

HERE = Path(__file__).parent / "superset"
HOME = bi.TOOLS / "superset" / "bin"
SAMPLES = [0, 100]
"""How many samples of a private table are shown, by dpsql and by PostgreSQL.

Superset asks for distinct rows. Where noise is next to nothing, those of two people pass the threshold.
"""
STEPS = (
    "connect", "schemas", "tables", "columns", "foreign keys", "a data set of orders",
    "a data set of visits", "a data set of countries", "a data set of a query", "a table of groups",
    "bars", "a time series by month", "a time series by quarter", "a time range", "filter values",
    "a big number", "a filter on an aggregate", "a chart of a query", "a public table",
    "samples of a private table",
)  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not HOME.is_dir() and os.environ.get("DPSQL_REQUIRE_SUPERSET") != "1",
        reason="no Superset here: make superset fetches it, and requires it",
    ),
]


@functools.cache
def _taken(side: Side, *, exact: bool) -> dict[str, Any]:
    """Every step against one server, in a Superset of its own."""
    around = {
        "PYTHONPATH": str(HERE), "FLASK_APP": "superset",
        "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py"),
        "STEPS_URI": side.url("postgresql+psycopg2"), "STEPS_EXACT": "1" if exact else "",
    }  # fmt: skip
    return bi.steps(
        [[HOME / "superset", "db", "upgrade"], [HOME / "python", HERE / "steps.py"]], around
    )


@pytest.fixture(scope="module")
def sides() -> Iterator[bi.Sides]:
    with bi.sides() as found:
        yield found


@pytest.mark.parametrize("exact", [False, True], ids=["noised", "exact"])
@pytest.mark.parametrize("step", STEPS)
def test_superset_sees_what_it_sees_of_postgres(sides: bi.Sides, step: str, exact: bool) -> None:
    """Each chart has the same groups and columns; where noise is less than it shows, the same numbers."""
    ours, theirs = (_taken(side, exact=exact)[step] for side in sides.beside(exact=exact))
    assert "FAILED" not in str(ours) + str(theirs)
    if step == "samples of a private table":
        assert ours[:3] == theirs[:3]
        shown, real = (len(side[3]) for side in (ours, theirs))
        assert 0 < shown < real if exact else [shown, real] == SAMPLES
    else:
        assert bi.alike(ours, theirs) if exact else ours == theirs, (ours, theirs)
