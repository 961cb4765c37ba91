"""Who tries a mutant, in which order, for how long; and what became of it."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.mutation.changes import Change
from tests.mutation.covering import JUDGES, Cover
from tests.mutation.tree import Tree, pytest

MOST_TESTS = 400
LONGEST, TIME = 3, "time"
"""A change that makes tests take this many times their time, and half a minute more, is noticed by it, if
they do not take as long without it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of tests for each judge; the adversary's command, without one it does not judge."""

    unit: float = 40.0
    laws: float = 40.0
    adversary: str = ""
    adversary_seconds: float = 120.0


@dataclass(slots=True)
class Verdict:
    """What became of one change."""

    name: str
    path: str
    kind: str
    diff: str
    killed: dict[str, bool | None] = field(default_factory=dict)
    """By judge; None where no test of it runs the change, or it was not asked."""
    by: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def survived(self) -> bool:
        """Nobody noticed it."""
        return not any(self.killed.values())


def judged(change: Change, tree: Tree, cover: Cover, limits: Limits) -> Verdict:
    """Every judge tries the change, whatever the others found: shares are of each."""
    verdict = Verdict(change.name, change.path, change.kind, change.diff(tree.text(change.path)))
    chosen = {
        judge: cover.within(
            cover.of(change, folders), limits.unit if judge == "unit" else limits.laws, MOST_TESTS
        )
        for judge, folders in JUDGES.items()
    }
    with tree.changed(change):
        for judge, tests in chosen.items():
            begun = time.monotonic()
            killed, by = _tests(tree, tests, cover) if tests else (None, "")
            _note(verdict, judge, killed, by, begun)
        if limits.adversary:
            begun = time.monotonic()
            killed, by = _adversary(tree, limits)
            _note(verdict, "adversary", killed, by, begun)
    for judge, tests in chosen.items():
        if verdict.by[judge] == TIME and _tests(tree, tests, cover) != (False, ""):
            verdict.killed[judge], verdict.by[judge] = None, "the machine is too slow to say"
    return verdict


def _note(verdict: Verdict, judge: str, killed: bool | None, by: str, begun: float) -> None:
    verdict.killed[judge], verdict.by[judge] = killed, by
    verdict.seconds[judge] = round(time.monotonic() - begun, 1)


def _tests(tree: Tree, tests: Sequence[str], cover: Cover) -> tuple[bool, str]:
    """Whether one of the tests fails, and which; or all of them take far too long."""
    listed = tree.folder / "tests_to_run"
    listed.write_text("\n".join(tests), "utf-8")
    due = LONGEST * sum(cover.seconds[name] for name in tests) + 30
    ended = tree.run(pytest("-x", "--tb=no", "--timeout=60", f"@{listed}"), due)
    if ended.code is None:
        return True, TIME
    failed = [line for line in ended.output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return ended.code != 0, failed[0].split(" - ")[0] if failed else ""


def _adversary(tree: Tree, limits: Limits) -> tuple[bool | None, str]:
    """Whether the adversary ends with 1 and a finding. Any other end says nothing."""
    command = [word.format(python=sys.executable) for word in shlex.split(limits.adversary)]
    ended = tree.run(command, limits.adversary_seconds)
    if ended.code is None or ended.code == 0:
        return False, ""
    found = next((line for line in ended.output.splitlines() if '"finding"' in line), "")
    return (True, found[:200]) if ended.code == 1 and found else (None, f"ended with {ended.code}")


def load(place: Path) -> list[Verdict]:
    """The verdicts so far, in the order in which they were found."""
    if not place.exists():
        return []
    return [Verdict(**json.loads(line)) for line in place.read_text("utf-8").splitlines()]


def save(place: Path, verdict: Verdict) -> None:
    """One more."""
    with place.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(verdict)) + "\n")


def shares(verdicts: Sequence[Verdict]) -> Mapping[str, tuple[int, int]]:
    """How many each judge noticed, of how many that it tried."""
    names = dict.fromkeys(name for verdict in verdicts for name in verdict.killed)
    tried = {name: [v.killed.get(name) for v in verdicts] for name in names}
    return {
        name: (sum(map(bool, found)), sum(one is not None for one in found))
        for name, found in tried.items()
    }


def report(verdicts: Sequence[Verdict]) -> str:
    """Shares, and the survivors as they would be reviewed."""
    lines = [f"{len(verdicts)} changes, {sum(not v.survived for v in verdicts)} noticed"]
    for name, (noticed, tried) in shares(verdicts).items():
        share = f" ({100 * noticed / tried:.0f} %)" if tried else ""
        lines.append(f"{name}: noticed {noticed} of {tried}{share}")
    for verdict in verdicts:
        if verdict.survived:
            tests = ", ".join(name for name, killed in verdict.killed.items() if killed is not None)
            lines.append(
                f"\nsurvived ({tests or 'no test runs it'}): {verdict.name}\n{verdict.diff}"
            )
    return "\n".join(lines)
