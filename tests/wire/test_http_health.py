"""`/healthz` says that the process answers, `/readyz` which part of it cannot."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import jsonschema
import pytest
from endpoint import generous
from support.services import real_service
from support.waiting import wait_until

from dpsql.diagnostics.operation.events import ReadinessChanged
from dpsql.diagnostics.operation.gauges import GAUGES
from dpsql.diagnostics.refusal import EngineFailed
from dpsql.engines.catalog.pool import WORKERS
from dpsql.serve import health
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.serve.http.openapi import description
from dpsql.serve.lanes import Job
from dpsql.serve.traffic import Traffic


class Asked:
    """An application that is asked how it is."""

    def __init__(self) -> None:
        self.service = real_service("shop", "shop", generous)
        self.traffic = Traffic()
        house = ServiceEndpoint(self.service, role_catalog)
        self.face = Face(lambda: house.snapshots, self.traffic)
        self.app = self.face.app()
        self.go = threading.Event()

    def hang(self, *_: object, **__: object) -> None:
        self.go.wait(20)

    def ask(self, times: int = 1) -> list[tuple[int, Any]]:
        """The status and body of so many requests at once."""

        async def talk() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://it") as client:
                return await asyncio.gather(*(client.get("/readyz") for _ in range(times)))

        return [(said.status_code, said.json()) for said in asyncio.run(talk())]

    def failing(self) -> list[str]:
        (found,) = self.ask()
        assert (found[0] == 200) is found[1]["ready"] is (not found[1]["failing"])
        responses = description()["paths"]["/readyz"]["get"]["responses"]
        schema = responses[str(found[0])]["content"]["application/json"]["schema"]
        jsonschema.validate(found[1], schema)
        failing: list[str] = found[1]["failing"]
        return failing


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    monkeypatch.setattr(health, "SECONDS", 0.3)
    monkeypatch.setattr(health, "KEPT_SECONDS", 0.0)
    found = Asked()
    found.face._health.parts[2]._look = lambda: None  # a process takes longer to start than this
    yield found
    found.go.set()
    found.traffic.close()
    found.service.close()


def test_all_works(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SECONDS", 20.0)
    asked.face._health.parts[2]._look = WORKERS.check
    assert asked.failing() == []


def _ledger(asked: Asked, patch: pytest.MonkeyPatch, do: Callable[..., None]) -> None:
    patch.setattr(asked.service.ledger, "probe", do)


def _engine(asked: Asked, patch: pytest.MonkeyPatch, do: Callable[..., None]) -> None:
    patch.setattr(asked.service._engine, "read_public", do)


def _catalog(asked: Asked, patch: pytest.MonkeyPatch, do: Callable[..., None]) -> None:
    patch.setattr(asked.face._health.parts[2], "_look", do)


def _lanes(asked: Asked, patch: pytest.MonkeyPatch, do: Callable[..., None]) -> None:
    """As many log-ins as there are threads, each with a statement that does not end."""
    for number in range(asked.traffic.data.threads):
        asked.traffic.data.submit(Job(f"login {number}", asked.hang))


@pytest.mark.parametrize("part", [_ledger, _engine, _catalog, _lanes])
def test_a_part_that_hangs_is_named_in_time(
    asked: Asked, part: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no other part with it."""
    name = part.__name__[1:]
    for other in asked.face._health.parts:
        if other.name != name:  # on a busy machine they may take longer than 0.3 s
            monkeypatch.setattr(other, "_look", lambda: None)
    part(asked, monkeypatch, asked.hang)
    begun = time.monotonic()
    assert name in asked.failing()
    assert time.monotonic() - begun < 10
    assert wait_until(lambda: asked.failing() == [name])
    hanging = [t.name for t in threading.enumerate()].count(f"dpsql-ready-{name}")
    assert hanging <= 1, "what hangs is not asked again"
    sample = f'dpsql_ready{{what="{name}"}} 0'
    assert sample in "\n".join(GAUGES.lines())


def test_a_part_that_fails_is_named_until_it_works(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise EngineFailed("secret words")

    monkeypatch.setattr(health, "SECONDS", 10.0)
    assert wait_until(lambda: asked.failing() == [])
    caplog.clear()
    with monkeypatch.context() as patch:
        _engine(asked, patch, fail)
        _ledger(asked, patch, fail)
        assert {"ledger", "engine"} <= set(asked.failing())
    assert wait_until(lambda: asked.failing() == [])
    events = [r.event for r in caplog.records if hasattr(r, "event")]
    changes = [(e.ready, e.what) for e in events if isinstance(e, ReadinessChanged)]
    assert {("no", "ledger"), ("no", "engine"), ("yes", "all")} <= set(changes)
    assert "secret" not in caplog.text


def test_asking_is_no_attack(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask, each part is looked at once in a second."""
    monkeypatch.setattr(health, "KEPT_SECONDS", 60.0)
    monkeypatch.setattr(health, "SECONDS", 10.0)
    looked: list[float] = []
    _ledger(asked, monkeypatch, looked.append)
    assert [status for status, _ in asked.ask(200)] == [200] * 200
    assert [status for status, _ in asked.ask(200)] == [200] * 200
    assert len(looked) == 1
