"""The other client: one log-in that only wants its small answers, each one timed and written down."""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.attacks.bounds import Samples
from benchmarks.attacks.client import Client, ConnectionLost, unverified_context
from benchmarks.attacks.world import DATABASE, OTHER, Place

PATIENCE = 15.0
"""Seconds after the end for which an answer is waited for."""
KINDS = ("select", "fresh", "query", "health", "http")


class Bystander:
    """Asks in a thread for each kind of request until a moment; its samples go to a file."""

    def __init__(self, place: Place, until: float, seed: int) -> None:
        self.place, self.until = place, until
        self.found = {kind: Samples() for kind in KINDS}
        self._pending: dict[str, float] = {}
        self._held: list[Client] = []
        self._numbers, self._lock = itertools.count(seed * 1_000_000), threading.Lock()

    def run(self) -> None:
        """All kinds at once."""
        works = {
            "select": (0.003, self._steady("select", "SELECT 1")), "fresh": (0.25, self._fresh),
            "query": (0.5, self._steady("query", None)), "health": (0.5, self._health), "http": (0.5, self._post),
        }  # fmt: skip
        threads = [
            threading.Thread(target=self._repeat, args=(kind, *work), daemon=True)
            for kind, work in works.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.1, self.until + PATIENCE - time.monotonic()))
        with self._lock:
            for kind, start in self._pending.items():
                self.found[kind].seconds.append(time.monotonic() - start)
                self.found[kind].errors.append("no answer")
        for client in self._held:
            client.close()

    def _repeat(self, kind: str, pause: float, work: Callable[[], str]) -> None:
        while time.monotonic() < self.until:
            self._pending[kind] = time.monotonic()
            try:
                error = work()
            except (ConnectionLost, OSError, http.client.HTTPException) as wrong:
                error = f"{type(wrong).__name__} {wrong}"[:80]
            with self._lock:
                start = self._pending.pop(kind)
                self.found[kind].seconds.append(time.monotonic() - start)
                if error:
                    self.found[kind].errors.append(error)
            time.sleep(pause if not error else 0.25)

    def _steady(self, kind: str, sql: str | None) -> Callable[[], str]:
        """One connection for all; another one when it was lost, whose log-in counts as one."""
        held: list[Client] = []

        def ask() -> str:
            if not held:
                held.append(self._client())
                self._held.append(held[0])
                now = time.monotonic()
                self.found["fresh"].seconds.append(now - self._pending[kind])
                self._pending[kind] = now
            try:
                return held[0].ask(self._small() if sql is None else sql)
            except (ConnectionLost, OSError):
                held.clear()
                raise

        return ask

    def _client(self) -> Client:
        return Client(self.place, OTHER, seconds=60, database=DATABASE)

    def _fresh(self) -> str:
        client = self._client()
        try:
            return client.ask("SELECT 1")
        finally:
            client.close()

    def _small(self) -> str:
        """A count that was not asked before, so that it is charged and measured."""
        return f"SELECT count(*) FROM people WHERE region < 5 AND id <> {next(self._numbers)}"

    def _health(self) -> str:
        return self._http("GET", "/healthz")

    def _post(self) -> str:
        return self._http("POST", "/v1/query", json.dumps({"sql": self._small()}).encode())

    def _http(self, method: str, path: str, body: bytes | None = None) -> str:
        connection = http.client.HTTPSConnection(
            self.place.host, self.place.http, context=unverified_context(), timeout=60
        )
        try:
            connection.request(
                method, path, body, {"Authorization": f"Bearer {self.place.tokens[OTHER]}"}
            )
            response = connection.getresponse()
            response.read()
            return "" if response.status == 200 else str(response.status)
        finally:
            connection.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place", type=Path)
    parser.add_argument("seed", type=int)
    chosen = parser.parse_args()
    print("ready", flush=True)
    bystander = Bystander(Place.read(chosen.place), float(sys.stdin.readline()), chosen.seed)
    bystander.run()
    told = {kind: [s.seconds, s.errors] for kind, s in bystander.found.items()}
    print(json.dumps(told), flush=True)
    os._exit(0)  # threads that still wait for the server are left


if __name__ == "__main__":
    main()
