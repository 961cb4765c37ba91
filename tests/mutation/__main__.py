"""``python -m tests.mutation unit``: random single changes of the code, and who notices them.

The judges are ``unit``, ``laws`` and ``adversary``, each in a run of its own; two may run at once, with a
copy of the code each. The first run makes the first copy and learns which tests reach which changes, for
as long as ``--learn`` says. Each run goes on where the one before ended. Delete the state folder to
begin anew, with the code as it is then. ``report`` writes what is known.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from tests.mutation import judges, tree
from tests.mutation.covering import JUDGES, cover
from tests.mutation.draw import draw
from tests.mutation.report import JUDGEMENTS, report

ADVERSARY = "{python} -m tests.adversary --seconds 30 --seed 1 --json --first"


def main() -> int:
    """Zero, whatever survives: what that means is for a person to say."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("act", choices=[*JUDGES, "adversary", "report"])
    parser.add_argument("--count", type=int, default=200, help="changes that are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, default=Path("build/mutants"))
    parser.add_argument("--learn", type=float, default=1800, help="seconds for what tests reach")
    parser.add_argument("--file", type=float, default=30, help="the same for each file of tests")
    parser.add_argument("--run", type=float, default=1e9, help="seconds of this run, for changes")
    parser.add_argument("--seconds", type=float, default=15, help="of tests, for each change")
    parser.add_argument(
        "--sample", type=int, default=10**6,
        help="how many it tries of those that another judge has noticed; all others are tried",
    )  # fmt: skip
    parser.add_argument(
        "--random",
        type=int,
        default=0,
        help="try a random sample of this size of all changes instead",
    )
    parser.add_argument(
        "--again", action="store_true", help="try once more what this judge has not noticed"
    )
    parser.add_argument("--adversary", default=ADVERSARY, help="its command")
    chosen = parser.parse_args()
    state: Path = chosen.state.resolve()
    first = tree.Tree.at(state / "tree")
    drawn = list(itertools.islice(draw(first.folder, chosen.seed), chosen.count))
    place = state / f"verdicts-{chosen.seed}.jsonl"
    if chosen.act == "report":
        print(report(drawn, first, judges.load(place), JUDGEMENTS), end="")
    else:
        _judge(chosen, first, drawn, place)
    return 0


def _judge(
    chosen: argparse.Namespace, first: tree.Tree, drawn: list[judges.Change], place: Path
) -> None:
    """Until all are judged or the time has passed."""
    tree.load()
    known = cover(
        first, drawn, place.parent / f"cover-{chosen.seed}-{chosen.count}", chosen.file,
        time.monotonic() + chosen.learn,
    )  # fmt: skip
    copy = tree.Tree.at(place.parent / f"tree-{chosen.act}", first.folder)
    copy.mend()
    verdicts = judges.load(place)
    done = {v.name for v in verdicts if v.judge == chosen.act and (v.killed or not chosen.again)}
    limits = judges.Limits(chosen.seconds, chosen.adversary)
    end = time.monotonic() + chosen.run
    asked = judges.asked(drawn, verdicts, chosen.act, chosen.sample, chosen.seed)
    if chosen.random:
        asked = judges.some(drawn, chosen.random, chosen.seed)
    for change in asked:
        if change.name in done or time.monotonic() > end:
            continue
        verdict = judges.judged(change, chosen.act, copy, known, limits)
        judges.save(place, verdict)
        print(f"{verdict.killed} {verdict.seconds} {change.name} {verdict.by}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
