"""A pytest plugin: which tests passed and how long each took; an end for files that take too long."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

PLACE, LIMIT = "MUTATION_TIMES", "MUTATION_SECONDS"

_began: list[float] = []
"""When the first test did; what is imported before it takes long on a busy machine."""
_times: dict[str, float] = {}
_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Set-up counts, since a test that runs alone needs it too."""
    if not report.passed:
        _failed.add(report.nodeid)
    _times[report.nodeid] = _times.get(report.nodeid, 0.0) + report.duration


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """The rest of a file that takes too long is no judge. (A session that is stopped loses its lines.)"""
    _began.append(time.monotonic())
    if _began[-1] - _began[0] > float(os.environ[LIMIT]):
        pytest.skip("the time for this file has passed")


def pytest_sessionfinish() -> None:
    """Left for the process that asked."""
    passed = {name: seconds for name, seconds in _times.items() if name not in _failed}
    Path(os.environ[PLACE]).write_text(json.dumps(passed), encoding="utf-8")
