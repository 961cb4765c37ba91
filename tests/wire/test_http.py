"""The HTTP face: the same answers and refusals, as its description says."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import signal
import string
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pyarrow as pa
import pytest
from callers import Caller
from endpoint import certificate, generous
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mistakes import beyond_logins
from serving import serving
from support.services import policy_file, real_service

from dpsql.cli import main
from dpsql.diagnostics.refusal import Refused
from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.serve.http.openapi import ARROW, LARGEST_BODY, description
from dpsql.serve.http.server import HttpServer, PromptProtocol
from dpsql.service.settings import SETTINGS

BY_CHANNEL = "SELECT channel, count(*) AS n FROM orders GROUP BY channel ORDER BY channel"


class World:
    """An application, and clients of it."""

    def __init__(self, change: Any = generous) -> None:
        self.service = real_service(
            "shop", "shop", lambda text: change(text) + "  owner: {owner: true}\n"
        )
        made = [
            users.with_token(name, role)
            for name, role in (("robot", "analyst"), ("p", "pure"), ("o", "owner"))
        ]
        users.write(self.service.policy.front.users, [user for user, _ in made])
        self.house = ServiceEndpoint(self.service, role_catalog)
        app = Face(lambda: self.house.snapshots).app()
        self.nobody = Caller(app)
        self.robot, self.pure, self.owner = (Caller(app, token) for _, token in made)

    @property
    def spent(self) -> float:
        return float(self.service.session("analyst").budget()[0].spent_epsilon)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    found = World()
    yield found
    found.service.close()


def test_an_answer_has_its_cost_and_intervals(world: World) -> None:
    sql = BY_CHANNEL.replace("GROUP", "WHERE amount > 3 GROUP")
    said = world.robot.post("/v1/query", json={"sql": sql})
    assert said.status_code == 200
    found = said.json()
    assert [c["name"] for c in found["columns"]] == ["channel", "n"]
    assert len(found["rows"]) == len(found["intervals"]["n"]) == 4
    assert found["cost"]["epsilon"] == pytest.approx(0.1)
    again = world.robot.post("/v1/query", json={"sql": sql}).json()
    assert (again["rows"], again["recalled"]) == (found["rows"], True)


def test_an_answer_as_arrow(world: World) -> None:
    said = world.robot.post("/v1/query", json={"sql": BY_CHANNEL}, headers={"Accept": ARROW})
    assert said.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(said.content).read_all()
    assert table.column_names == ["channel", "n"]
    assert table.num_rows == 4
    assert set(json.loads(table.schema.metadata[b"dpsql"])) == {"cost", "recalled", "notes"}


def test_parameters_settings_and_the_session(world: World) -> None:
    before = world.spent
    asked = {
        "sql": "SELECT count(*) FROM orders WHERE channel = $1 AND amount > $2",
        "parameters": ["web", 12.5], "session": "board",
        "settings": {"epsilon": 0.02, "mechanism": "laplace", "intervals": True},
    }  # fmt: skip
    found = world.robot.post("/v1/query", json=asked).json()
    assert found["cost"]["epsilon"] == pytest.approx(0.02)
    assert [c["name"] for c in found["columns"]] == ["count", "count_low", "count_high"]
    assert "board" in json.dumps(found["remaining"])
    assert world.spent - before == pytest.approx(0.02)


def test_an_explanation_is_free(world: World) -> None:
    before = world.spent
    found = world.robot.post("/v1/explain", json={"sql": "SELECT avg(age) FROM customers"}).json()
    assert found["cost"]["epsilon"] == pytest.approx(0.1)
    assert any("age" in line for line in found["plan"])
    assert world.spent == before


def test_budgets_are_those_of_the_role(world: World) -> None:
    mine, other = (client.get("/v1/budget").json() for client in (world.robot, world.pure))
    assert "analyst" in json.dumps(mine)
    assert "analyst" not in json.dumps(other)
    assert mine["dataset"] == other["dataset"]


def test_what_needs_no_token(world: World) -> None:
    assert world.nobody.get("/healthz").text == "ok\n"
    assert world.nobody.get("/openapi.json").json() == description()


def test_metrics(world: World) -> None:
    assert "# TYPE" in world.owner.get("/metrics").text
    said = world.robot.get("/metrics")
    assert (said.status_code, said.json()["headline"]) == (403, "metrics are for owners")


@pytest.mark.parametrize("head", ["", "Bearer ", "Bearer wrong", "Basic YTpi", "bearer"])
def test_without_a_token_nothing_is_told(world: World, head: str) -> None:
    for method, path in (
        ("POST", "/v1/query"),
        ("POST", "/v1/explain"),
        ("GET", "/v1/budget"),
        ("GET", "/metrics"),
    ):
        said = world.nobody.request(method, path, headers={"Authorization": head})
        assert said.status_code == 401
        assert said.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("sql", "code"),
    [("SELECT email FROM customers", "DP101"), ("SELECT nope FROM orders", "DP105"), ("SELECT (", "DP102"),
     ("SELECT 1; SELECT 2", "DP103"), ("SELECT count(*) FROM pg_class", "DP104")],
)  # fmt: skip
def test_refusals_are_those_of_every_face(world: World, sql: str, code: str) -> None:
    for path in ("/v1/query", "/v1/explain"):
        said = world.robot.post(path, json={"sql": sql})
        assert said.status_code == 422
        found = said.json()
        assert found["code"] == code
        assert found["headline"]
        assert found["instead"]
        assert "also" not in found


def test_everything_that_is_wrong_is_told_at_once(world: World) -> None:
    sql = "SELECT o.amount, ROW_NUMBER() OVER (ORDER BY o.amount) FROM orders AS o LIMIT 5"
    with pytest.raises(Refused) as refused:
        world.service.session("analyst").prepare(sql)
    assert len(refused.value.refusals) > 1
    found = world.robot.post("/v1/query", json={"sql": sql}).json()
    told = [found, *found["also"]]
    assert {(one["code"], one["headline"]) for one in told} == {
        (one.code, one.headline) for one in refused.value.refusals
    }
    assert all(one["why"] for one in told)
    assert [one["position"] for one in found["also"]] == [
        one.span.start + 1 if one.span else None
        for one in refused.value.refusals
        if one is not refused.value.first
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"), (b"[" * 1_000, "not JSON"), (b"[" * 100_000, "lists and objects"), (b'{"sql": NaN}', "not JSON"), (b"[]", "missing"),
        (b'{"sql": 1}', "missing"), (b'{"sql": "x", "nope": 1}', "not known"), (b"\xff", "not JSON"),
        (b'{"sql": "x", "parameters": [[[1]]]}', "list of values"),
        (b'{"sql": "x", "parameters": [[{}]]}', "list of values"),
        (b'{"sql": "x", "parameters": [9223372036854775808]}', "list of values"),
        (b'{"sql": "x", "parameters": [1' + b", 1" * 10_000 + b"]}", "more than 10000 parameters"),
        (b'{"sql": "x", "session": 1}', "not a name"), (b'{"sql": "x", "settings": []}', "not an object"),
        (b'{"sql": "x", "settings": {"nope": 1}}', "not a setting"),
        (b'{"sql": "x", "settings": {"epsilon": null}}', "not a setting"),
    ],
)  # fmt: skip
def test_bodies_that_are_not_read(world: World, body: bytes, said: str) -> None:
    found = world.robot.post("/v1/query", content=body)
    assert found.status_code == 400
    assert said in found.json()["headline"]


def test_a_body_that_is_too_large(world: World) -> None:
    body = json.dumps({"sql": "x" * LARGEST_BODY}).encode()
    assert world.robot.post("/v1/query", content=body).status_code == 413


def test_an_empty_budget_is_no_reason_to_try_again() -> None:
    poor = World(
        lambda t: generous(t).replace("session: {epsilon: 1e4}", "session: {epsilon: 0.15}", 1)
    )
    ask = [{"sql": f"SELECT count(*) FROM {t}"} for t in ("customers", "orders")]
    assert poor.robot.post("/v1/query", json=ask[0]).status_code == 200
    assert poor.robot.post("/v1/query", json=ask[1]).status_code == 403
    assert poor.robot.post("/v1/query", json=ask[0]).json()["recalled"]
    high = {**ask[1], "settings": {"epsilon": "5"}, "session": "other"}
    assert poor.robot.post("/v1/query", json=high).status_code == 403
    poor.service.close()


def test_what_fails_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(
        lambda t: generous(t).replace(
            "    max_groups_per_unit: 3\n", "    statement_seconds: 1\n", 1
        )
    )
    engine = world.service._engine
    measure = engine.measure
    endless = "SELECT count(*) AS p0 FROM range(100000000000) AS r(i)"
    monkeypatch.setattr(engine, "measure", lambda *_: measure(endless, {}))
    begun = time.monotonic()
    said = world.robot.post("/v1/query", json={"sql": "SELECT count(*) FROM orders"})
    assert time.monotonic() - begun < 10
    assert (said.status_code, said.json()["headline"]) == (504, "the statement took too long")
    world.service.ledger.close()
    said = world.robot.get("/v1/budget")
    assert said.status_code == 500
    monkeypatch.setattr(world.service, "metrics_text", lambda: 1 / 0)
    said = world.owner.get("/metrics")
    assert said.status_code == 500
    assert "division" not in said.text
    engine.close()


# -- the description is true

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
_STATEMENTS = st.sampled_from(
    ["SELECT 1", BY_CHANNEL, "SELECT $1", "SELECT count(*) FROM orders WHERE amount > $1", "SET dpsql.epsilon = 1",
     "SHOW dpsql.budget", "EXPLAIN SELECT count(*) FROM orders", "SELECT * FROM orders", ""]
)  # fmt: skip
_BODIES = st.fixed_dictionaries(
    {"sql": _STATEMENTS | st.text(string.printable, max_size=30)},
    optional={
        "parameters": st.lists(st.none() | st.booleans() | st.integers() | st.text(max_size=5), max_size=2) | _JSON,
        "session": st.text(max_size=10) | _JSON,
        "settings": st.dictionaries(st.sampled_from(list(SETTINGS)), _JSON, max_size=2) | _JSON,
    },
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(path=st.sampled_from(["/v1/query", "/v1/explain"]), body=_BODIES | _JSON)
def test_every_response_is_described(world: World, path: str, body: Any) -> None:
    said = world.robot.post(path, content=json.dumps(body).encode())
    assert said.status_code != 500
    document = description()
    schema = document["paths"][path]["post"]["responses"][str(said.status_code)]
    validator = jsonschema.Draft202012Validator(
        {**schema["content"]["application/json"]["schema"], "components": document["components"]}
    )
    validator.validate(said.json())


# -- the server


def test_the_server_answers_over_tls_and_stops() -> None:
    service = real_service("shop", "shop", generous)
    house, proof = ServiceEndpoint(service, role_catalog), certificate()

    async def talk() -> None:
        server = HttpServer(house, "127.0.0.1", 0, proof)
        port = await server.start()
        with pytest.raises(OSError, match="in use"):
            await HttpServer(house, "127.0.0.1", port, proof).start()
        async with httpx.AsyncClient(verify=False) as client:
            assert (await client.get(f"https://127.0.0.1:{port}/healthz")).text == "ok\n"
        await server.stop()

    asyncio.run(talk())
    service.close()


@pytest.mark.parametrize("way", ["silent", "head", "body", "no token", "second"])
def test_who_dawdles_over_a_request_is_let_go(
    world: World, way: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it is the head or the body that never ends, and however often a byte of it comes."""
    monkeypatch.setattr(PromptProtocol, "seconds", 0.4)
    token = world.robot._headers["Authorization"] if way == "body" else "Bearer x"
    head = f"POST /v1/query HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\n"
    said = {
        "silent": "", "head": head, "second": "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /h",
        "body": head + "content-length: 999\r\n\r\n{", "no token": head + "content-length: 999\r\n\r\n{",
    }[way]  # fmt: skip

    async def talk() -> None:
        server = HttpServer(world.house, "127.0.0.1", 0, None)
        port = await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said.encode())
        ended = asyncio.create_task(reader.read())
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                if ended.done():
                    break
                await asyncio.sleep(0.05)
                writer.write(b"a" if way != "silent" else b"")
            assert ended.done()
            await ended
        writer.close()
        async with httpx.AsyncClient() as client:
            for _ in range(2):  # who rests between requests may stay
                assert (await client.get(f"http://127.0.0.1:{port}/healthz")).text == "ok\n"
                await asyncio.sleep(0.6)
            assert len(client._transport._pool.connections) == 1  # type: ignore[attr-defined]
        await server.stop()

    asyncio.run(talk())
    assert not beyond_logins(caplog.records)


def test_the_command_serves_both(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = policy_file("shop", "shop", generous)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert (
        main(["user", "add", "robot", "--token", "--role", "analyst", "--policy", str(path)]) == 0
    )
    token = capsys.readouterr().out.strip()
    with serving(path, "--http-port", "0") as found:
        answer = httpx.post(
            f"http://127.0.0.1:{found.http}/v1/query", json={"sql": "SELECT 1 AS one"},
            headers={"Authorization": f"Bearer {token}"},
        )  # fmt: skip
        assert answer.json()["rows"] == [[1]]
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(timeout=120) == 0


def test_without_its_packages_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = policy_file("shop", "shop", generous)
    monkeypatch.setitem(sys.modules, "dpsql.serve.http.server", None)
    assert main(["serve", "--policy", str(path), "--port", "0", "--http-port", "0"]) == 2
    assert "pip install" in capsys.readouterr().err


def test_a_request_that_comes_slowly_is_asked_under_the_policy_of_its_end() -> None:
    """A token that is taken away while the body is sent is worth nothing any more."""
    world = World()
    token = world.robot._headers["Authorization"]
    sql = json.dumps({"sql": "SELECT count(*) FROM orders"}).encode()

    def sent(*, between: Any) -> list[int]:
        statuses: list[int] = []
        pieces = iter([(sql[:5], True), (sql[5:], False)])

        async def receive() -> dict[str, Any]:
            piece, more = next(pieces, (b"", None))
            if more is None:
                await asyncio.Event().wait()  # the client stays
            if not more:
                between()
            return {"type": "http.request", "body": piece, "more_body": more}

        async def send(message: dict[str, Any]) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        scope = {
            "type": "http", "method": "POST", "path": "/v1/query", "query_string": b"",
            "headers": [(b"authorization", token.encode())],
        }  # fmt: skip
        asyncio.run(Face(lambda: world.house.snapshots).app()(scope, receive, send))
        return statuses

    def taken() -> None:
        path = world.service.policy.front.users
        users.write(path, [user for user in users.read(path).values() if user.name != "robot"])
        world.house.reload()

    assert sent(between=lambda: None) == [200]
    before = world.spent
    assert sent(between=taken) == [401]
    assert world.spent == before


def test_tables_and_columns_are_described(world: World) -> None:
    tables = world.robot.post("/v1/query", json={"sql": "SHOW TABLES"}).json()
    assert "orders" in [row[0] for row in tables["rows"]]
    columns = world.robot.post("/v1/query", json={"sql": r"\d orders"}).json()
    assert [c["name"] for c in columns["columns"]][:2] == ["column_name", "type"]
    assert [row[0] for row in columns["rows"]] == ["customer_id", "amount", "placed", "channel"]
    assert columns["cost"]["epsilon"] == 0
