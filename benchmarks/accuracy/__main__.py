"""How far answers are off: ``python -m benchmarks.accuracy run known other [--draws 30] [--label label]``.

``data SUITE ..`` makes the data, ``run SUITE ..`` asks and prints a table, ``freeze SUITE`` writes down the digests of
data and true answers, ``pareto`` measures one table of made-up rows. What is made and asked stays in
``build/accuracy``, and a run goes on from there. ``--before`` names a folder or a commit that the same
questions are asked of.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.accuracy import pareto, sources, suites
from benchmarks.accuracy.cells import contributions, digest, ordered_values, truth
from benchmarks.accuracy.labels import LABELS, Label
from benchmarks.accuracy.oracle import Tuned, tune
from benchmarks.accuracy.runs import ROOT, CannotAsk, Code, Run, code
from benchmarks.accuracy.score import Score, score
from benchmarks.accuracy.suites import HERE, Suite
from benchmarks.accuracy.table import Figure, Table, dumps


def frozen(name: str, place: Path) -> str:
    """The text of a suite with digests."""
    suite = suites.load(name)
    with duckdb.connect(str(sources.make(suite, place)), read_only=True) as connection:
        answers = {q.id: digest(truth(connection, q)) for q in suite.questions}
        return suites.freeze(name, sources.digests(connection), answers)


def tuned(suite: Suite, data: Path, label: Label, place: Path) -> dict[str, Tuned]:
    """What an oracle makes of each question; kept, since it takes a while."""
    yardstick = hashlib.sha256((HERE / "oracle.py").read_bytes() + (HERE / "cells.py").read_bytes())
    kept = place / "oracle" / f"{suite.digest[:12]}-{label.name}-{yardstick.hexdigest()[:12]}.json"
    if not kept.exists():
        with duckdb.connect(str(data), read_only=True) as connection:
            found = {
                q.id: tune(q, contributions(connection, q), label.guarantee)
                for q in suite.questions
                if q.kind != "found"
            }
        kept.parent.mkdir(parents=True, exist_ok=True)
        told = {name: vars(one) for name, one in found.items() if one is not None}
        kept.write_text(json.dumps(told))
    return {name: Tuned(**one) for name, one in json.loads(kept.read_text()).items()}


def scores(run: Run, data: Path) -> dict[str, Score]:
    """What the answers are worth that are kept of a run."""
    answers = run.answers()
    with duckdb.connect(str(data), read_only=True) as connection:
        return {
            q.id: score(answers.get(q.id, []), truth(connection, q), ordered_values(connection, q))
            for q in run.suite.questions
        }


def measure(
    suite: Suite, label: Label, codes: Sequence[Code], options: argparse.Namespace
) -> Table:
    """Ask what is still to be asked, of each copy of the code, and hold it against the oracle."""
    data = sources.make(suite, options.place)
    wanted = [
        q for q in suite.questions
        if (not options.only or q.id.startswith(tuple(options.only)))
        and (label.guarantee.rho or q.kind != "found")  # keys are found for a delta alone
    ]  # fmt: skip
    sides = []
    for one in codes:
        run = Run(suite, label, options.set, options.groups, one, options.place)
        run.ask(data, options.draws, wanted)
        sides.append(scores(run, data))
    best = tuned(suite, data, label, options.place)
    figures = [
        Figure(q, sides[0][q.id], sides[1][q.id] if sides[1:] else None, best.get(q.id))
        for q in wanted
    ]
    return Table(suite, label, figures)


def run(options: argparse.Namespace) -> int:
    """Print a table for each suite and label; status 1 where one could not be asked."""
    options.place.mkdir(parents=True, exist_ok=True)
    wanted = [options.tree, *([options.before] if options.before else [])]
    codes = [code(tree, options.place) for tree in wanted]
    record: dict[str, Any] = {
        "code": codes[0].name, "draws": options.draws, "settings": options.set,
        **({"before": codes[1].name} if codes[1:] else {}),
    }  # fmt: skip
    status = 0
    for suite in map(suites.load, options.suites):
        for label in map(LABELS.__getitem__, options.label):
            title = f"{suite.name}, {label.name}: {label.about}"
            print(f"{title}, {options.draws} answers of each question, code {codes[0].name}")
            try:
                table = measure(suite, label, codes, options)
            except CannotAsk as problem:
                print(f"cannot be asked: {problem}\n")
                status = 1
                continue
            print("\n".join(table.lines()) + "\n", flush=True)
            record[f"{suite.name}, {label.name}"] = table.record()
    if options.json:
        options.json.write_text(dumps(record))
    return status


def main() -> int:
    """Do what is asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    todo = parser.add_subparsers(dest="todo", required=True)
    for name in ("data", "run", "freeze"):
        part = todo.add_parser(name)
        part.add_argument("suites", nargs="+", choices=suites.NAMES)
        part.add_argument(
            "--place", type=Path, default=sources.PLACE, help="what is kept, and where"
        )
        if name == "run":
            _options_of_run(part)
    pareto.add_options(todo.add_parser("pareto"))
    options = parser.parse_args()
    match options.todo:
        case "pareto":
            pareto.main(options)
        case "data":
            for name in options.suites:
                print(sources.make(suites.load(name), options.place))
        case "freeze":
            for name in options.suites:
                suites.path(name).write_text(frozen(name, options.place))
        case "run":
            return run(options)
    return 0


def _options_of_run(part: argparse.ArgumentParser) -> None:
    part.add_argument("--draws", type=int, default=30, help="answers of each question")
    part.add_argument("--label", nargs="+", choices=list(LABELS), default=["label"])
    part.add_argument("--set", nargs="+", default=[], help="settings, such as 'search = on'")
    part.add_argument("--groups", type=int, help="max_groups_per_unit of the role")
    part.add_argument("--only", nargs="+", default=[], help="questions whose name begins so")
    part.add_argument("--tree", default=str(ROOT), help="the tree or commit that is asked")
    part.add_argument("--before", help="another tree or commit, asked the same")
    part.add_argument("--json", type=Path, help="write figures to this file")


if __name__ == "__main__":
    sys.exit(main())
