"""The adversary at work: attacks one after the other, for as long as it is given.

What it knows is in one folder, and it goes on from there: the number of the next attack, the lines
and words of dpsql that were reached, seeds, and findings with their reproductions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from tests.adversary import endpoints, seeds
from tests.adversary.attack import attack
from tests.adversary.dice import Dice
from tests.adversary.learn import Lines, words
from tests.adversary.model import Case, Finding
from tests.adversary.mutate import mutate
from tests.adversary.oracle import tame
from tests.adversary.pairs import choose
from tests.adversary.registry import JUDGES
from tests.adversary.report import report
from tests.adversary.seeds import Seed
from tests.adversary.shrink import alike, shrink
from tests.adversary.statements import series
from tests.adversary.worlds import make

STEPS, ORACLE = 20, 10
"""Steps of a new attack; attacks in a hundred whose answers are compared with plain DuckDB's."""
INSIDE = 2 / 3
"""Share of the time for attacks inside this process; the rest is for running endpoints."""
MUTATED = 35
"""Attacks in a hundred that are made from seeds."""


def fresh(name: str) -> Seed:
    """A new world and new statements, from a name alone."""
    dice = Dice(f"attack {name}")
    ground = make(f"world {name}")
    relation, owners = choose(ground, dice)
    return Seed(ground.world, relation, owners, series(ground, dice, STEPS))


def judge(seed: Seed) -> tuple[Case, list[Finding]]:
    """Carry out an attack; what each judge finds."""
    case = attack(seed.world, seed.relation, seed.owners, seed.steps)
    found = (judge.judge(case) for judge in JUDGES)
    return case, [finding for finding in found if finding is not None]


@dataclass
class State:
    """What is known after so many attacks."""

    folder: Path
    next: int = 0
    reached: set[str] = field(default_factory=set)
    pool: list[Seed] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)
    """Findings by what they say."""

    @classmethod
    def load(cls, folder: Path) -> State:
        """Go on from a folder; begin if it is empty."""
        folder.mkdir(parents=True, exist_ok=True)
        state = cls(folder, pool=list(seeds.load(seeds.FOLDER, folder / "seeds")))
        path = folder / "state.json"
        if path.exists():
            known = json.loads(path.read_text())
            state.next, state.reached = known["next"], set(known["reached"])
            state.found = known["found"]
        return state

    def save(self) -> None:
        """Write what is known, all of it or nothing."""
        new = self.folder / "state.new"
        known = {"next": self.next, "reached": sorted(self.reached), "found": self.found}
        new.write_text(json.dumps(known, indent=1))
        new.replace(self.folder / "state.json")

    def keep(self, seed: Seed, case: Case, lines: set[str]) -> int:
        """Keep the attack as a seed if it reached something new; how much that is."""
        news = {f"line {line}" for line in lines} - self.reached
        last = 0
        for number, transcript in enumerate(case.left.transcripts):
            said = words(transcript) - self.reached
            if said:
                news, last = news | said, number
        if not news:
            return 0
        self.reached |= news
        said = sorted(word for word in news if not word.startswith("line "))
        if said or len(news) > 3:
            last = last or len(seed.steps) - 1
            kept = replace(seeds.small(seed), steps=seed.steps[: last + 1])
            kept = replace(kept, reached=tuple(said[:20]))
            self.pool.append(kept)
            (self.folder / "seeds").mkdir(exist_ok=True)
            path = self.folder / "seeds" / f"{self.next:06}.json"
            path.write_text(seeds.to_json(kept), encoding="utf-8")
        return len(news)


def again(found: Finding) -> Callable[[Seed], Finding | None]:
    """Whether a smaller attack still finds the same."""

    def still(smaller: Seed) -> Finding | None:
        try:
            return next((f for f in judge(smaller)[1] if alike(found, f)), None)
        except Exception:  # noqa: BLE001 (what is no world or no policy any more finds nothing)
            return None

    return still


def explore(state: State, seconds: float, *, shrunk: float = 120.0, say: bool = True) -> list[str]:
    """Attack until the time is over; the reports of what was found."""
    end, reports = time.monotonic() + seconds, list[str]()
    lines = Lines()
    while time.monotonic() < end:
        dice = Dice(f"choice {state.next}")
        if state.pool and dice.chance(MUTATED):
            seed = mutate(dice.one(state.pool), state.pool, dice)
        else:
            name = str(state.next)
            seed = tame(name, STEPS) if dice.chance(ORACLE) else fresh(name)
        lines.met.clear()
        try:
            with lines.watch():
                case, findings = judge(seed)
        except Exception as error:  # noqa: BLE001 (a database that cannot be made is no attack)
            if say:
                sys.stderr.write(f"{state.next}: not an attack: {error!r}\n"[:300])
            state.next += 1
            continue
        news = state.keep(seed, case, lines.met)
        if say:
            _say(state, case, news, findings)
        for finding in findings:
            reports += _found(state, seed, finding, shrunk)
        state.next += 1
        state.save()
    return reports


def _say(state: State, case: Case, news: int, findings: Sequence[Finding]) -> None:
    answered = sum(t.error is None for t in case.left.transcripts)
    words = f"{answered} of {len(case.steps)} answered, {news} new, {len(findings)} found"
    name = f"{case.left.world.name} {case.relation}"
    sys.stderr.write(f"{state.next}: {name}: {words}, {len(state.pool)} seeds\n")


def _found(state: State, seed: Seed, finding: Finding, seconds: float) -> list[str]:
    """Report a finding once, made small."""
    sort = "".join(c for c in f"{finding.judge} {finding.meaning}" if not c.isdigit())[:80]
    if sort in state.found:
        return []
    small = shrink(seed, finding, again(finding), seconds)
    last = next((f for f in judge(small)[1] if alike(finding, f)), finding)
    text = report(last, small)
    name = blake2b(sort.encode(), digest_size=6).hexdigest()
    folder = state.folder / "findings"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / f"{name}.json").write_text(seeds.to_json(small), encoding="utf-8")
    state.found[sort] = f"{name}.txt"
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    return [text]


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack for some seconds; 1 if something was found that was not known."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--state", type=Path, default=Path("build/adversary"))
    parser.add_argument("--again", type=Path, help="repeat the attack of a JSON file, and judge it")
    parser.add_argument("--only", choices=("inside", "endpoints"), help="one kind of attacks")
    options = parser.parse_args(arguments)
    if options.again is not None:
        seed = seeds.from_json(options.again.read_text(encoding="utf-8"))
        findings = judge(seed)[1]
        sys.stdout.write("".join(report(f, seed) for f in findings) or "nothing found\n")
        return bool(findings)
    inside = {None: INSIDE, "inside": 1.0, "endpoints": 0.0}[options.only]
    state = State.load(options.state)
    reports = explore(state, options.seconds * inside)
    reports += endpoints.explore(options.state, options.seconds * (1 - inside))
    sys.stdout.write(
        f"{state.next} attacks, {len(state.pool)} seeds, {len(state.found)} findings\n"
    )
    return bool(reports)
