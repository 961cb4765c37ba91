"""``python -m tests.mutation --count 200 --seed 1``: random single changes, and who notices them.

The first run makes a copy of the tree and learns which tests run which lines, for as long as
``--learn`` says; each run goes on where the one before ended. Delete the state folder to begin anew,
with the code as it is then.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from tests.mutation import judges
from tests.mutation.covering import cover
from tests.mutation.draw import draw
from tests.mutation.tree import Tree


def main() -> int:
    """Zero, whatever survives: what that means is for a person to say."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--count", type=int, default=200, help="changes in all, of all runs so far")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, default=Path("build/mutants"))
    parser.add_argument("--learn", type=float, default=3600, help="seconds for what tests run")
    parser.add_argument(
        "--file-seconds", type=float, default=90, help="the same for each file of tests"
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="of this run, for changes")
    parser.add_argument(
        "--unit", type=float, default=40, help="seconds of unit tests for each change"
    )
    parser.add_argument("--laws", type=float, default=40, help="seconds of laws for each change")
    parser.add_argument(
        "--adversary", default="", help='a command: "{python} -m tests.adversary --seconds 60"'
    )
    parser.add_argument("--adversary-seconds", type=float, default=120)
    chosen = parser.parse_args()
    tree = Tree.at(chosen.state.resolve() / "tree")
    tree.mend()
    learnt = cover(
        tree, chosen.state / "cover", chosen.file_seconds, time.monotonic() + chosen.learn
    )
    place = chosen.state / f"verdicts-{chosen.seed}.jsonl"
    verdicts = judges.load(place)
    known = {verdict.name for verdict in verdicts}
    limits = judges.Limits(chosen.unit, chosen.laws, chosen.adversary, chosen.adversary_seconds)
    end = time.monotonic() + chosen.seconds
    for change in itertools.islice(draw(tree.folder, chosen.seed), chosen.count):
        if time.monotonic() > end:
            break
        if change.name not in known:
            verdict = judges.judged(change, tree, learnt, limits)
            judges.save(place, verdict)
            verdicts.append(verdict)
            print(f"{'survived' if verdict.survived else 'noticed'}: {verdict.name}", flush=True)
    print(judges.report(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
