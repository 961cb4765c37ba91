"""Apache Superset connects, syncs a schema, builds data sets and charts: `make superset`.

Each step is taken beside a real PostgreSQL with the same tables. The policy chooses empty previews,
as one does for tools that probe a query's columns with a row.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoint import endpoint, generous
from postgres_server import shared_server
from sides import Side, postgres

HERE = Path(__file__).parent / "superset"
HOME = Path(__file__).parents[2] / "build" / "clients" / "superset" / "bin"
DIFFERENT = {"samples of a private table": "rows of a private table are not shown"}
STEPS = (
    "connect", "schemas", "tables", "columns", "foreign keys", "a data set of orders",
    "a data set of visits", "a data set of countries", "a data set of a query", "a table of groups",
    "bars", "a time series by month", "a time series by quarter", "a time range", "filter values",
    "a big number", "a filter on an aggregate", "a chart of a query", "a public table",
    "samples of a private table",
)  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HOME.is_dir(), reason="no Superset here: make superset"),
]


@functools.cache
def _taken(side: Side) -> dict[str, Any]:
    """Every step against one server, in a Superset of its own."""
    with tempfile.TemporaryDirectory() as place:
        around = {
            **os.environ, "SUPERSET_PLACE": place, "PYTHONPATH": str(HERE), "FLASK_APP": "superset",
            "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py"),
            "STEPS_URI": side.url("postgresql+psycopg2"),
        }  # fmt: skip
        for command in ([HOME / "superset", "db", "upgrade"], [HOME / "python", HERE / "steps.py"]):
            done = subprocess.run(
                list(map(str, command)), capture_output=True, text=True, check=False, env=around
            )
            assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"check"')]
    return {line["check"]: line["saw"] for line in lines}


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    with (
        endpoint(lambda text: generous(text) + "preview: empty\n") as shop,
        postgres(shared_server(), shop) as real,
    ):
        yield Side(shop.port), real


@pytest.mark.parametrize("step", STEPS)
def test_superset_sees_what_it_sees_of_postgres(sides: tuple[Side, Side], step: str) -> None:
    ours, theirs = (_taken(side)[step] for side in sides)
    assert "FAILED" not in str(ours) + str(theirs)
    assert (ours != theirs) is (step in DIFFERENT), (ours, theirs)
