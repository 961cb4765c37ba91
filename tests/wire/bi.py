"""BI tools end to end: each step of a tool against the endpoint, and against PostgreSQL.

The policy chooses empty previews, as one does for tools that probe a query's columns with a row.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from endpoint import endpoint, generous
from postgres_server import shared_server
from sides import Side, postgres

TOOLS = Path(__file__).parents[2] / "build" / "clients"
"""Where tests/support/clients.sh puts what it fetches."""


def _exact(text: str) -> str:
    """Budgets at which noise is less than anything that a chart shows."""
    text = generous(text).replace("{epsilon: 1e6,", "{epsilon: 1e9,")
    text = text.replace("    epsilon: 1e5\n", "    epsilon: 1e9\n")
    text = text.replace("session: {epsilon: 1e4}", "session: {epsilon: 1e9}")
    return re.sub(r"query: \{epsilon: [^},]+", "query: {epsilon: 5e7", text)


@dataclass(frozen=True)
class Sides:
    """Two endpoints and PostgreSQL; at the second, noise is less than what a chart shows."""

    noised: Side
    exact: Side
    real: Side

    def beside(self, *, exact: bool) -> tuple[Side, Side]:
        """An endpoint, and what it is held against."""
        return (self.exact if exact else self.noised), self.real


@contextmanager
def sides() -> Iterator[Sides]:
    """All of them, with the same rows."""
    with (
        endpoint(lambda text: generous(text) + "preview: empty\n") as shop,
        endpoint(lambda text: _exact(text) + "preview: empty\n") as exact,
        postgres(shared_server(), shop) as real,
    ):
        yield Sides(Side(shop.port), Side(exact.port), real)


def alike(ours: Any, theirs: Any) -> bool:
    """Whether both are the same, but for a millionth part of a number, which may be written as text."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    if ours == theirs:
        return True
    if str(ours)[:2] == str(theirs)[:2] == "[[":
        return alike(json.loads(ours), json.loads(theirs))
    numbers = [_number(side) for side in (ours, theirs)]
    return None not in numbers and math.isclose(*numbers, rel_tol=1e-6)  # type: ignore[arg-type]


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


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
