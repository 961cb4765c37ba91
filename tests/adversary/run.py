"""The adversary at work: attacks one after the other, for as long as it is given.

What it knows is in one folder, and it goes on from there: the number of the next attack, the lines
and words of dpsql that were reached, seeds, and findings with their reproductions. Attacks inside
this process and on running endpoints take turns: whoever had less of its share of the time is next.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import blake2b
from pathlib import Path

from tests.adversary import endpoints, seeds
from tests.adversary.attack import attack
from tests.adversary.dice import Dice
from tests.adversary.learn import Arcs
from tests.adversary.model import Case, Finding
from tests.adversary.mutate import mutate
from tests.adversary.oracle import tame
from tests.adversary.pairs import choose
from tests.adversary.registry import JUDGES
from tests.adversary.report import Voice, report
from tests.adversary.seeds import Seed
from tests.adversary.shrink import alike, shrink
from tests.adversary.state import State
from tests.adversary.statements import series
from tests.adversary.worlds import make

STEPS, ORACLE = 20, 10
"""Steps of a new attack; attacks in a hundred whose answers are compared with plain DuckDB's."""
SHARES = {"inside": 2 / 3, "endpoints": 1 / 3}
"""Shares of the time for attacks inside this process, and for those on running endpoints."""
MUTATED = 35
"""Attacks in a hundred that are made from seeds."""
SHRINKING = 120.0
FOLDER = Path("build/adversary")


def fresh(name: str) -> Seed:
    """A new world and new statements, from a name alone."""
    dice = Dice(f"attack {name}")
    ground = make(f"world {name}", views=True)
    relation, owners = choose(ground, dice)
    return Seed(ground.world, relation, owners, series(ground, dice, STEPS))


def judge(seed: Seed) -> tuple[Case, list[Finding]]:
    """Carry out an attack; what each judge finds."""
    case = attack(seed.world, seed.relation, seed.owners, seed.steps)
    found = (judge.judge(case) for judge in JUDGES)
    return case, [finding for finding in found if finding is not None]


def again(found: Finding) -> Callable[[Seed], Finding | None]:
    """Whether a smaller attack still finds the same."""

    def still(smaller: Seed) -> Finding | None:
        try:
            return next((f for f in judge(smaller)[1] if alike(found, f)), None)
        except Exception:  # noqa: BLE001 (what is no world or no policy any more finds nothing)
            return None

    return still


def chosen(state: State) -> Seed:
    """The next attack: seeds as they are in turn with others, which are new ones and changed ones."""
    if state.replayed < state.given and state.replayed <= state.next:
        state.replayed += 1
        return state.pool[state.replayed - 1]
    name = f"{state.seed}{state.next}"
    state.next += 1
    dice = Dice(f"choice {name}")
    if state.pool and dice.chance(MUTATED):
        return mutate(dice.one(state.pool), state.pool, dice)
    return tame(name, STEPS) if dice.chance(ORACLE) else fresh(name)


def attack_inside(state: State, arcs: Arcs, voice: Voice) -> int:
    """One attack inside this process; how much was found that was not known."""
    seed = chosen(state)
    arcs.met.clear()
    try:
        with nullcontext() if voice.first else arcs.watch():  # what is learned goes with its folder
            case, findings = judge(seed)
    except Exception as error:  # noqa: BLE001 (a database that cannot be made is no attack)
        voice.say(f"{state.next}: not an attack: {error!r}")
        return 0
    news = state.keep(seed, case, arcs.met)
    answered = sum(t.error is None for t in case.left.transcripts)
    voice.say(
        f"{state.next}: {case.left.world.name} {case.relation}: {answered} of {len(case.steps)}"
        f" answered, {news} new, {len(findings)} found, {len(state.pool)} seeds"
    )
    count = sum(_found(state, seed, finding, voice) for finding in findings)
    state.save()
    return count


def _found(state: State, seed: Seed, finding: Finding, voice: Voice) -> bool:
    """Report a finding once, made small; whether it is new."""
    sort = "".join(c for c in f"{finding.judge} {finding.meaning}" if not c.isdigit())[:80]
    if sort in state.found:
        return False
    voice.found(finding)
    name = blake2b(sort.encode(), digest_size=6).hexdigest()
    state.found[sort] = f"{name}.txt"
    if voice.first:
        return True
    small = shrink(seed, finding, again(finding), SHRINKING)
    last = next((f for f in judge(small)[1] if alike(finding, f)), finding)
    text = report(last, small)
    folder = state.folder / "findings"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / f"{name}.json").write_text(seeds.to_json(small), encoding="utf-8")
    voice.report(text)
    return True


def explore(folder: Path, seconds: float, seed: str, kinds: Sequence[str], voice: Voice) -> int:
    """Attack until the time is over, or something is found and that is enough; how much was."""
    state, known = State.load(folder, seed), endpoints.Known.load(folder, seed)
    arcs, count, spent = Arcs(), 0, dict.fromkeys(kinds, 0.0)
    turns = {
        "inside": lambda: attack_inside(state, arcs, voice),
        "endpoints": lambda: endpoints.attack_next(known, voice),
    }
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end and not (count and voice.first):
        kind = min(kinds, key=lambda kind: spent[kind] / SHARES[kind])
        count += turns[kind]()
        spent[kind] += time.monotonic() - began
    voice.say(
        f"{state.replayed + state.next} attacks inside, {known.next} on endpoints,"
        f" {len(state.pool)} seeds, {len(state.found) + len(known.found)} findings"
    )
    return count


@contextmanager
def _folder(given: Path | None, passing: bool) -> Iterator[Path]:
    """The folder of the state; one that goes in the end, where nothing shall be kept."""
    if given is not None or not passing:
        yield given or FOLDER
        return
    with tempfile.TemporaryDirectory(prefix="adversary-") as name:
        yield Path(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack for some seconds; 1 if something was found that was not known."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument(
        "--state", type=Path, help=f"default: {FOLDER}; with --first a new one, which is not kept"
    )
    parser.add_argument("--seed", default="", help="begins the names of attacks")
    parser.add_argument("--json", action="store_true", help="a line for each finding, at once")
    parser.add_argument("--first", action="store_true", help="stop at the first finding")
    parser.add_argument("--again", type=Path, help="repeat the attack of a JSON file, and judge it")
    parser.add_argument("--only", choices=tuple(SHARES), help="one kind of attacks")
    options = parser.parse_args(arguments)
    if options.again is not None:
        seed = seeds.from_json(options.again.read_text(encoding="utf-8"))
        findings = judge(seed)[1]
        sys.stdout.write("".join(report(f, seed) for f in findings) or "nothing found\n")
        return bool(findings)
    kinds = [options.only] if options.only else list(SHARES)
    voice = Voice(lines=options.json, first=options.first)
    name = f"{options.seed}-" if options.seed else ""
    with _folder(options.state, options.first) as folder:
        return int(explore(folder, options.seconds, name, kinds, voice) > 0)
