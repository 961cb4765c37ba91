"""Whether the time of answers tells two neighbours apart, where the policy says that it does not.

Under ``latency: fixed(..)`` an answer leaves at a fixed time after its question, so nothing may be
told by when it comes. The same questions, each one new to the ledger, are put to two endpoints in
turn: one has the rows of a unit, the other lacks them. Times are compared by ranks: the *share* is
how often one of the left ones is longer than one of the right ones, a half if nothing is told.

A difference is reported if the share is beyond ``TELLING`` and medians differ by ``LEAST`` seconds,
twice, the second time with endpoints that were started again in the other order. With ``ASKED``
pairs of equal endpoints, chance has each share beyond it once in 20,000 times and both on one side
once in a billion; a shift of twice ``LEAST`` is found 19 times in 20, if the machine's own delays are mostly below it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.adversary import shop
from tests.adversary.faces.servers import Servers
from tests.adversary.faces.session import OpenWorld
from tests.adversary.faces.simple import simple_face
from tests.adversary.model import Case, Finding, Run, Step, Transcript, World, finding
from tests.adversary.place import write
from tests.adversary.shop import PEOPLE

FIXED = 0.4
EARLY = 0.01
"""Seconds by which an answer may come before its time, for clocks that are read at both ends."""
ASKED = 16
TELLING = 0.9
LEAST = 0.02
VICTIM = "person:7"
MOMENT = "TIMESTAMP '2024-03-01 12:00:00'"
BURDEN = 6_000_000
"""Orders of the victim: with them a statement takes visibly longer, unless time is hidden."""
SQL = (
    "SELECT SUM(SQRT(amount)), SUM(LN(amount + 2)), SUM(EXP(amount / 50)), COUNT(*) FROM orders"
    " WHERE amount > {number} AND EXTRACT(hour FROM placed) <> 3"
)
Times = tuple[float, ...]


def share(left: Sequence[float], right: Sequence[float]) -> float:
    """How often a time of the left is longer than one of the right; equal ones count half."""
    wins = sum((a > b) + (a == b) / 2 for a in left for b in right)
    return wins / (len(left) * len(right))


def tells(left: Times, right: Times) -> int:
    """1 if the left is longer, -1 if the right is, 0 if nothing can be told."""
    found, apart = share(left, right), statistics.median(left) - statistics.median(right)
    if found > TELLING and apart > LEAST:
        return 1
    return -1 if found < 1 - TELLING and apart < -LEAST else 0


def enough(*pairs: tuple[Times, Times]) -> bool:
    """Whether most questions were answered; on a machine that is too slow nothing can be said."""
    return all(len(times) > ASKED / 2 for pair in pairs for times in pair)


def differ(first: tuple[Times, Times], second: tuple[Times, Times]) -> bool:
    """Whether two comparisons of the same neighbours, each with endpoints of its own, agree."""
    return enough(first, second) and tells(*first) != 0 and tells(*first) == tells(*second)


def early(times: Sequence[float]) -> list[float]:
    """Answers that came before their time."""
    return [each for each in times if each < FIXED - EARLY]


def neighbours(more: str, burden: int = BURDEN) -> tuple[World, World]:
    """The shop where one person has very many orders, and the shop without that person."""
    world = shop.shop("timing", more=more)
    whole = replace(
        world, views=(f"INSERT INTO orders SELECT 7, 25, {MOMENT}, 1 FROM range({burden})",)
    )
    rest = tuple(row for row in world.rows if row.owner != VICTIM)
    return whole, replace(world, rows=rest)


def spread(more: str, burden: int = BURDEN) -> World:
    """The shop where everybody has many orders."""
    made = f"INSERT INTO orders SELECT i % {PEOPLE}, 25, {MOMENT}, 1 FROM range({burden}) AS r(i)"
    return replace(shop.shop("timing", more=more), views=(made,))


def time_answers(
    folder: Path, _: Servers, more: str = f"latency: fixed({FIXED * 1000:.0f}ms)\n", burden: int = BURDEN
) -> Iterator[Finding]:  # fmt: skip
    """Compare neighbours over the simple protocol, under these lines of the policy."""
    worlds = neighbours(more, burden)
    places = (folder / "with", folder / "without")
    for world, place in zip(worlds, places, strict=True):
        write(world, place)
    measured, told = [], list[Transcript]()
    for turn in (0, 1):
        with Servers() as servers:
            pairs = list(zip(worlds, places, strict=True))[:: 1 - 2 * turn]
            sessions = [simple_face(servers).open(*pair) for pair in pairs][:: 1 - 2 * turn]
            asks = [(session, SQL) for session in sessions]
            measured.append(_times(asks, turn * ASKED, told))
            for session in sessions:
                session.close()
    yield from _judged(worlds[0], measured, told, "time tells whether a person is there")
    case = _case(worlds[0], told)
    if "fixed" in more and (times := early([t for pair in measured for ts in pair for t in ts])):
        yield finding("timing", case, 0, "answers leave before their time", [repr(times)])


def time_conditions(
    folder: Path, _: Servers, more: str = 'strict_timing: "on"\n', burden: int = BURDEN
) -> Iterator[Finding]:  # fmt: skip
    """Compare a condition that finds a person with one that finds nobody, in one world.

    Under strict timing both read all rows; without it, whoever finds nobody reads none.
    """
    world = spread(more, burden)
    write(world, folder)
    measured, told = [], list[Transcript]()
    for turn in (0, 1):
        with Servers() as servers:
            session = simple_face(servers).open(world, folder)
            asks = [(session, f"{SQL} AND id = {key}") for key in (7, PEOPLE + 7)]
            measured.append(_times(asks, turn * ASKED, told))
            session.close()
    yield from _judged(world, measured, told, "time tells whom a condition finds")


def _judged(
    world: World, measured: Sequence[tuple[Times, Times]], told: Sequence[Transcript], means: str
) -> Iterator[Finding]:  # fmt: skip
    if differ(*measured):
        details = [repr([[round(t, 4) for t in times] for times in pair]) for pair in measured]
        yield finding("timing", _case(world, told), 0, means, details)


def _case(world: World, told: Sequence[Transcript]) -> Case:
    run = Run(world, tuple(told))
    return Case("simple", "without", (VICTIM,), tuple(t.step for t in told), run, run)


def _times(
    asks: Sequence[tuple[OpenWorld, str]], start: int, told: list[Transcript]
) -> tuple[Times, Times]:  # fmt: skip
    """Times of new questions, put to both in turn; which of them is first changes too."""
    found: tuple[list[float], list[float]] = ([], [])
    for session, _ in asks:
        session.ask(Step("ask", shop.ASKED[0]))
    for number in range(start, start + ASKED):
        for side in ((0, 1), (1, 0))[number % 2]:
            session, sql = asks[side]
            transcript = session.ask(Step("ask", sql.format(number=number / 1000)))
            told.append(transcript)
            if transcript.error is None:
                found[side].append(transcript.seconds)
    return tuple(found[0]), tuple(found[1])
