"""What HTTP clients make the endpoint hold is counted, and given up as they read or leave."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from datetime import date

import pyarrow as pa
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from dpsql.memory.pool import POOL, Full, Hold, Use
from dpsql.policy.types import Kind
from dpsql.serve.http import bodies
from dpsql.serve.http.bodies import PIECE, Body, make_response, received
from dpsql.serve.http.question import Unreadable
from dpsql.service import Reply, plain
from dpsql.service.reply import made


@pytest.fixture(autouse=True)
def size() -> Iterator[None]:
    most = POOL.most
    yield
    POOL.limit(most)
    assert _held() == 0


def _held() -> int:
    return POOL.bytes_by_use()["http"]


def _reply(rows: int) -> Reply:
    values = [[i, f"text {i}", None if i % 3 else i / 7, date(2024, 1, 1)] for i in range(rows)]
    names = (("n", Kind.INTEGER), ("n", Kind.TEXT), ("x", Kind.DOUBLE), ("d", Kind.DATE))
    reply = made("SELECT", names, values)
    low = pa.array([float(i) for i in range(rows)])
    return Reply(
        "SELECT", reply.columns, reply.table, {2: (low, low), 0: (low, low)}, notes=("a", "b")
    )


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 50])
def test_json_in_pieces_is_the_same_object(rows: int) -> None:
    reply = _reply(rows)
    whole = plain.to_json(reply)
    found = json.loads(whole)
    assert json.dumps(found, ensure_ascii=False) == whole
    assert found["rows"] == [
        [i, f"text {i}", None if i % 3 else i / 7, "2024-01-01"] for i in range(rows)
    ]
    assert list(found["intervals"]) == ["n", "x"]
    assert found["intervals"]["x"] == [[float(i), float(i)] for i in range(rows)]
    assert (found["notes"], list(found)) == (
        ["a", "b"],
        ["columns", "rows", "intervals", "cost", "remaining", "recalled", "notes"],
    )
    for at_once in (1, 7, 1_000):
        assert "".join(plain.json_pieces(reply, at_once)) == whole


async def _sent(reply: Reply, *, arrow: bool, most: int = 1 << 60) -> tuple[bytes, list[int]]:
    """What a client gets that reads so many pieces; and what is held behind each."""
    got, held = [], list[int]()
    response = make_response(reply, "ann", arrow=arrow)

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            got.append(message.get("body", b""))
            held.append(_held())
            if len(got) > most:
                raise OSError

    async def receive() -> Message:
        await asyncio.sleep(60)
        raise AssertionError

    await response({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
    assert int(response.headers["content-length"]) == sum(map(len, got))
    return b"".join(got), held


def test_an_answer_is_counted_until_it_is_sent() -> None:
    reply = _reply(20_000)
    body, held = asyncio.run(_sent(reply, arrow=False))
    assert body.decode() == plain.to_json(reply)
    assert len(body) <= held[0] <= 1.1 * len(body) + PIECE
    assert held == sorted(held, reverse=True)
    body, held = asyncio.run(_sent(reply, arrow=True))
    table = pa.ipc.open_stream(io.BytesIO(body)).read_all()
    assert table.replace_schema_metadata() == plain.with_distinct_names(reply)
    assert len(body) <= held[0]


def test_a_client_that_leaves_leaves_nothing() -> None:
    with pytest.raises(ClientDisconnect):
        asyncio.run(_sent(_reply(20_000), arrow=False, most=1))


def test_a_client_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SEND_SECONDS", 0.05)
    response = make_response(_reply(10), "ann", arrow=False)

    async def wait(*_: object) -> Message:
        await asyncio.sleep(60)
        raise AssertionError

    with pytest.raises(ClientDisconnect):
        asyncio.run(response({"type": "http", "asgi": {"spec_version": "2.4"}}, wait, wait))
    del response


def test_without_memory_there_is_no_answer() -> None:
    POOL.limit(500_000)
    with pytest.raises(Full):
        make_response(_reply(20_000), "ann", arrow=False)
    assert _held() == 0
    asyncio.run(_sent(_reply(100), arrow=True))


def _request(size: int) -> Request:
    pieces = [b"x" * 50_000] * (size // 50_000)

    async def receive() -> Message:
        return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


def test_a_request_is_counted_until_it_is_answered() -> None:
    body, hold = asyncio.run(received(_request(900_000), "ann"))
    assert len(body) == 900_000
    assert _held() == hold.bytes >= 900_000
    del hold
    assert _held() == 0
    with pytest.raises(Unreadable, match="too large"):
        asyncio.run(received(_request(1_100_000), "ann"))
    POOL.limit(1_000_000)
    with pytest.raises(Unreadable, match="no memory") as caught:
        asyncio.run(received(_request(900_000), "ann"))
    assert caught.value.status == 503
    del caught


def test_a_body_that_is_not_counted_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hold, "resize", lambda *_: None)
    with pytest.raises(AssertionError):
        test_an_answer_is_counted_until_it_is_sent()


def test_a_body_keeps_what_was_written_in_pieces() -> None:
    body = Body("ann")
    assert body.write(b"x" * (PIECE + 1)) == PIECE + 1
    body.write(pa.py_buffer(b"y" * 10))
    body.flush()

    async def taken() -> list[bytes]:
        return [piece async for piece in body.take()]

    assert body.size == _held() == PIECE + 11
    assert list(map(len, asyncio.run(taken()))) == [PIECE, 1, 10]
    assert _held() == 0
    assert Use.HTTP.value.startswith("requests")
