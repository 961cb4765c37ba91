"""Who tries a change, in which order, for how long; and what became of it."""

from __future__ import annotations

import json
import random  # noqa: TID251 (whom else a judge tries needs no good randomness)
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.mutation.changes import Change
from tests.mutation.covering import JUDGES, Cover
from tests.mutation.tree import Tree

MOST_TESTS = 400
ADVERSARY_SECONDS = 600
"""It ends by itself, unless a change keeps it from doing so."""
NOTHING = "no test runs it"
LONGEST, TIME = 20, "time"
"""A change that makes tests take this many times their time, and a minute more, is noticed by it, if
they do not take as long without it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one judge may take for a change: seconds of tests; the adversary's command."""

    seconds: float = 15.0
    adversary: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one judge said of one change."""

    name: str
    judge: str
    killed: bool | None
    """None where no test of it runs the change, or it could not say."""
    by: str
    seconds: float


def judged(change: Change, judge: str, tree: Tree, cover: Cover, limits: Limits) -> Verdict:
    """A judge tries a change, whatever the others found: shares are of each."""
    begun = time.monotonic()
    if judge == "adversary":
        with tree.changed(change):
            killed, by = _adversary(tree, limits)
    else:
        killed, by = _judged_by_tests(change, judge, tree, cover, limits)
    return Verdict(change.name, judge, killed, by, round(time.monotonic() - begun, 1))


def _judged_by_tests(
    change: Change, judge: str, tree: Tree, cover: Cover, limits: Limits
) -> tuple[bool | None, str]:
    tests = cover.within(cover.of(change, JUDGES[judge]), limits.seconds, MOST_TESTS)
    if judge == "unit":
        tests = [change.path, *tests]  # the examples in its own docstrings
    if not tests:
        return None, NOTHING
    with tree.changed(change):
        killed, by = _tests(tree, tests, cover)
    if by == NOTHING:
        return None, by
    if by == TIME and _tests(tree, tests, cover) != (False, ""):
        return None, "the machine is too slow to say"
    return killed, by


def _tests(tree: Tree, tests: Sequence[str], cover: Cover) -> tuple[bool, str]:
    """Whether one of the tests fails, and which; or all of them take far too long."""
    listed = tree.folder / "tests_to_run"
    listed.write_text("\n".join(tests), "utf-8")
    due = LONGEST * sum(cover.seconds.get(name, 0) for name in tests) + 60
    ended = tree.tests(["-x", "--tb=no", "--timeout=60", f"@{listed}"], due)
    if ended.code is None:
        return True, TIME
    if ended.code == pytest.ExitCode.NO_TESTS_COLLECTED:
        return False, NOTHING
    failed = [line for line in ended.output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return ended.code != 0, failed[0].split(" - ")[0] if failed else ""


def _adversary(tree: Tree, limits: Limits) -> tuple[bool | None, str]:
    """Whether the adversary ends with 1 and a finding. Any other end says nothing."""
    command = [word.format(python=sys.executable) for word in shlex.split(limits.adversary)]
    ended = tree.run(command, ADVERSARY_SECONDS)
    if ended.code is None or ended.code == 0:
        return False, ""
    found = next((line for line in ended.output.splitlines() if '"finding"' in line), "")
    return (True, found[:200]) if ended.code == 1 and found else (None, f"ended with {ended.code}")


def asked(
    drawn: Sequence[Change], verdicts: Sequence[Verdict], judge: str, sample: int, seed: int
) -> list[Change]:
    """Whom a judge tries: what no other judge has noticed so far, and a random sample of what one has."""
    noticed = {v.name for v in verdicts if v.killed and v.judge != judge}
    others = [change for change in drawn if change.name in noticed]
    random.Random(seed).shuffle(others)
    return [change for change in drawn if change.name not in noticed] + others[:sample]


def some(drawn: Sequence[Change], count: int, seed: int) -> list[Change]:
    """A random sample of all changes, whoever noticed them."""
    return random.Random(seed).sample(list(drawn), min(count, len(drawn)))


def load(place: Path) -> list[Verdict]:
    """The verdicts so far, in the order in which they were found."""
    if not place.exists():
        return []
    return [Verdict(**json.loads(line)) for line in place.read_text("utf-8").splitlines()]


def save(place: Path, verdict: Verdict) -> None:
    """One more; several judges may write at once."""
    with place.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(verdict)) + "\n")
