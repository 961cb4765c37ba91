"""Several processes on one file, and processes that are killed."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ledger_worker import ACCOUNTS

from dpsql.ledger.charge import NANO
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.states import State

WORKER = Path(__file__).with_name("ledger_worker.py")


def start(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-W", "error", str(WORKER), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def reopened(path: Path) -> SqliteLedger:
    return SqliteLedger.open(path, lambda: datetime.now(UTC), wait=60)


def test_eight_processes_get_a_thousand_charges_and_no_more(path):
    workers = [start("hammer", path, 160) for _ in range(8)]
    granted = [int(worker.communicate(timeout=120)[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    assert sum(granted) == 1000
    with reopened(path) as ledger:
        assert [b.spent.epsilon for b in ledger.balances(ACCOUNTS)] == [NANO, NANO]
        assert ledger.verify().sound


def kill_one(path: Path, seconds: float) -> list[int]:
    """Let a process answer for a while, kill it in mid-work; the holds it answered."""
    with start("answer", path) as worker:
        first = worker.stdout.readline()
        time.sleep(seconds)
        worker.kill()
        return [int(line) for line in (first + worker.stdout.read()).splitlines()]


def check_after_kill(path: Path, answered: list[int]) -> None:
    with reopened(path) as ledger:
        state: dict[int, str] = {}
        for record in ledger.events():
            state[record.hold] = record.content["state"]
        assert all(state[hold] == "committed" for hold in answered)
        assert not any(State(now).open for now in state.values())
        charged = sum(State(now).spent for now in state.values())
        [balance] = ledger.balances(ACCOUNTS[:1])
        assert balance.spent.epsilon == charged * NANO // 1000
        assert charged >= len(answered)
        assert ledger.verify().sound


def storm(path: Path, kills: int) -> None:
    answered: list[int] = []
    for _ in range(kills):
        answered += kill_one(path, secrets.randbelow(100) / 1000)
        check_after_kill(path, answered)
    assert len(set(answered)) == len(answered) >= kills


def test_killed_processes_lose_no_charge(path):
    storm(path, 6)


@pytest.mark.slow
def test_many_killed_processes_lose_no_charge(path):
    storm(path, 200)


def test_a_killed_process_does_not_disturb_its_neighbour(path):
    with start("answer", path) as neighbour:
        first = neighbour.stdout.readline()
        answered = kill_one(path, 0.05)
        reopened(path).close()  # settles the dead one's holds, while the neighbour goes on
        assert neighbour.poll() is None
        neighbour.kill()
        answered += [int(line) for line in (first + neighbour.stdout.read()).splitlines()]
    check_after_kill(path, answered)
