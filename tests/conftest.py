"""What all tests share: how long properties are tried, and how golden files are renewed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "support"))

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
UNCOUNTED = (
    "test_attacks.py", "test_coverage_neighbours.py", "test_fuzz.py", "test_hostile.py",
    "test_selftest.py", "test_selftest_pairs.py",
)  # fmt: skip

settings.register_profile("dev", deadline=None, suppress_health_check=_SLOW)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="renew the results in golden files")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lines are counted where parts are tested, not where so much is tried that counting takes minutes."""
    for item in items:
        if item.path.name in UNCOUNTED:
            item.add_marker(pytest.mark.no_cover)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written instead of compared."""
    return bool(request.config.getoption("--rewrite"))


def pytest_sessionfinish() -> None:
    """Data of this process goes with it."""
    from support import datasets  # only now: pytest has set the path

    datasets.remove()
