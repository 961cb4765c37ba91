"""The endpoint is killed at any moment, again and again, while clients ask over both faces.

Claim: whatever a client has received, be it the first byte of an answer alone, the ledger holds its charge and says
that it was answered; what was spent never becomes less, no account goes beyond its limit, every hash and balance
is sound; what was answered once is answered again for nothing; and no process is left behind.

A run goes on where the one before ended: everything is in its folder.
"""

from __future__ import annotations

import itertools
import json
import random  # noqa: TID251 (moments to kill at need no good randomness)
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path

from dpsql.ledger.charge import NANO
from dpsql.ledger.states import State
from tests.endurance.clients import Client, Gone, Http, Refused, Wire
from tests.endurance.world import PASSWORD, Caller, Charged, Received, Serving, World

PRICE = "0.01"
SMALL = "SELECT count(*) AS n FROM orders WHERE amount > {}.5 AND amount < {}.25"
LARGE = "SELECT seconds, page, count(*) AS n FROM visits WHERE seconds > {} GROUP BY seconds, page"
"""Many thousands of rows: a client may have received a part of them."""
MOST_ANSWERS, JITTER, LONGEST = 30, 0.2, 20.0
"""It is killed after so many answers at most and some part of a second, or after so many seconds."""
_ROLE = f"    password: {PASSWORD}\n    epsilon: 1e6\n    delta: 0\n    session: {{epsilon: 1e6}}\n    query: {{epsilon: 1}}\n"
BUDGETS = (
    "accounts:\n  dataset: {epsilon: 1e7, delta: 0, composition: basic}\nroles:\n"
    f"  analyst:\n{_ROLE}    may_become: [pure]\n  pure:\n{_ROLE}"
)
CALLERS = (
    ("wire", Caller("analyst", "", "a")), ("wire", Caller("analyst", "pure", "b")),
    ("robot", Caller("analyst", "", "c")), ("machine", Caller("pure", "", "d")),
)  # fmt: skip


@dataclass
class Progress:
    """What all runs in one folder have seen so far."""

    seed: int
    kills: int = 0
    questions: int = 0
    whole: int = 0
    partial: int = 0
    received: dict[str, str] = field(default_factory=dict)
    """Each question of which a client has something, and its price."""
    dataset: int = 0
    """Nano-epsilon that were spent when it was looked last."""
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, file: Path, seed: int) -> Progress:
        """As the run before left it."""
        return cls(**json.loads(file.read_text())) if file.exists() else cls(seed)

    def keep(self, file: Path) -> None:
        """For the next run; never half written."""
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(asdict(self)))
        beside.replace(file)

    def note(self, answer: Received) -> None:
        """Of each answer the first byte is noted, and then that it is whole."""
        if answer.whole:
            self.whole += 1
        self.received[answer.question] = answer.price


def _questions(progress: Progress) -> Iterator[str]:
    """Distinct questions, also from one run to the next: each third one has a large answer."""
    for number in itertools.count(progress.questions):
        progress.questions = number + 1
        large = number % 3 == 0 and number // 3 < 3500
        yield (
            LARGE.format(number // 3) if large else SMALL.format(number % 200, 250 + number // 200)
        )


def _client(world: World, ports: tuple[int, int], number: int) -> Client:
    face, caller = CALLERS[number]
    if face == "wire":
        return Wire(ports[0], caller)
    return Http(ports[1], world.tokens[face], caller)


def _ask(
    world: World, ports: tuple[int, int], questions: Iterator[str], progress: Progress, number: int
) -> None:
    """One client, until the endpoint is gone."""
    found: Client | None = None
    try:
        found = _client(world, ports, number)
        while True:
            question = next(questions)
            found.ask(question, PRICE, progress.note, whole=zlib.crc32(question.encode()) % 5 > 0)
    except Gone:
        pass
    except Refused:
        progress.problems.append("refused, with budget left")
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
        progress.problems.append(repr(error))
    finally:
        if found is not None:
            found.close()


def _one(world: World, progress: Progress, questions: Iterator[str], luck: random.Random) -> None:
    """Serve, ask, kill; then see what the ledger says."""
    served = Serving(world)
    if luck.random() < 0.1:  # while it starts
        time.sleep(luck.random() * 2)
        served.kill()
    else:
        ports = served.ports()
        threads = [
            threading.Thread(target=_ask, args=(world, ports, questions, progress, i))
            for i in range(len(CALLERS))
        ]
        for thread in threads:
            thread.start()
        _await(progress, progress.whole + luck.randrange(MOST_ANSWERS), luck.random() * JITTER)
        served.kill()
        for thread in threads:
            thread.join()
    progress.kills += 1
    if left := served.left():
        progress.problems.append(f"processes {left} are left behind")
    progress.problems += problems(world.charges(), progress)


def _await(progress: Progress, answers: int, seconds: float) -> None:
    """The moment to kill: it depends on what was answered, so a slow machine is killed at work too."""
    end = time.monotonic() + LONGEST
    while progress.whole < answers and time.monotonic() < end:
        time.sleep(0.002)
    time.sleep(seconds)


def problems(charges: list[Charged], progress: Progress) -> list[str]:
    """All that is not as the claim says, after a kill."""
    paid = {c.statement: c for c in charges if c.state is State.COMMITTED}
    found = []
    for question, price in progress.received.items():
        charged = paid.get(question)
        if charged is None:
            found.append(f"received and not charged: {question}")
        elif charged.nano != int(Fraction(price) * NANO):
            found.append(f"charged {charged.nano}: {question}")
    spent = sum(c.nano for c in charges if c.state.spent)
    if spent < progress.dataset:
        found.append(f"{progress.dataset} were spent, and now {spent}")
    progress.dataset = spent
    return found


def _again(world: World, progress: Progress, luck: random.Random) -> list[str]:
    """Some of what was received is asked once more: it must cost nothing, to whoever asks."""
    served, found = Serving(world), []
    try:
        client = _client(world, served.ports(), 0)
        before = sum(c.nano for c in world.charges() if c.state.spent)
        for question in luck.sample(sorted(progress.received), min(20, len(progress.received))):
            client.ask(question, PRICE, lambda _: None)
        client.close()
    finally:
        served.stop()
    after = sum(c.nano for c in world.charges() if c.state.spent)
    if after != before:
        found.append(f"answers that were there were charged again: {after - before}")
    return found


def run(folder: Path, kills: int, seed: int, ledger: str = "", planted: str = "") -> Progress:
    """So many kills more."""
    world, file = World(folder, BUDGETS, ledger), folder / "progress.json"
    world.planted = planted
    progress = Progress.of(file, seed)
    questions = _Shared(_questions(progress))
    for _ in range(kills):
        luck = random.Random(f"{progress.seed} {progress.kills}")
        _one(world, progress, questions, luck)
        progress.partial = len(progress.received) - progress.whole
        progress.keep(file)
        if progress.problems:
            break
    if not progress.problems:
        progress.problems += _again(world, progress, random.Random(progress.seed))
        progress.keep(file)
    return progress


class _Shared:
    """An iterator for several threads."""

    def __init__(self, of: Iterator[str]) -> None:
        self._of, self._lock = of, threading.Lock()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        with self._lock:
            return next(self._of)


def main(folder: Path, kills: int, seed: int, ledger: str) -> int:
    """Print what happened; 1 where it is not as claimed."""
    begun = time.monotonic()
    progress = run(folder, kills, seed, ledger)
    print(
        f"{progress.kills} kills so far (seed {progress.seed}), {progress.whole} whole answers and {progress.partial} "
        f"of which a part was received, {progress.questions} questions, {time.monotonic() - begun:.0f} s"
    )
    for problem in progress.problems:
        print(problem)
    return bool(progress.problems)
