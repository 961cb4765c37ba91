"""Reloads: one at a time, none lost, the last policy is in force, and what is wrong is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Semaphore

import psycopg
import pytest
from callers import Caller
from endpoint import PASSWORD, ROLE, Endpoint, endpoint, generous
from serving import Serving, serving
from support.services import policy_file, real_service

from dpsql.cli import main
from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.load import load
from dpsql.serve import reloads as module
from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.serve.lanes import Lane
from dpsql.serve.pgwire.listener import Limits
from dpsql.serve.pgwire.server import Server
from dpsql.serve.reloads import Outcome, Reloads, read_again
from dpsql.service import service

SECONDS = 10.0
COUNT = "SELECT count(*) FROM orders"


@pytest.fixture(scope="module")
def found() -> Iterator[Endpoint]:
    with endpoint(generous) as here:
        yield here


def _connect(where: Serving, password: str, user: str = ROLE) -> psycopg.Connection:
    return psycopg.connect(
        host="127.0.0.1", port=where.port, user=user, password=password, dbname="x", autocommit=True
    )


def _changed(text: str, number: int) -> str:
    """Another password, and another policy version."""
    text = text.replace(PASSWORD, f"password {number}")
    return text.replace("session: {epsilon: 1e4}", f"session: {{epsilon: {9_000 + number}}}")


def _heard(where: Serving, what: str, lines: list[str]) -> None:
    while not lines or what not in lines[-1]:
        line = where.line()
        assert line, "".join(lines)
        lines.append(line)


@pytest.mark.parametrize(
    ("count", "pause"), [(30, 0.0), pytest.param(120, 0.3, marks=pytest.mark.slow)]
)
def test_after_many_signals_the_last_policy_is_in_force(count: int, pause: float) -> None:
    path = policy_file("shop", "shop", generous)
    log = path.with_name("policy.operator.log")
    text, lines = path.read_text(), list[str]()
    with serving(path, "--log-format", "json", seconds=300) as where:
        for number in range(count):
            new = path.with_name("new")
            new.write_text(_changed(text, number))
            new.replace(path)
            where.process.send_signal(signal.SIGHUP)
            time.sleep(pause)
        _heard(where, load(path).version, lines)
        with _connect(where, f"password {count - 1}") as c:
            assert c.execute("SELECT 1").fetchone() == (1,)
        where.process.send_signal(signal.SIGTERM)
        assert where.process.wait(timeout=120) == 0
        assert where.process.stderr is not None
        assert "Traceback" not in where.process.stderr.read()
    first = ("reloaded: ", "not reloaded: ", "database ")
    assert not [line for line in lines if not line.startswith(first)]
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [t["event"] for t in told[:2]] == ["started", "policy_active"]
    assert told[-1]["event"] == "stopped"
    reloaded = [t for t in told if t["event"] == "reloaded"]
    assert 1 <= len(reloaded) <= count
    assert reloaded[-1]["version"] == load(path).version
    assert "password" not in log.read_text()


def test_what_is_wrong_is_told_with_its_place_and_the_old_policy_stays() -> None:
    path = policy_file("shop", "shop", generous)
    text, lines = path.read_text(), list[str]()
    with serving(path) as where:
        version = load(path).version
        path.write_text(_changed(text, 1) + "nonsense: 1\n")
        number = text.count("\n") + 1
        with pytest.raises(PolicyError) as wrong:
            load(path)
        assert f"policy.yaml:{number}:1: " in str(wrong.value)
        where.process.send_signal(signal.SIGHUP)
        _heard(where, "stays in force", lines)
        assert lines == [
            f"not reloaded: {wrong.value}\n",
            f'database "policy": version {version} of the policy stays in force\n',
        ]
        _connect(where, PASSWORD).close()
        path.write_text(_changed(text, 1))
        where.process.send_signal(signal.SIGHUP)
        _heard(where, "reloaded: ", lines := [])
        assert lines == [f'reloaded: database "policy", policy {load(path).version}\n']
    log = path.with_name("policy.operator.log")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    (failed,) = [line for line in log.read_text().splitlines() if " reload_failed " in line]
    assert f'version="{version}"' in failed
    assert f"policy.yaml:{number}:1: " in failed


def test_requests_that_come_meanwhile_are_one() -> None:
    begun, go = SimpleQueue[int](), Semaphore(0)

    def work() -> list[Outcome]:
        begun.put(1)
        assert go.acquire(timeout=SECONDS)
        return []

    def readings() -> int:
        count = 0
        with contextlib.suppress(Empty):
            while begun.get(timeout=SECONDS if not count else 0.1):
                count += 1
                go.release()
        return count

    reloads = Reloads(work)
    for _ in range(120):
        reloads.request()
    reloads.start()
    begun.get(timeout=SECONDS)
    for _ in range(120):
        reloads.request()
    go.release()
    assert readings() == 1, "one for all that came meanwhile"
    reloads.request()
    assert readings() == 1
    reloads.close()


def test_a_request_that_is_dropped_during_a_reading_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So it is with a flag that is cleared after the reading, for one."""
    real = Reloads._run

    def deaf(reloads: Reloads) -> None:
        work = reloads._work

        def then_forget() -> list[Outcome]:
            outcomes = [*work()]
            reloads._rest_goes_on()
            return outcomes

        reloads._work = then_forget
        real(reloads)

    monkeypatch.setattr(Reloads, "_run", deaf)
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    monkeypatch.setattr(sys.modules[__name__], "SECONDS", 0.5)
    with pytest.raises(AssertionError):
        test_requests_that_come_meanwhile_are_one()


def test_a_reading_that_hangs_or_fails_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    go, start = threading.Event(), time.monotonic()
    reloads = Reloads(lambda: [] * go.wait(20))
    reloads.request()
    reloads.start()
    for _ in range(1_000):
        reloads.request()
    reloads.close()
    assert time.monotonic() - start < 5
    go.set()


def test_a_reading_that_fails_does_not_end_the_thread() -> None:
    """Standard error may be closed, where its reader has gone."""
    begun = SimpleQueue[int]()

    def work() -> list[Outcome]:
        begun.put(1)
        raise BrokenPipeError

    reloads = Reloads(work)
    reloads.start()
    for _ in range(3):
        reloads.request()
        assert begun.get(timeout=SECONDS)
    reloads.close()


def test_a_defect_in_a_reload_is_an_incident(
    found: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ServiceEndpoint, "reload", lambda _: {}["zanzibar"])
    (outcome,) = read_again([found.house])
    assert re.fullmatch(r"a defect in dpsql \(incident [0-9a-f]{8}\)", outcome.problems[0])
    assert 'defect incident="' in caplog.text
    assert "serve/reloads.py:" in caplog.text
    assert "zanzibar" not in caplog.text


def test_a_signal_is_heard_whatever_workers_do(
    found: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop hands it to no worker, of which analysts may hold all."""
    heard = list[float]()

    async def serve() -> None:
        server = Server(found.house, limits=Limits(), reload=lambda: heard.append(1.0))
        await server.start("127.0.0.1", 0)
        monkeypatch.setattr(Lane, "submit", lambda *_: 1 / 0)

        def ready() -> None:
            os.kill(os.getpid(), signal.SIGHUP)
            asyncio.get_running_loop().call_later(0.1, server.stop)

        await server.serve(ready=ready)

    before = signal.getsignal(signal.SIGHUP)
    asyncio.run(serve())
    signal.signal(signal.SIGHUP, before)
    assert heard == [1.0]


@contextmanager
def _kept(found: Endpoint) -> Iterator[str]:
    """The policy's text, which is as before afterwards."""
    path = found.service.policy.path
    text = path.read_text()
    try:
        yield text
    finally:
        path.write_text(text)
        found.house.reload()


def test_half_of_a_policy_is_not_taken_up(found: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a policy may be one, with fewer limits: a file that is being written is an error."""
    path = found.service.policy.path
    with _kept(found) as text:
        terms = found.service.ledger.terms()
        half = text[: text.index("  pure:")]
        assert "pure" not in load_text(path, half).roles

        def meanwhile(name: Path) -> object:
            read = load(name)
            path.write_text(text)
            return read

        path.write_text(half)
        monkeypatch.setattr(service, "load", meanwhile)
        with pytest.raises(PolicyError, match="was written while it was read"):
            found.house.reload()
        assert "pure" in found.house.snapshot.service.policy.roles
        assert found.service.ledger.terms() == terms
        monkeypatch.undo()
        found.house.reload()
        assert "pure" in found.house.snapshot.service.policy.roles


def load_text(path: Path, text: str) -> object:
    path.write_text(text)
    return load(path)


def test_without_the_check_half_of_a_policy_is_taken_up(
    found: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_written", lambda _: (0, 0, 0))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_half_of_a_policy_is_not_taken_up(found, monkeypatch)


def test_a_policy_that_cannot_be_served_is_not_noted_in_the_ledger(
    found: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _kept(found) as text:
        terms = found.service.ledger.terms()
        found.service.policy.path.write_text(_changed(text, 5))
        monkeypatch.setattr(service, "describe_views", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            found.house.reload()
        assert found.service.ledger.terms() == terms
        monkeypatch.undo()
        users.write(
            found.service.policy.front.users, [users.with_password("eve", "nobody", PASSWORD)]
        )
        with pytest.raises(PolicyError, match='the role "nobody" of user "eve"'):
            found.house.reload()
        assert found.service.ledger.terms() == terms
        users.write(found.service.policy.front.users, [])


def test_who_is_removed_is_refused_at_the_next_statement(found: Endpoint) -> None:
    """Over both faces; a role that users still have cannot be removed."""
    place = found.service.policy.front.users
    robot, token = users.with_token("robot", ROLE)
    everyone = [
        users.with_password("ann", ROLE, PASSWORD),
        users.with_password("bob", ROLE, PASSWORD),
        robot,
    ]
    users.write(place, everyone)
    found.house.reload()
    caller = Caller(Face(lambda: found.house.snapshots).app(), token)
    with _kept(found) as text:
        ann, bob = (psycopg.connect(found.dsn(user=u), autocommit=True) for u in ("ann", "bob"))
        for c in (ann, bob):
            assert c.execute(COUNT).fetchone()
        assert caller.get("/v1/budget").status_code == 200
        users.write(place, everyone[1:2])
        found.house.reload()
        for sql in (COUNT, "SELECT 1", "SHOW dpsql.budget", COUNT):
            with pytest.raises(psycopg.Error):
                ann.execute(sql)
        assert ann.closed
        assert caller.get("/v1/budget").status_code == 401
        assert bob.execute(COUNT).fetchone()
        start = text.index(f"  {ROLE}:")
        rest = re.search(r"^  \w", text[start + 4 :], re.MULTILINE)
        end = len(text) if rest is None else start + 4 + rest.start()
        found.service.policy.path.write_text(text[:start] + text[end:])
        with pytest.raises(PolicyError, match='the role "analyst" of user "bob"'):
            found.house.reload()
        assert bob.execute(COUNT).fetchone()
        users.write(place, [])
        found.house.reload()
        with pytest.raises(psycopg.Error):
            bob.execute(COUNT)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--log", "nowhere/operator.log"], "No such file"),
        (["--log", "."], "Is a directory"),
    ],
)
def test_a_log_that_cannot_be_is_an_error_at_the_start(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = policy_file("shop", "shop", generous)
    assert main(["serve", "--policy", str(path), *more]) == 2
    assert said in capsys.readouterr().err


def test_a_log_has_at_least_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--policy", "policy.yaml", "--log-files", "0"])
    assert "no whole number from 1" in capsys.readouterr().err


def test_a_log_of_another_kind_is_not_taken(capsys: pytest.CaptureFixture[str]) -> None:
    path = policy_file("shop", "shop", generous)
    path.with_name("policy.operator.log").symlink_to(path)
    assert main(["serve", "--policy", str(path)]) == 2
    assert "is a link; name the file itself" in capsys.readouterr().err


def test_a_log_to_standard_error() -> None:
    path = policy_file("shop", "shop", generous)
    with serving(path, "--log", "-", "--log-format", "json") as where:
        _connect(where, PASSWORD).close()
        lines = list[str]()
        _heard(where, '"logged_in"', lines)
        told = json.loads(lines[-1])
        assert (told["login"], told["address"], told["database"]) == (ROLE, "127.0.0.1", "x")
    assert not path.with_name("policy.operator.log").exists()


@pytest.mark.parametrize("changed", [False, True])
def test_catalogs_stay_where_a_reading_changes_nothing(*, changed: bool) -> None:
    with contextlib.closing(real_service("shop", "shop")) as service:
        house = ServiceEndpoint(service, role_catalog)
        (role, *_) = service.policy.roles
        before = house.snapshot.shared(role)
        if changed:
            path = service.policy.path
            text = path.read_text()
            path.write_text(text.replace("max_rows_per_unit: 50", "max_rows_per_unit: 49"))
            assert path.read_text() != text
        house.reload()
        house.reload()
        after = house.snapshot.shared(role)
        assert after is not before
        assert (after.catalog is before.catalog) is not changed
