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
EMPTY = ["va", None]
"""Countries where nobody lives, which dpsql shows: whether a public group is empty is private."""
SAMPLES = ([200, 0], [200, 5])
"""How many rows of a private table are shown as samples, by either."""
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
def _taken(side: Side, *, exact: bool) -> dict[str, Any]:
    """Every step against one server, in a Cube of its own."""
    around = {
        "CUBEJS_DB_HOST": side.host, "CUBEJS_DB_PORT": str(side.port), "CUBEJS_DB_USER": side.role,
        "CUBEJS_DB_PASS": side.password, "CUBEJS_DB_NAME": side.database, "TZ": "UTC",
        "CUBEJS_DB_TYPE": "postgres", "CUBEJS_TELEMETRY": "false", "NODE_PATH": str(MODULES),
        "STEPS_EXACT": "1" if exact else "",
    }  # fmt: skip
    return bi.steps([["node", HERE / "steps.js"]], around)


@pytest.fixture(scope="module")
def sides() -> Iterator[bi.Sides]:
    with bi.sides() as found:
        yield found


@pytest.mark.parametrize("exact", [False, True], ids=["noised", "exact"])
@pytest.mark.parametrize("step", STEPS)
def test_cube_sees_what_it_sees_of_postgres(sides: bi.Sides, step: str, exact: bool) -> None:
    """Each chart has the same groups and columns; where noise is less than it shows, the same numbers."""
    ours, theirs = (_taken(side, exact=exact)[step] for side in sides.beside(exact=exact))
    assert "FAILED" not in str(ours) + str(theirs)
    if step == "samples of a private table":
        assert (ours, theirs) == SAMPLES
    elif step == "a join":
        known = [row[0] for row in theirs[1]]
        assert [row[0][1] for row in ours[1] if row[0] not in known] == EMPTY
        assert bi.alike([200, [row for row in ours[1] if row[0] in known]], theirs)
        counts = [float(row[1][1]) for row in ours[1] if exact and row[0] not in known]
        assert counts == [0.0] * 2 * exact
    else:
        assert bi.alike(ours, theirs) if exact else ours == theirs, (ours, theirs)
