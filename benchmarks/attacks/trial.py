"""One attack on a server that stays: the attack's processes, the other client, and a look at the memory."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.attacks.bounds import Bounds, Measurement, Samples
from benchmarks.attacks.bystander import KINDS, PATIENCE
from benchmarks.attacks.client import Client, ConnectionLost
from benchmarks.attacks.hostile import GRACE
from benchmarks.attacks.processes import Watch, look
from benchmarks.attacks.registry import Attack
from benchmarks.attacks.world import ATTACKER, DEADLINE, OPERATOR, OTHER, Place, ServerProcess


class Target(Protocol):
    """A server that is attacked."""

    place: Place
    path: Path
    """Where its place is written."""

    @property
    def ended(self) -> str:
        """Why it is gone, or nothing."""
        ...


SOON = 8.0
"""Seconds for which the next attack waits until memory is given back."""


@dataclass(frozen=True)
class Chosen:
    """How long an attack lasts, and for how long the server may recover."""

    seconds: float
    patience: float
    seed: int
    ceiling: int


def begin(module: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of its own: it says when it is ready, is told how long it has, and ends with JSON."""
    return subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.attacks.{module}", *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip


def let_go(processes: Sequence[subprocess.Popen[str]], seconds: float) -> float:
    """All of them at once, when all are ready; the moment at which they are to end."""
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    until = time.monotonic() + seconds
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{until}\n")
        process.stdin.flush()
    return until


def read_report(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    """What it printed; nothing if it had to be killed."""
    try:
        out, _ = process.communicate(timeout=max(0.1, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    lines = out.splitlines()
    return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}


def attackers(attack: Attack, served: Target, seed: int) -> list[subprocess.Popen[str]]:
    """All processes of an attack."""
    return [
        begin("attacker", attack.name, served.path, seed * 10 + i) for i in range(attack.processes)
    ]


def run_attack(
    attack: Attack, served: Target, base: int, bounds: Bounds, chosen: Chosen
) -> Measurement:
    """What an attack does to the server and to the other client."""
    found = Measurement(attack.name, base, before=look(served.place.process).memory)
    with Watch(served.place.process, chosen.ceiling) as watch:
        other = begin("bystander", served.path, chosen.seed)
        hostile = attackers(attack, served, chosen.seed)
        until = let_go([other, *hostile], chosen.seconds)
        hear_other(found, read_report(other, until + PATIENCE + 5 - time.monotonic()))
        end = until + DEADLINE + GRACE + 5
        for process in hostile:
            hear_attack(found, read_report(process, end - time.monotonic()))
        found.peak, found.peak_parts = watch.peak.memory, list(watch.peak.parts)
        if watch.exceeded:
            found.ended = f"killed above {chosen.ceiling / 1e6:.0f} MB"
        elif served.ended:
            found.ended = served.ended
        else:
            _recover(found, watch, until, bounds, chosen)
            found.ended = served.ended or _why_unusable(served)
    return found


def hear_other(found: Measurement, said: dict[str, Any]) -> None:
    for kind in KINDS:
        samples = said.get(kind, [[], ["the other client was killed"]])
        setattr(found, kind, Samples(*samples))


def hear_attack(found: Measurement, said: dict[str, Any]) -> None:
    for outcome, count in said.get("outcomes", {"killed": 1}).items():
        found.outcomes[outcome] = found.outcomes.get(outcome, 0) + count
    found.statements = sum(found.outcomes.values())
    longest = said.get("longest", DEADLINE + GRACE)
    if longest > found.longest:
        found.longest = longest
        found.slowest = said.get("slowest", "an attack that did not come back")
    found.overrun = max(0.0, found.longest - DEADLINE)


def _recover(
    found: Measurement, watch: Watch, until: float, bounds: Bounds, chosen: Chosen
) -> None:
    """Until the server rests and has given back what it took, or has had time for it."""
    while True:
        now, idle = time.monotonic(), watch.idle_since()
        found.after, found.after_parts = watch.taken[-1].memory, list(watch.taken[-1].parts)
        found.waited = now - until
        late = idle is None and now < until + DEADLINE + GRACE
        large = found.after > bounds.recovered * found.base
        if not late and (not large or now > until + min(SOON, chosen.patience)):
            break
        if watch.exceeded or not watch.taken[-1].memory:
            break
        time.sleep(0.25)
    found.busy = max(0.0, (idle or now) - until - DEADLINE)


@dataclass(frozen=True)
class Recovery:
    """A server that is left alone until it has given back what an attack took, or has had time for it."""

    served: ServerProcess
    found: Measurement
    until: float
    since: float

    def is_over(self, bounds: Bounds) -> bool:
        """Whether it has; what it takes now is noted."""
        now = look(self.served.place.process)
        self.found.after, self.found.after_parts = now.memory, list(now.parts)
        self.found.waited = time.monotonic() - self.since
        self.found.ended = self.served.ended
        return not self.found.keeps_memory(bounds) or time.monotonic() > self.until


def _why_unusable(served: Target) -> str:
    """Why nobody can use the server any more, or nothing."""
    try:
        client = Client(served.place, OTHER, seconds=20)
        try:
            wrong = client.ask("SELECT 1")
        finally:
            client.close()
    except (ConnectionLost, OSError) as error:
        return f"no answer afterwards: {error}"
    return wrong


WARMING = (
    "SELECT count(*) FROM pg_type a, pg_type b, pg_type c WHERE a.oid + b.oid < c.oid",
    "SELECT slot, count(*) FROM events GROUP BY slot",
    "SELECT max(c) FROM (SELECT slot, count(*) AS c FROM events GROUP BY slot) AS g",
    "SELECT * FROM pages",
    "SELECT x FROM generate_series(1, 100000) AS s(x)",
)


def warm_up(served: Target) -> int:
    """Bytes of the server after ordinary work of three log-ins at a time, on every engine and both faces."""
    other = begin("bystander", served.path, 900)
    let_go([other], 3)
    with ThreadPoolExecutor() as clients:
        list(clients.map(lambda user: _warm(served, user), (OTHER, OPERATOR, ATTACKER)))
    read_report(other, 60)
    time.sleep(2)
    return look(served.place.process).memory


def _warm(served: Target, user: str) -> None:
    client = Client(served.place, user)
    with contextlib.closing(client):
        for sql in WARMING:
            wrong = client.ask(sql)
            if wrong not in ("", "57014"):  # a busy machine may need more than the deadline
                raise RuntimeError(f"{sql}: {wrong}")
