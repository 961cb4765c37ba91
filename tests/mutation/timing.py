"""A pytest plugin: which tests passed, how long each took, and what each reached; an end for long files."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

_LONGEST = 6
PLACE, LIMIT, REACHED = "MUTATION_TIMES", "MUTATION_SECONDS", "MUTATION_REACHED"

_began: dict[str, tuple[float, float]] = {}
"""On both clocks, for each file and test; what is imported before takes long on a busy machine."""
_times: dict[str, float] = {}
_reached: dict[str, list[int]] = {}
_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """What each reached is known once it has ended. Set-up counts, since a test that runs alone needs it too."""
    if not report.passed:
        _failed.add(report.nodeid)
    if report.when == "teardown":
        _times[report.nodeid] = _now()[0] - _began[report.nodeid][0]
        _reached[report.nodeid] = _taken()


def _now() -> tuple[float, float]:
    """Of processors, which other work on the machine does not prolong; and of the day."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system, time.monotonic()


def _taken() -> list[int]:
    """What was reached since this was last asked, in this process and those that it started."""
    import dpsql_reached  # type: ignore[import-not-found]  # probes.MODULE, in the copy alone

    dpsql_reached.seen.clear()
    place = Path(os.environ[REACHED])
    found = {int(line) for line in place.read_text().split()} if place.exists() else set()
    place.write_text("")
    return sorted(found)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The rest of a file that takes too long, or waits far too long, is no judge."""
    _began[item.nodeid] = now = _now()
    begun = _began.setdefault(item.nodeid.split("::")[0], now)
    used, waited = (one - other for one, other in zip(now, begun, strict=True))
    if used > (limit := float(os.environ[LIMIT])) or waited > _LONGEST * limit:
        pytest.skip("the time for this file has passed")


def pytest_sessionfinish() -> None:
    """Left for the process that asked."""
    passed = {name: seconds for name, seconds in _times.items() if name not in _failed}
    reached = {name: keys for name, keys in _reached.items() if name in passed and keys}
    Path(os.environ[PLACE]).write_text(
        json.dumps({"seconds": passed, "reached": reached}), encoding="utf-8"
    )
