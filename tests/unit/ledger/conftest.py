"""A ledger in a temporary file, and a clock that obeys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ledger_world import Clock

from dpsql.ledger.sqlite import SqliteLedger


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.ledger"


@pytest.fixture
def opened(path: Path, clock: Clock) -> Iterator[Callable[..., SqliteLedger]]:
    """Opens the ledger; all of them are closed in the end."""
    ledgers = []

    def opener(at: Path = path, **options: float) -> SqliteLedger:
        ledgers.append(SqliteLedger.open(at, clock, **options))
        return ledgers[-1]

    yield opener
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def ledger(opened: Callable[..., SqliteLedger]) -> SqliteLedger:
    return opened()
