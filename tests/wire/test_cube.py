"""Cube connects with its Postgres driver, reads the schema, drafts a model and charts: `make cube`."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bi
import pytest
from sides import Side

HERE = Path(__file__).parent / "cube"
MODULES = bi.TOOLS / "cube" / "node_modules"
DIFFERENT = {
    "a join": "whether a public group is empty is private",
    "samples of a private table": "rows of a private table are not shown",
}
STEPS = (
    "connect", "schema", "scaffold", "cubes", "a table of groups", "bars", "a time series by month",
    "a time range", "a number", "a join", "a filter on a measure", "filter values",
    "a public table", "a public count", "samples of a private table",
)  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not MODULES.is_dir() and os.environ.get("DPSQL_REQUIRE_CUBE") != "1",
        reason="no Cube here: make cube fetches it, and requires it",
    ),
]


@functools.cache
def _taken(side: Side) -> dict[str, Any]:
    """Every step against one server, in a Cube of its own."""
    around = {
        "CUBEJS_DB_HOST": side.host, "CUBEJS_DB_PORT": str(side.port), "CUBEJS_DB_USER": side.role,
        "CUBEJS_DB_PASS": side.password, "CUBEJS_DB_NAME": side.database, "TZ": "UTC",
        "CUBEJS_DB_TYPE": "postgres", "CUBEJS_TELEMETRY": "false", "NODE_PATH": str(MODULES),
    }  # fmt: skip
    return bi.steps([["node", HERE / "steps.js"]], around)


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    with bi.both() as found:
        yield found


@pytest.mark.parametrize("step", STEPS)
def test_cube_sees_what_it_sees_of_postgres(sides: tuple[Side, Side], step: str) -> None:
    ours, theirs = (_taken(side)[step] for side in sides)
    assert "FAILED" not in str(ours) + str(theirs)
    assert (ours != theirs) is (step in DIFFERENT), (ours, theirs)
