"""What all tests share: how long properties are tried, and how golden files are renewed."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "support"))

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
UNCOUNTED = (
    "tests/adversary/", "tests/adversary_faults/", "tests/mutation/", "tests/reference/",
    "tests/golden/test_suggestions.py", "tests/laws/test_coverage.py", "tests/unit/sql/test_arity.py",
    "tests/fuzz/test_fuzz.py", "tests/laws/test_attacks.py",
    "tests/laws/test_coverage_neighbours.py", "tests/laws/test_hostile.py",
    "tests/laws/test_selftest.py", "tests/laws/test_selftest_pairs.py",
    "tests/laws/test_strict_timing.py", "tests/laws/test_groups_without_rows.py",
    "tests/unit/aggregates/test_every_place.py", "tests/unit/aggregates/test_public_rows.py",
    "tests/wire/test_side_by_side.py", "tests/wire/test_wire_catalog_attacks.py",
)  # fmt: skip
IN_PART = (
    "tests/grammar/", "tests/laws/", "tests/unit/engines/", "tests/unit/sql/", "tests/wire/",
)  # fmt: skip
EACH = 8
"""Tests that ask the same of one case after the other: the first case counts, and each eighth after it."""
COUNTED = ("tests/laws/test_shortcuts.py",)
"""All cases of these count: each is about data that breaks another declaration."""
LONG = (
    "test_mutation.py",  # it forks its worker, which has few threads and little memory at first only
    "test_selftest.py", "test_wire_hostile.py", "test_neighbours.py", "test_oracle.py", "test_guard.py",
    "test_adversary.py", "test_ledger_path.py", "test_hostile.py", "test_coverage_neighbours.py",
    "test_fuzz.py", "test_selftest_pairs.py", "test_strict_timing.py", "test_side_by_side.py",
    "test_wire_catalog_attacks.py", "test_catalog_pool.py", "test_wire_databases.py",
    "test_wire_command.py", "test_attacks.py", "test_coverage.py", "test_live.py",
    "test_suggestions.py", "test_search.py", "test_endurance.py",
)  # fmt: skip
"""Files that take longest, in the order in which they start: no worker waits for one that starts last."""

settings.register_profile("dev", deadline=None, suppress_health_check=_SLOW)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="renew the results in golden files")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark what is not counted; order what takes long.

    Lines are counted where parts are tested, not where so much is tried that counting takes
    minutes: it makes a test two to four times as long. A file stays on one worker, since its tests
    share what they have planned and opened, and since a scheduler that sends 12,000 tests one by
    one keeps the workers waiting. The order is made after pytest-randomly has made its own, which
    is kept otherwise.
    """
    cases = Counter[str]()
    for item in items:
        place = item.path.relative_to(item.config.rootpath).as_posix()
        test = item.nodeid.split("[")[0]
        in_part = place.startswith(IN_PART) and not place.startswith(COUNTED)
        if place.startswith(UNCOUNTED) or (in_part and cases[test] % EACH):
            item.add_marker(pytest.mark.no_cover)
        cases[test] += 1
    yield
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONG)))


@pytest.fixture(scope="module", autouse=True)
def keep_what_stays() -> Iterator[None]:
    """What a file leaves (worlds, plans, parsed modules) stays: no collection looks at it again.

    The heap of a worker grows to some gigabytes; a full collection then takes more than a second.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written instead of compared."""
    return bool(request.config.getoption("--rewrite"))


def pytest_sessionfinish() -> None:
    """Data of this process goes with it."""
    from support import datasets  # only now: pytest has set the path

    datasets.remove()
