"""SIGTERM: how long the server takes to end while attacks go on, and while nothing does."""

from __future__ import annotations

import contextlib
import subprocess
import time

from benchmarks.attacks.bounds import Bounds, Ending
from benchmarks.attacks.client import Client, connect, unverified_context
from benchmarks.attacks.registry import ATTACKS
from benchmarks.attacks.trial import attackers, let_go
from benchmarks.attacks.world import OTHER, ServerProcess

MIXES = {
    "statements of all engines go on": (
        "texts-that-double", "recursive-catalog", "stored-products", "public-products",
        "heavy-measurements",
    ),
    "clients that read nothing and connections that say nothing": (
        "unread-answers", "slowly-read", "copied-out", "silent-connections", "begun-tls",
        "large-messages-inside",
    ),
    "attacks over HTTP go on": ("http-statements", "http-unread", "http-slow-bodies", "silent-http"),
    "texts are read and planned": ("long-statements", "costly-plans", "http-explained", "failed-log-ins"),
}  # fmt: skip
"""What goes on when the server is told to end."""
PATIENCE = 45.0


def end_under_attack(served: ServerProcess, about: str, bounds: Bounds, seed: int) -> Ending:
    """While several attacks go on."""
    running = [p for name in MIXES[about] for p in attackers(ATTACKS[name], served, seed)]
    try:
        let_go(running, 4 + bounds.shutdown)
        time.sleep(4)
        return Ending(about, *_with_limit(served.end(PATIENCE), bounds.shutdown))
    finally:
        _end(running)


def _with_limit(ended: tuple[float, int | None], most: float) -> tuple[float, float, int | None]:
    return ended[0], most, ended[1]


def idle(served: ServerProcess, bounds: Bounds) -> Ending:
    """While one client is connected over TLS to each face, and does nothing."""
    client = Client(served.place, OTHER, tls=True)
    client.ask("SELECT 1")
    with (
        contextlib.closing(client),
        unverified_context().wrap_socket(connect(served.place, http=True)) as door,
    ):
        door.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        door.recv(1000)
        return Ending("idle TLS clients", *_with_limit(served.end(PATIENCE), bounds.idle_shutdown))


def _end(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.communicate()
