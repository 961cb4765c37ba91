"""``dpsql serve``: runs the endpoint that PostgreSQL clients connect to."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import ipaddress
import signal
import ssl
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, Usage
from dpsql.cli.opened import beside, operator_log
from dpsql.diagnostics.operation.defects import record_stray
from dpsql.diagnostics.operation.events import PolicyActive, ReloadFailed, Started, Stopped, record
from dpsql.diagnostics.operation.file import LogFile, Unsafe
from dpsql.diagnostics.operation.gauges import GAUGES
from dpsql.diagnostics.operation.log import LAYOUTS, OperatorLog, StandardError
from dpsql.diagnostics.refusal import DataBreaksPolicy, Error
from dpsql.engines.catalog.pool import WORKERS
from dpsql.engines.findings import broken_data
from dpsql.memory.pool import POOL
from dpsql.policy.shares import shares_of
from dpsql.release.postprocess import PostProcessor
from dpsql.serve import gauges, process
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.databases import Databases
from dpsql.serve.endpoint import Certificate, ServiceEndpoint
from dpsql.serve.pgwire.listener import Limits
from dpsql.serve.pgwire.server import Server
from dpsql.serve.reloads import Outcome, Reloads, read_again
from dpsql.serve.upkeep import Upkeep
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
    requires_tls = certificate is not None and not local and not chosen.allow_plain
    log = _log(chosen)
    with operator_log(chosen.policy[0], log, comments=chosen.log_comments), ExitStack() as opened:
        reloads = Reloads(lambda: _reload(endpoints, server))
        _hear(reloads)
        opened.callback(WORKERS.close)
        services = [opened.enter_context(_opened(path)) for path in chosen.policy]
        endpoints = [
            ServiceEndpoint(s, role_catalog, certificate=certificate, requires_tls=requires_tls)
            for s in services
        ]
        for each in endpoints:
            _introduce(each)
        _share(endpoints)
        WORKERS.check()
        endpoint = endpoints[0] if len(endpoints) == 1 else Databases(endpoints)
        tls = None if certificate is None else certificate.context()
        _allow_files(_limits(endpoints))
        server = Server(
            endpoint, tls=tls, limits=_limits(endpoints), reload=reloads.request,
            stopping=process.end_within,
        )  # fmt: skip
        http = _http(endpoint, chosen, certificate, server)
        opened.callback(reloads.close)
        upkeep = opened.enter_context(closing(Upkeep()))
        gauges.connect(server, lambda: [endpoint.snapshot.service.policy for endpoint in endpoints])
        _loop(_serve(server, http, chosen, lambda: _begin(reloads, endpoints, upkeep)))
        _hear(reloads)  # the loop has restored the default action of the signal, which ends it
        record(Stopped())
    process.leave(ANSWERED)


def _begin(reloads: Reloads, endpoints: Sequence[ServiceEndpoint], upkeep: Upkeep) -> None:
    """Start reloads and upkeep, once clients can connect."""
    for endpoint in endpoints:
        policy = endpoint.snapshot.service.policy
        record(PolicyActive(policy.front.database, policy.version))
    started = datetime.now(UTC).timestamp()
    GAUGES.add("dpsql_start_time_seconds", lambda: started)
    reloads.start()
    upkeep.start()


def _log(chosen: argparse.Namespace) -> OperatorLog:
    """The operator's log. A named file must be writable; a file that others may read is refused."""
    layout = LAYOUTS[chosen.log_format]
    if chosen.log == "-":
        return OperatorLog(StandardError(), layout)
    place = beside(chosen.policy[0]) if chosen.log is None else Path(chosen.log).absolute()
    file = LogFile(place, chosen.log_megabytes * 1_000_000, chosen.log_files)
    try:
        if chosen.log is not None or chosen.policy[0].exists():
            file.open()
    except Unsafe as error:
        raise Usage(f"the operator's log: {error}") from None
    except OSError as error:
        if chosen.log is not None:
            raise Usage(f"the operator's log: {place}: {error.strerror or error}") from None
    return OperatorLog(file, layout)


def _hear(reloads: Reloads) -> None:
    """Handle SIGHUP; a reload requested before the endpoint listens is done once it does."""
    if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, lambda *_: reloads.request())


def _opened(path: Path) -> Service:
    """Open the service of a policy. What the data breaks is printed to a terminal, never logged."""
    try:
        return Service.open(path, progress=terminal.Progress(sys.stderr))
    except DataBreaksPolicy:
        _tell_owner(path)
        raise


def _introduce(endpoint: ServiceEndpoint) -> None:
    """Print what the owner should know before anyone connects."""
    for role in endpoint.locked_out:
        terminal.say(
            f'role "{role}" has no usable password and no user: nobody can log in as it '
            f"(dpsql user add NAME --role {role})", sys.stderr,
        )  # fmt: skip
    service = endpoint.snapshot.service
    for line in (*service.unprepared, *([service.stale] if service.stale else [])):
        terminal.say(line, sys.stderr)


def _http(
    endpoint: ServiceEndpoint | Databases,
    chosen: argparse.Namespace,
    proof: Certificate | None,
    main: Server,
) -> Any:
    """The HTTP face, if a port for it was given; its packages are an extra."""
    if chosen.http_port is None:
        return None
    try:
        server = importlib.import_module("dpsql.serve.http.server")
    except ModuleNotFoundError:
        raise Usage("HTTP needs more packages: pip install 'dpsql[http]'") from None
    made = server.HttpServer(endpoint, chosen.host, chosen.http_port, proof, main.traffic)
    main.beside.append(made)
    return made


def _limits(endpoints: Sequence[ServiceEndpoint]) -> Limits:
    """The limits of the first policy, which hold for the whole endpoint."""
    return Limits.of(endpoints[0].snapshot.service.policy.front.bounds)


def _allow_files(limits: Limits) -> None:
    """Allow as many open files as the permitted connections over both faces need, if possible."""
    wanted = 2 * limits.connections + process.OTHER_FILES
    allowed = process.allow_files(wanted)
    if allowed < wanted:
        said = f"the system permits {allowed} open files, and all connections need {wanted}"
        terminal.say(
            f"{said}: raise the limit (ulimit -Hn), or lower endpoint.connections", sys.stderr
        )


def _share(endpoints: Sequence[ServiceEndpoint]) -> None:
    """Divide the memory between catalog queries, post-processing, and the pool for clients."""
    shares = shares_of([endpoint.snapshot.service.policy for endpoint in endpoints])
    WORKERS.resize(shares.workers, shares.catalog_worker)
    POOL.limit(shares.pool)
    services = [endpoint.snapshot.service for endpoint in endpoints]
    postprocessor = services[0].tools.postprocessor
    if postprocessor.memory != shares.postprocessing:
        postprocessor = PostProcessor(shares.postprocessing)
        postprocessor.open()
    for service in services:
        service.share_postprocessor(postprocessor)


def _tell_owner(path: Path) -> None:
    """Print what the data breaks, to a terminal only: numbers never go to a log."""
    if sys.stderr.isatty():
        for line in broken_data(path):
            terminal.say(line, sys.stderr)


def _reload(endpoints: Sequence[ServiceEndpoint], server: Server) -> list[Outcome]:
    """Read policies and users again. A policy with problems is reported, and stays as it was."""
    outcomes = read_again(endpoints)
    server.bear(_limits(endpoints))
    try:
        _share(endpoints)
    except Error as error:
        first = outcomes[0]
        record(ReloadFailed(first.database, first.version, str(error)))
        terminal.say(f"the memory is shared out as before: {error}", sys.stderr)
    for outcome in outcomes:
        if isinstance(outcome.error, DataBreaksPolicy):
            _tell_owner(outcome.endpoint.snapshot.service.policy.path)
        for problem in outcome.problems:
            terminal.say(f"not reloaded: {problem}", sys.stderr)
        if outcome.problems:
            stays = f"version {outcome.version} of the policy stays in force"
            terminal.say(f'database "{outcome.database}": {stays}', sys.stderr)
        elif said := outcome.endpoint.snapshot.service.stale:
            terminal.say(said, sys.stderr)
    taken = [f'database "{o.database}", policy {o.version}' for o in outcomes if not o.problems]
    if taken:
        terminal.say(f"reloaded: {'; '.join(taken)}", sys.stderr)
    return outcomes


async def _serve(
    server: Server, http: Any, chosen: argparse.Namespace, begin: Callable[[], None]
) -> None:
    record_stray(asyncio.get_running_loop())
    taken, web = await server.start(chosen.host, chosen.port), 0
    said = [f"listening on {chosen.host} port {taken}"]
    if http is not None:
        web = await http.start()
        said.append(f"HTTP on {chosen.host} port {web}")

    def ready() -> None:
        record(Started(version("dpsql"), chosen.host, taken, web))
        begin()
        terminal.say(", ".join(said), sys.stderr)

    await server.serve(ready=ready)


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
    """Run a coroutine, on uvloop if it is installed."""
    process.share_time()
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)
