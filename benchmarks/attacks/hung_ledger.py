"""A ledger server that hangs: it is stopped (SIGSTOP), and so are all its processes."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.attacks.bounds import Bounds, Ending, Measurement
from benchmarks.attacks.bystander import PATIENCE
from benchmarks.attacks.client import unverified_context
from benchmarks.attacks.processes import Watch, look, tree
from benchmarks.attacks.registry import ATTACKS
from benchmarks.attacks.trial import (
    Chosen,
    attackers,
    begin,
    hear_attack,
    hear_other,
    let_go,
    read_report,
    warm_up,
)
from benchmarks.attacks.world import DEADLINE, ServerProcess

ROOT = Path(__file__).parents[2]
WAITS = 13.0
"""Seconds after which a question has failed that waits for the ledger: its patience, and some more."""
CLEAN = frozenset({"58000", "57P03", "57014", "53400", "XX000", "500", "503"})
"""Codes with which a charged question may fail while nothing can be charged."""


def run_attack(
    policy: Callable[..., Path], log: Path, bounds: Bounds, chosen: Chosen
) -> tuple[Measurement, Ending] | None:
    """The other client, and SIGTERM, while the ledger hangs; None where there is no PostgreSQL."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "support")]
    from postgres_home import binaries

    if binaries() is None:
        print("hung-ledger: no PostgreSQL server here; tests/support/postgres.sh installs one")
        return None
    from postgres_server import Server

    server = Server(binaries())
    ledger = f'ledger: {{store: postgres, dsn: "host=127.0.0.1 port={server.port} user=dpsql dbname=postgres"}}'
    os.environ["PGPASSFILE"] = str(server.passfile)
    stopped: list[int] = []
    try:
        served = ServerProcess(policy(ledger), log)
        base = warm_up(served)
        stopped = tree(server._process.pid)
        return _measure(served, base, stopped, bounds, chosen)
    finally:
        os.environ.pop("PGPASSFILE")
        _signal(stopped, signal.SIGCONT)
        server.remove()
        shutil.rmtree(server.directory, ignore_errors=True)


def _measure(
    served: ServerProcess, base: int, stopped: list[int], bounds: Bounds, chosen: Chosen
) -> tuple[Measurement, Ending]:
    before = look(served.place.process).memory
    found = Measurement("hung-ledger", base, before=before, ledger=WAITS)
    with Watch(served.place.process, chosen.ceiling) as watch:
        other = begin("bystander", served.path, chosen.seed)
        hostile = attackers(ATTACKS["charged-flood"], served, chosen.seed)
        _signal(stopped, signal.SIGSTOP)
        until = let_go([other, *hostile], chosen.seconds)
        hear_other(found, read_report(other, until + PATIENCE + 5 - time.monotonic()))
        for process in hostile:
            hear_attack(found, read_report(process, until + DEADLINE + 35 - time.monotonic()))
        for samples in (found.query, found.http):
            samples.errors = [e for e in samples.errors if e not in CLEAN]
        ready = _ready(served)
        if ready != 503:
            found.health.errors.append(f"/readyz says {ready}")
        found.peak, found.after = watch.peak.memory, watch.taken[-1].memory
    seconds, status = served.end(45)
    return found, Ending("the ledger hangs", seconds, bounds.shutdown, status)


def _ready(served: ServerProcess) -> int:
    """The status of /readyz."""
    connection = http.client.HTTPSConnection(
        served.place.host, served.place.http, context=unverified_context(), timeout=10
    )
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    finally:
        connection.close()


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue
