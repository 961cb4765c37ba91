"""What an operator sees of a served endpoint: numbers and events, all of them listed, and nothing private."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from endpoint import PASSWORD, ROLE, endpoint, generous
from serving import Serving, serving
from starlette.types import Message, Receive, Scope, Send
from support.services import policy_file

import dpsql
from dpsql.diagnostics.operation import gauges
from dpsql.diagnostics.operation.events import EVENTS, Event
from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import metrics
from dpsql.memory.pool import Use
from dpsql.serve import users
from dpsql.serve.gauges import connect
from dpsql.serve.http import logged
from dpsql.serve.pgwire.errors import wire_error
from dpsql.serve.traffic import REASONS, Traffic

Numbers = dict[str, float]
Told = dict[str, Any]


@pytest.fixture(scope="module")
def page() -> Iterator[tuple[Serving, str]]:
    path = policy_file("shop", "shop", lambda t: f"{generous(t)}  boss: {{owner: true}}\n")
    boss, token = users.with_token("boss", "boss")
    users.write(path.with_name("policy.users"), [boss])
    with serving(path, "--http-port", "0", "--log-format", "json", seconds=300) as where:
        with pytest.raises(psycopg.OperationalError):
            _connect(where, "wrong")
        with _connect(where, PASSWORD) as c:
            c.execute("SELECT count(*) FROM orders")
            c.execute("SELECT count(*) FROM pg_class")
            with pytest.raises(psycopg.Error):
                c.execute("SELECT zanzibar FROM orders WHERE amount = 73917391")
            yield where, token


def _connect(where: Serving, password: str) -> psycopg.Connection:
    return psycopg.connect(
        host="127.0.0.1", port=where.port, user=ROLE, password=password, dbname="x", autocommit=True
    )


def _asked(where: Serving, token: str) -> str:
    found = httpx.get(
        f"http://127.0.0.1:{where.http}/metrics", headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    )  # fmt: skip
    assert found.status_code == 200
    return found.text


def _numbers(text: str) -> Numbers:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_numbers_of_the_endpoint_are_told(page: tuple[Serving, str]) -> None:
    assert httpx.get(f"http://127.0.0.1:{page[0].http}/readyz", timeout=60).status_code in (
        200,
        503,
    )
    text = _asked(*page)
    found = _numbers(text)
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    assert families == {*gauges.METRICS, *metrics.METRICS}
    # Tests run in any order, and a connection of one before may be closed a little later.
    assert 1 <= found['dpsql_connections{face="postgres"}'] <= 3
    assert 1 <= found['dpsql_connections{face="http"}'] <= 3
    assert 1 <= found["dpsql_sessions"] <= 3
    assert 1 <= found['dpsql_events_total{event="login_failed"}'] <= 3
    assert found['dpsql_memory_budget_bytes{share="pool"}'] > 10**8
    assert 10**7 < found["dpsql_memory_resident_bytes"] < 2 * 10**9
    assert found["dpsql_memory_tree_bytes"] > 10**7
    assert 1 <= found["dpsql_charge_seconds_count"] <= 3
    assert found["dpsql_ledger_readable"] == 1
    assert found["dpsql_ledger_records"] >= 2
    assert found["dpsql_ledger_bytes"] > 1_000
    assert found['dpsql_cache_misses_total{cache="cached_answers"}'] >= 1
    assert found["dpsql_start_time_seconds"] > 1.7e9
    assert sum(found[f'dpsql_catalog_workers{{state="{s}"}}'] for s in ("idle", "busy")) >= 1
    assert {f'dpsql_ready{{what="{w}"}}' for w in gauges.METRICS["dpsql_ready"].labels["what"]} <= {
        *found
    }
    assert 'dpsql_build_info{version="' in text


def test_the_page_tells_nothing_of_statements_or_people(page: tuple[Serving, str]) -> None:
    text = _asked(*page)
    for word in ("zanzibar", "73917391", "SELECT", "orders", "127.0.0.1"):
        assert word not in text
    for name, labels in re.findall(r"^(\w+)\{([^}]*)\}", text, re.MULTILINE):
        known = {**gauges.METRICS, **metrics.METRICS}
        base = name if name in known else re.sub(r"_(bucket|sum|count)$", "", name)
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            listed = known[base].labels.get(label, ())
            assert not listed or value in listed
            assert label == "le" or label in known[base].labels


def test_reloads_are_told(page: tuple[Serving, str]) -> None:
    where, token = page
    where.process.send_signal(signal.SIGHUP)
    while not where.line().startswith("reloaded: "):
        assert where.process.poll() is None
    found = _numbers(_asked(where, token))
    assert found['dpsql_events_total{event="reloaded"}'] >= 1
    assert found['dpsql_reload_time_seconds{result="ok"}'] > 1.7e9


def test_labels_are_those_of_what_they_count() -> None:
    known = gauges.METRICS
    assert set(known["dpsql_memory_pool_bytes"].labels["use"]) == {u.name.lower() for u in Use}
    caches = {u.name.lower() for u in Use if u.name.startswith("CACHED_")}
    assert set(known["dpsql_cache_hits_total"].labels["cache"]) == caches
    assert set(known["dpsql_lane_busy"].labels["lane"]) == {lane.name for lane in Traffic().lanes}
    assert known["dpsql_statements_stopped_total"].labels["cause"] == REASONS
    assert known["dpsql_events_total"].labels["event"] == tuple(EVENTS)


def test_the_policy_in_force_is_told_under_its_own_name(page: tuple[Serving, str]) -> None:
    (database, version), = re.findall(
        r'dpsql_policy_info\{database="(.*?)",version="(.*?)"\} 1', _asked(*page)
    )  # fmt: skip
    assert database == "policy"
    assert len(version) >= 8


def _log(where: Serving) -> Path:
    policy = where.process.args[where.process.args.index("--policy") + 1]  # type: ignore[attr-defined]
    return Path(policy).with_name("policy.operator.log")


def _told(where: Serving, event: str, enough: Callable[[Told], bool]) -> Told:
    """An event, which comes soon."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for line in _log(where).read_text().splitlines():
            told = json.loads(line)
            if told["event"] == event and enough(told):
                return told
        time.sleep(0.05)
    raise AssertionError(_log(where).read_text())


def test_what_happens_is_in_the_log(page: tuple[Serving, str]) -> None:
    """With who and from where; without what was asked, how, or by which token."""
    where, token = page
    failed = _told(where, "login_failed", lambda t: t["face"] == "postgres")
    assert (failed["login"], failed["address"]) == (ROLE, "127.0.0.1")
    refused = _told(where, "statement_refused", lambda t: t["code"] == "DP105")
    assert (refused["login"], refused["position"]) == (ROLE, 8)
    with _connect(where, PASSWORD) as c:
        process = c.info.backend_pid
        with pytest.raises(psycopg.Error):
            c.execute("SELECT no_such_function_zanzibar(1)")
        c.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.Error):
            c.execute(
                "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"
            )
    entered = _told(where, "logged_in", lambda t: t["connection"] == process)
    assert (entered["login"], entered["database"], entered["address"]) == (ROLE, "x", "127.0.0.1")
    left = _told(where, "disconnected", lambda t: t["connection"] == process)
    assert 0 < left["seconds"] < 100
    assert _told(where, "statement_stopped", lambda t: t["cause"] == "timeout")["login"] == ROLE
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(
            host="127.0.0.1", port=where.port, user=ROLE, password=PASSWORD, dbname="x",
            options="-c dpsql.epsilon=zanzibar",
        )  # fmt: skip
    ended = _told(where, "connection_ended", lambda t: t["login"] == ROLE)
    assert re.fullmatch("DP[0-9]{3}|[0-9A-Z]{5}", ended["code"])
    url = f"http://127.0.0.1:{where.http}"
    known = {"Authorization": f"Bearer {token}"}
    httpx.get(f"{url}/v1/query/zanzibar?token={token}", headers=known)
    httpx.post(f"{url}/v1/query", headers=known, json={"sql": "SELECT zanzibar FROM orders"})
    httpx.get(f"{url}/v1/budget", headers={"Authorization": "Bearer zanzibar"})
    other = _told(where, "http_request", lambda t: t["path"] == "other")
    assert (other["method"], other["status"], other["address"]) == ("GET", 404, "127.0.0.1")
    asked = _told(where, "http_request", lambda t: t["status"] == 422)
    assert (asked["method"], asked["path"], asked["login"]) == ("POST", "/v1/query", "boss")
    assert asked["milliseconds"] > 0
    unknown = _told(where, "http_request", lambda t: t["status"] == 401)
    assert "login" not in unknown
    assert _told(where, "login_failed", lambda t: t["face"] == "http")["address"] == "127.0.0.1"
    assert _told(where, "statement_refused", lambda t: t["face"] == "http")["login"] == "boss"
    text = _log(where).read_text()
    for word in ("zanzibar", "73917391", "SELECT", token, "RECURSIVE"):
        assert word not in text


def test_a_path_that_is_logged_as_it_came_would_be_noticed() -> None:
    found = list[Event]()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Message) -> None:
        pass

    scope = {"type": "http", "method": "ZANZIBAR", "path": "/zanzibar", "client": ("192.0.2.7", 5)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logged, "record", found.append)
        for paths in ((), ("/zanzibar",)):
            asyncio.run(logged.Logged(application, paths)(scope, None, send))  # type: ignore[arg-type]
    assert [f"{e}".split()[1:4] for e in found] == [
        ['method="other"', 'path="other"', "status=200"],
        ['method="other"', 'path="/zanzibar"', "status=200"],
    ]


def test_every_event_is_recorded_somewhere() -> None:
    source = "".join(
        p.read_text() for p in Path(dpsql.__file__).parent.rglob("*.py") if p.name != "events.py"
    )
    never = {kind.__name__ for kind in EVENTS.values() if f"{kind.__name__}(" not in source}
    assert not never


def test_a_ledger_that_cannot_be_used_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "dpsql.operator"):
        wire_error(LedgerFailed("is damaged", "restore it", place="shop.db", detail="page 7"))
    said = 'problem="the ledger shop.db is damaged: page 7" instead="restore it"'
    assert f"ledger_unusable {said}" in caplog.messages


def test_numbers_are_of_the_endpoint_that_was_connected_last() -> None:
    with endpoint(generous) as found:
        connect(found.server, lambda: [found.service.policy])
        with psycopg.connect(found.dsn(), autocommit=True) as c:
            c.execute("SELECT count(*) FROM orders")
            numbers = _numbers(found.service.metrics_text())
    assert numbers['dpsql_connections{face="postgres"}'] == 1
    assert 'dpsql_connections{face="http"}' not in numbers
    assert numbers["dpsql_sessions"] == 1
    assert numbers["dpsql_newcomers"] == 0
    assert numbers['dpsql_lane_busy{lane="data"}'] in (0, 1)
    assert numbers['dpsql_statements_stopped_total{cause="timeout"}'] == 0
    assert numbers['dpsql_memory_budget_bytes{share="engine"}'] > 10**7
    assert numbers['dpsql_memory_pool_bytes{use="cached_plans"}'] > 0


def test_what_is_no_request_is_passed_on() -> None:
    asked = list[str]()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["type"])

    asyncio.run(logged.Logged(application, ())({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert asked == ["lifespan"]


def test_a_defect_outside_of_handlers_is_recorded_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("zanzibar")

    scope = {"type": "http", "method": "GET", "path": "/", "client": None}
    with caplog.at_level("INFO", "dpsql.operator"):
        asyncio.run(logged.Logged(application, ())(scope, None, None))  # type: ignore[arg-type]
    assert {"defect", "http_request"} <= {line.split()[0] for line in caplog.messages}
    assert "zanzibar" not in caplog.text
