"""BI tools end to end: each step of a tool against the endpoint, and against PostgreSQL.

The policy chooses empty previews, as one does for tools that probe a query's columns with a row.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from endpoint import endpoint, generous
from postgres_server import shared_server
from sides import Side, postgres

TOOLS = Path(__file__).parents[2] / "build" / "clients"
"""Where tests/support/clients.sh puts what it fetches."""


@contextmanager
def both() -> Iterator[tuple[Side, Side]]:
    """The endpoint and PostgreSQL."""
    with (
        endpoint(lambda text: generous(text) + "preview: empty\n") as shop,
        postgres(shared_server(), shop) as real,
    ):
        yield Side(shop.port), real


def steps(commands: Sequence[Sequence[object]], around: Mapping[str, str]) -> dict[str, Any]:
    """What the last of the commands says of each of its steps; all run in a place of their own."""
    with tempfile.TemporaryDirectory() as place:
        for command in commands:
            done = subprocess.run(
                list(map(str, command)), capture_output=True, text=True, check=False, cwd=place,
                env={**os.environ, "STEPS_PLACE": place, **around},
            )  # fmt: skip
            assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"check"')]
    return {line["check"]: line["saw"] for line in lines}
