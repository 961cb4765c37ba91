"""An endpoint in a thread of its own, over generated data and a ledger that is thrown away."""

from __future__ import annotations

import asyncio
import functools
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from support.certificates import write_certificate
from support.datasets import folder
from support.services import real_service

from dpsql.ledger.charge import NANO
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import Certificate, ServiceEndpoint
from dpsql.serve.pgwire.listener import Limits
from dpsql.serve.pgwire.server import Server
from dpsql.service import Service

PASSWORD = "correct horse"
ROLE = "analyst"


def generous(text: str) -> str:
    """The shop's policy with a known password and budgets that tests do not exhaust."""
    text = text.replace("SCRAM-SHA-256$4096:...", PASSWORD)
    text = text.replace("dataset: {epsilon: 20,", "dataset: {epsilon: 1e6,")
    text = re.sub(r"    epsilon: 5\n", "    epsilon: 1e5\n", text)
    return re.sub(r"session: \{epsilon: \d\}", "session: {epsilon: 1e4}", text)


@dataclass
class Endpoint:
    """Where clients connect to, and the service behind it."""

    service: Service
    house: ServiceEndpoint
    server: Server
    port: int
    loop: asyncio.AbstractEventLoop
    opened: list[object] = field(default_factory=list)

    @property
    def spent(self) -> float:
        """Epsilons of everything that was charged, added up."""
        holds = {
            record.hold: record.content["charge"][0]
            for record in self.service.ledger.latest(1_000_000)
            if "charge" in record.content
        }
        return sum(holds.values()) / NANO

    def url(self, driver: str, database: str = "shop") -> str:
        return f"postgresql+{driver}://{ROLE}:correct%20horse@127.0.0.1:{self.port}/{database}"

    def dsn(self, **more: str) -> str:
        parts = {
            "host": "127.0.0.1", "port": str(self.port), "user": ROLE, "dbname": "shop",
            "password": PASSWORD, **more,
        }  # fmt: skip
        return " ".join(f"{k}='{v}'" for k, v in parts.items())


@functools.cache
def certificate() -> Certificate:
    """A certificate that signs itself."""
    chain, secret = write_certificate(folder())
    return Certificate(str(chain), str(secret))


@contextmanager
def endpoint(
    change: Callable[[str], str] = generous,
    *,
    limits: Limits | None = None,
    tls: bool = False,
    requires_tls: bool = False,
    world: str = "shop",
) -> Iterator[Endpoint]:
    """Serve a policy with its data until the block ends; then drain, and close everything."""
    service = real_service(world, world, change)
    proof = certificate() if tls else None
    house = ServiceEndpoint(service, role_catalog, certificate=proof, requires_tls=requires_tls)
    started: Future[Endpoint] = Future()
    thread = threading.Thread(
        target=_run, args=(service, house, proof, limits or Limits(drain_seconds=2), started)
    )
    thread.start()
    try:
        found = started.result(timeout=120)
        try:
            yield found
        finally:
            found.loop.call_soon_threadsafe(found.server.stop)
    finally:
        thread.join(timeout=120)
        service.close()
    assert not thread.is_alive()


def _run(
    service: Service, house: ServiceEndpoint, proof: Certificate | None, limits: Limits,
    started: Future[Endpoint],
) -> None:  # fmt: skip
    async def serve() -> None:
        context = None if proof is None else proof.context()
        server = Server(house, tls=context, limits=limits)
        port = await server.start("127.0.0.1", 0)
        found = Endpoint(service, house, server, port, asyncio.get_running_loop())
        await server.serve(ready=lambda: started.set_result(found))

    try:
        asyncio.run(serve())
    except BaseException as error:
        if not started.done():
            started.set_exception(error)
        raise


def cancel_once_begun(where: Endpoint, connection: psycopg.Connection) -> threading.Thread:
    """A thread that cancels the next statement of a connection, when the endpoint has received it."""
    session = where.server._room.keys[connection.info.backend_pid]

    def cancel() -> None:
        while session.machine.idle:
            time.sleep(0.01)
        connection.cancel_safe()

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    return thread


def transcripts() -> Path:
    """Where recorded conversations are."""
    return Path(__file__).parents[2] / "fixtures" / "wire"
