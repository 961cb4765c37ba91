"""``dpsql serve``: the endpoint that PostgreSQL clients connect to."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import ipaddress
import logging
import ssl
import sys
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, Usage
from dpsql.cli.opened import operator_log
from dpsql.diagnostics.refusal import DataBreaksPolicy, Error
from dpsql.engines.catalog_db import check_engine
from dpsql.engines.findings import broken_data
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.databases import Databases
from dpsql.serve.house import Certificate, ServiceHouse
from dpsql.serve.pgwire import hearsay
from dpsql.serve.pgwire.room import Limits
from dpsql.serve.pgwire.server import Server
from dpsql.service import Service


def run(chosen: argparse.Namespace) -> int:
    """Serve until the process is told to stop; then let running statements end."""
    certificate = _certificate(chosen)
    local = _is_local(chosen.host)
    if certificate is None and not local and not chosen.allow_plain:
        raise Usage(
            f"{chosen.host} can be reached from other machines: give --tls-cert and --tls-key, "
            "or --allow-plain if something in front of dpsql encrypts"
        )
    hearsay.log.setLevel(logging.DEBUG if chosen.log_comments else logging.INFO)
    requires_tls = certificate is not None and not local and not chosen.allow_plain
    with operator_log(chosen.policy[0]), ExitStack() as open_services:
        check_engine()
        houses = []
        for path in chosen.policy:
            service = open_services.enter_context(_opened(path))
            houses.append(
                ServiceHouse(
                    service, role_catalog, certificate=certificate, requires_tls=requires_tls
                )
            )
            _introduce(houses[-1])
        house = houses[0] if len(houses) == 1 else Databases(houses)
        tls = None if certificate is None else certificate.context()
        server = Server(
            house, tls=tls, limits=_limits(houses), reload=lambda: _reload(houses, server)
        )
        http = None if chosen.http_port is None else _http(house, chosen, certificate)
        _loop(_serve(server, http, chosen.host, chosen.port))
    return ANSWERED


def _opened(path: Path) -> Service:
    """The policy at work. Who sits at the terminal is told what the data breaks; a log is not."""
    try:
        return Service.open(path, progress=terminal.Progress(sys.stderr))
    except DataBreaksPolicy:
        _tell_owner(path)
        raise


def _introduce(house: ServiceHouse) -> None:
    """Say what its owner should know before anyone connects."""
    for role in house.locked_out:
        terminal.say(f'role "{role}" has no usable password: nobody can log in as it', sys.stderr)
    for line in house.world.service.unprepared:
        terminal.say(line, sys.stderr)


def _http(
    house: ServiceHouse | Databases, chosen: argparse.Namespace, proof: Certificate | None
) -> Any:
    """The HTTP face, whose packages are an extra."""
    try:
        server = importlib.import_module("dpsql.serve.http.server")
    except ModuleNotFoundError:
        raise Usage("HTTP needs more packages: pip install 'dpsql[http]'") from None
    return server.HttpServer(house, chosen.host, chosen.http_port, proof)


def _limits(houses: Sequence[ServiceHouse]) -> Limits:
    """As the first policy says: one endpoint bears what it bears for all of them."""
    return Limits.of(houses[0].world.service.policy.front.bounds)


def _tell_owner(path: Path) -> None:
    """What the data breaks, to who sits at the terminal: numbers never go to a log."""
    if sys.stderr.isatty():
        for line in broken_data(path):
            terminal.say(line, sys.stderr)


def _reload(houses: Sequence[ServiceHouse], server: Server) -> None:
    """Read policies and users again; what is wrong is said, and that policy stays as it was."""
    wrong = list[Error | OSError]()
    for house in houses:
        try:
            house.reload()
        except (Error, OSError) as error:
            wrong.append(error)
            if isinstance(error, DataBreaksPolicy):
                _tell_owner(house.world.service.policy.path)
    server.bear(_limits(houses))
    for said in wrong:
        terminal.say(f"not reloaded: {said}", sys.stderr)
    if not wrong:
        terminal.say("reloaded", sys.stderr)


async def _serve(server: Server, http: Any, host: str, port: int) -> None:
    taken = await server.start(host, port)
    said = [f"listening on {host} port {taken}"]
    if http is not None:
        said.append(f"HTTP on {host} port {await http.start()}")
    await server.serve(ready=lambda: terminal.say(", ".join(said), sys.stderr))
    if http is not None:
        await http.stop()


def _certificate(chosen: argparse.Namespace) -> Certificate | None:
    if (chosen.tls_cert is None) != (chosen.tls_key is None):
        raise Usage("--tls-cert and --tls-key go together")
    if chosen.tls_cert is None:
        return None
    found = Certificate(str(chosen.tls_cert), str(chosen.tls_key))
    try:
        found.binding(), found.context()
    except (ValueError, ssl.SSLError):
        files = f"{chosen.tls_cert} and {chosen.tls_key}"
        raise Usage(f"{files} are not a certificate and its private key in PEM") from None
    return found


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _loop(work: Coroutine[Any, Any, None]) -> None:
    """Run it on uvloop where that is installed."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)
