"""What issue 4 must show: many clients, killed processes, broken disks, dashboards."""

from __future__ import annotations

import math
import multiprocessing
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from multiprocessing.reduction import DupFd
from pathlib import Path

import path_worker
import pytest
from postgres_server import shared_server
from support.services import policy_file, real_service

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger.charge import NANO, Charge
from dpsql.ledger.states import State
from dpsql.service import Service

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dpsql.service", "dpsql.ledger.postgres", "numpy.random"])


def started(target: Callable[..., None], *arguments: object):
    """A process, and the end of a pipe on which it is read."""
    reading, writing = os.pipe()
    process = PROCESSES.Process(target=with_pipe, args=(target, arguments, Descriptor(writing)))
    process.start()
    os.close(writing)
    return process, reading


def with_pipe(target: Callable[..., None], arguments: tuple[object, ...], writing: int) -> None:
    target(*arguments, writing)


class Descriptor:
    """A file descriptor that is handed to the process while it is made."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self):
        return received, (DupFd(self.number),)


def received(handed) -> int:
    return handed.detach()


def everything(reading: int) -> bytes:
    with open(reading, "rb") as pipe:
        return pipe.read()


# Many clients


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_sixty_four_clients_on_four_processes_get_a_thousand_charges_and_no_more(store, tmp_path):
    place = str(tmp_path / "shop.ledger") if store == "sqlite" else shared_server().dsn
    schema = f"s{secrets.token_hex(6)}"
    path_worker.opened(store, place, schema).close()
    workers = [started(path_worker.sixteen_clients, store, place, schema, 32) for _ in range(4)]
    granted = [int(everything(reading)) for _, reading in workers]
    for process, _ in workers:
        process.join(60)
        assert process.exitcode == 0
    assert sum(granted) == 1000
    with closing(path_worker.opened(store, place, schema)) as ledger:
        assert [b.spent.epsilon for b in ledger.balances(path_worker.ACCOUNTS)] == [NANO, NANO]
        assert ledger.verify().sound


# Killed processes


def rich(text: str) -> str:
    """A shop that can afford to be asked all day."""
    for old, new in (
        ("{epsilon: 20,", "{epsilon: 1e6,"),
        ("epsilon: 5\n    delta: 1e-6\n    per: month", "epsilon: 1e6\n    delta: 1e-6"),
        ("session: {epsilon: 1}", "session: {epsilon: 1e6}"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def kill_one(policy: Path, *, early: bool) -> list[tuple[int, int, bool, int]]:
    """Let a process answer for a while, kill it anywhere; the answers that left it.

    ``early`` kills hit the opening of the service too, others come after a first answer.
    """
    process, reading = started(path_worker.ask_for_ever, str(policy))
    assert os.read(reading, 6) == b"ready\n"
    first = b"" if early else os.read(reading, 1)
    time.sleep(secrets.randbelow(300 if early else 100) / 1000)
    process.kill()
    process.join(60)
    lines = (first + everything(reading)).split(b"\n")[:-1]
    found = (line.split() for line in lines)
    return [(int(n), int(v), again == b"1", int(paid)) for n, v, again, paid in found]


def check_after_kill(policy: Path, answers: list[tuple[int, int, bool, int]]) -> None:
    """No answer without a charge; spent covers what was released; the chain holds."""
    with Service.open(policy) as service:
        state: dict[int, str] = {}
        charge: dict[int, Charge] = {}
        asked: dict[str, list[int]] = {}
        for record in service.ledger.events():
            content = record.content
            if "charge" in content:
                charge[record.hold] = Charge(*content["charge"])
                asked.setdefault(content["statement"].rpartition(" ")[2], []).append(record.hold)
            if record.hold:
                state[record.hold] = content["state"]
        assert not any(State(now).open for now in state.values())
        for number in {number for number, *_ in answers}:
            assert any(state[hold] == "committed" for hold in asked[str(number)])
        paid = [number for number, _, recalled, _ in answers if not recalled]
        for number in set(paid):
            done = [h for h in asked[str(number)] if state[h] == "committed"]
            assert len(done) >= paid.count(number)
        [dataset, *_] = service.ledger.balances(service.session("analyst")._accounts())
        total = sum((c for h, c in charge.items() if State(state[h]).spent), Charge())
        assert dataset.spent == total
        assert total.epsilon >= sum(nano for *_, nano in answers) > 0
        assert service.ledger.verify().sound


def storm(kills: int) -> None:
    policy = policy_file("shop", "shop", rich)
    answers: list[tuple[int, int, bool, int]] = []
    for number in range(kills):
        answers += kill_one(policy, early=number % 3 == 0)
        if number % 5 == 4 or number == kills - 1:
            check_after_kill(policy, answers)
    assert len(answers) >= kills // 2


def test_no_answer_without_a_charge_wherever_a_query_is_killed():
    storm(20)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_answer_without_a_charge_wherever_many_queries_are_killed():
    storm(500)


# What a disk can do


COUNT = "SELECT COUNT(*) FROM orders"


class Unanswered(Exception):
    """The engine gave nothing: that query was paid for and lost."""


@pytest.fixture
def now() -> list[datetime]:
    return [datetime(2025, 6, 1, 12, tzinfo=UTC)]


@pytest.fixture
def service(now: list[datetime]) -> Iterator[Service]:
    with Service.open(policy_file("shop", "shop", rich), clock=lambda: now[0]) as opened:
        opened.ledger._writer._wait = 0.05
        yield opened


def full(service: Service) -> None:
    pages = service.ledger._writer.connection.execute("PRAGMA page_count").fetchone()[0]
    service.ledger._writer.connection.execute(f"PRAGMA max_page_count = {pages}")


def read_only(service: Service) -> None:
    service.ledger._writer.connection.execute("PRAGMA query_only = ON")


def removed(service: Service) -> None:
    service.policy.ledger.rename(service.policy.ledger.with_suffix(".away"))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (full, "the disk is full"),
        (read_only, "cannot be written"),
        (removed, "removed or replaced"),
    ],
)
def test_a_ledger_that_cannot_be_written_answers_nothing(service, monkeypatch, harm, said):
    session = service.session("analyst")
    session.execute(COUNT)
    measured = []

    def measure(*_: object) -> None:
        measured.append(1)
        raise Unanswered

    monkeypatch.setattr(type(service.tools.engine), "measure", measure)
    harm(service)

    def ask_until_it_fails() -> None:
        for number in range(500):  # a full disk has room left on its last page
            with suppress(Unanswered):
                session.execute(f"{COUNT} WHERE amount > {number} AND channel = '{'x' * 3000}'")
            measured.clear()

    with pytest.raises(LedgerFailed, match=said):
        ask_until_it_fails()
    assert not measured


def test_a_locked_ledger(service):
    session = service.session("analyst")
    session.execute(COUNT)
    before = session.budget()
    with closing(sqlite3.connect(service.policy.ledger, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert session.execute(COUNT).recalled, "reading waits for nobody"
        with pytest.raises(LedgerFailed, match="locked by another process"):
            session.execute(COUNT + " WHERE amount > 1")
        other.execute("ROLLBACK")
    assert session.budget() == before
    assert not session.execute(COUNT + " WHERE amount > 1").recalled


def test_a_damaged_ledger(service):
    service.session("analyst").execute(COUNT)
    path = service.policy.path
    service.close()
    ledger = service.policy.ledger
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[:100] + bytes(4000) + whole[4100:])
    with pytest.raises(LedgerFailed, match=r"is damaged|cannot be used"):
        Service.open(path)


def test_a_clock_that_was_set_back(service, now):
    session = service.session("analyst")
    session.execute(COUNT)
    now[0] -= timedelta(days=40)
    with pytest.raises(LedgerFailed, match="clock"):
        session.execute(COUNT + " WHERE amount > 1")
    assert session.execute(COUNT).recalled
    now[0] += timedelta(days=41)
    session.execute(COUNT + " WHERE amount > 1")


def test_two_proxies_with_one_file(service):
    one = service.session("analyst")
    with Service.open(service.policy.path, clock=service.clock) as other:
        first = one.execute(COUNT)
        second = other.session("analyst").execute(COUNT)
        assert second.recalled
        assert second.table == first.table
        other.session("analyst").execute(COUNT + " WHERE amount > 1")
        assert one.budget() == other.session("analyst").budget()


# Dashboards


TILES = [
    f"SELECT {what} FROM {table} {where}"
    for table, amount in (("orders", "amount"), ("visits", "seconds"))
    for what in ("COUNT(*)", f"SUM({amount})", f"AVG({amount})", "COUNT(DISTINCT customer_id)",
                 f"COUNT(*) AS n, SUM({amount}) AS s")
    for where in ("", f"WHERE {amount} > 10")
]  # fmt: skip


def dashboard(people: int, refreshes: int) -> None:
    assert len(set(TILES)) == 20
    with real_service("shop", "shop", rich) as service:
        sessions = [service.session("analyst", f"person {i}") for i in range(people)]
        first = [sessions[0].execute(tile) for tile in TILES]
        paid = sum(math.ceil(reply.cost.epsilon * NANO) for reply in first)
        asked = sum(not reply.recalled for reply in first)
        assert asked == 16, "the last tile of each four has what two others paid for"
        for session in sessions:
            for _ in range(refreshes):
                for tile, reply in zip(TILES, first, strict=True):
                    again = session.execute(tile)
                    assert again.recalled
                    assert again.table.equals(reply.table)
        accounts = sessions[0]._accounts()
        assert service.ledger.balances(accounts)[0].spent.epsilon == paid
        assert (
            sum(b.spent.epsilon for b in service.ledger.balances(sessions[1]._accounts())[2:]) == 0
        )
        assert all("it costs nothing" in sessions[1].explain(tile) for tile in TILES[:3])
        assert len(list(service.ledger.events())) == 2 * asked + 1


def test_a_dashboard_for_five_costs_one_refresh():
    dashboard(5, 10)


@pytest.mark.slow
def test_a_dashboard_refreshed_a_hundred_times_by_five_costs_one_refresh():
    dashboard(5, 100)
