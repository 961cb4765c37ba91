"""What attacks are made of: clients in threads, each statement timed, and no mistake that stops them."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.attacks.client import Client, ConnectionLost, source, unverified_context
from benchmarks.attacks.world import ATTACKER, Place

GRACE = 12.0
"""Seconds after its deadline for which an attack still waits for a statement."""


@dataclass
class Hostile:
    """One log-in that means harm, until a moment of the monotonic clock."""

    place: Place
    until: float
    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    slowest: str = ""

    def __post_init__(self) -> None:
        self._lock, self._numbers = threading.Lock(), itertools.count(self.seed * 1_000_000)

    @property
    def goes_on(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.until

    def wait(self) -> None:
        """Until the end."""
        time.sleep(max(0.0, self.until - time.monotonic()))

    def number(self) -> int:
        """One that was not given before: statements with it are not known yet."""
        return next(self._numbers)

    def fraction(self) -> float:
        """Between 0 and 1, another one each time, the same ones for a seed."""
        return self.number() * 2_654_435_761 % (1 << 32) / (1 << 32)

    def together(self, count: int, work: Callable[[int], None]) -> None:
        """In so many threads; errors of the server's making are counted, and the thread goes on."""

        def repeat(index: int) -> None:
            while self.goes_on:
                try:
                    work(index)
                except (ConnectionLost, OSError, http.client.HTTPException) as error:
                    self.count(f"{type(error).__name__} {error}"[:60])
                    time.sleep(0.05)

        threads = [threading.Thread(target=repeat, args=(i,), daemon=True) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.1, self.until + self.place.deadline + GRACE - time.monotonic()))

    def count(self, outcome: str) -> None:
        """One more of a kind."""
        with self._lock:
            self.outcomes[outcome] += 1

    @contextmanager
    def client(self, **more: Any) -> Iterator[Client]:
        """Logged in while the block lasts."""
        found = Client(
            self.place, more.pop("user", ATTACKER), seconds=self.place.deadline + GRACE, **more
        )
        try:
            yield found
        finally:
            found.close()

    def time_statement(self, about: str, run: Callable[[], str]) -> str:
        """One statement with its deadline; its outcome is counted."""
        start = time.monotonic()
        outcome = "it never ended"
        try:
            outcome = run()
        finally:
            passed = time.monotonic() - start
            with self._lock:
                self.outcomes[outcome or "answered"] += 1
                if passed > self.longest:
                    self.longest, self.slowest = passed, about[:120]
        return outcome

    def ask(self, client: Client, sql: str) -> str:
        """Run a statement, and read its answer."""
        return self.time_statement(sql, lambda: client.ask(sql))

    def loop(self, count: int, statements: Sequence[str]) -> None:
        """So many connections, each with one statement after the other, from different ones on.

        ``{n}`` in a statement is a number that was not there before.
        """

        def work(index: int) -> None:
            with self.client() as client:
                turns = itertools.cycle(statements)
                for sql in itertools.islice(turns, index % len(statements), None):
                    if not self.goes_on:
                        return
                    self.ask(client, sql.replace("{n}", str(self.number())))

        self.together(count, work)

    def post(
        self, connection: http.client.HTTPSConnection, path: str, body: bytes, token: str = ""
    ) -> str:
        """A request over HTTP, timed; its status."""
        headers = {"Authorization": f"Bearer {token or self.place.tokens[ATTACKER]}"}

        def run() -> str:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            while response.read(1 << 20):
                pass
            return "" if response.status == 200 else str(response.status)

        return self.time_statement(f"{path} {body[:100]!r}", run)

    def http(self) -> http.client.HTTPSConnection:
        """A connection to the HTTP face."""
        return http.client.HTTPSConnection(
            self.place.host, self.place.http, context=unverified_context(),
            timeout=self.place.deadline + GRACE, source_address=source(self.place),
        )  # fmt: skip

    def report(self) -> str:
        """What became of it all, as one line."""
        return json.dumps(
            {"outcomes": self.outcomes, "longest": self.longest, "slowest": self.slowest}
        )


def sql_body(sql: str) -> bytes:
    """The body of a question over HTTP."""
    return json.dumps({"sql": sql}).encode()
