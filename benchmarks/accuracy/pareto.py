"""How far answers are off at a fixed guarantee: epsilon 1, delta 1e-6, a Pareto number of rows each.

Run: python -m benchmarks.accuracy pareto [--runs N] [--units N] [--json FILE]

Each aggregate is asked alone, in 20 groups, with new noise each time; the error of an answer is the
mean over groups of |answer - truth| / |truth|. Then with a search for how much of a unit should count
(``SET dpsql.search = on``): search and answer cost together what the answer alone does, and each run
searches anew. Then without and with it under a policy that allows 10,000 rows of a unit.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb

from dpsql.service import Service

POLICY = """
source: {engine: duckdb, path: pareto.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people: {unit: person, columns: {id: {type: bigint}}}
  t:
    unit: person
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 100
    columns:
      id: {type: bigint}
      grp: {type: integer, range: [0, 19]}
      x: {type: double, range: [0, 500]}
accounts: {dataset: {epsilon: 1000000, delta: 0.1, composition: basic}}
roles:
  analyst: {query: {epsilon: 1, delta: 1e-6}, max_groups_per_unit: 20}
"""
GOALS = {"COUNT(*)": 0.005, "SUM(x)": 0.007, "AVG(x)": 0.010}


def make(folder: Path, units: int) -> Path:
    """A table whose units have a Pareto number of rows (shape 1), at most 100; values are uniform."""
    with duckdb.connect(str(folder / "pareto.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT range AS id FROM range({units})")
        connection.execute(
            "CREATE TABLE t AS WITH sized AS (SELECT id,"
            " least(100, floor(pow((hash(id, 1) % 1000003 + 1) / 1000004.0, -1)))::INTEGER"
            " AS n FROM people), rows AS (SELECT id, unnest(range(n)) AS i FROM sized)"
            " SELECT id, (hash(id, i, 2) % 20)::INTEGER AS grp,"
            " (hash(id, i, 3) % 50001 / 100.0)::DOUBLE AS x FROM rows"
        )
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    return policy


def error(services: Iterable[Service], aggregate: str, *settings: str) -> tuple[float, float]:
    """The mean error of an aggregate over one answer of each service, and its standard error."""
    sql = f"SELECT grp, {aggregate} AS v FROM t GROUP BY grp ORDER BY grp"
    found = []
    for service in services:
        plain = service._engine._root.cursor()  # the same database
        truth = [row[1] for row in plain.sql(sql).fetchall()]
        session = service.session()
        for setting in ("fresh = on", "show = always", *settings):
            session.execute(f"SET dpsql.{setting}")
        reply = session.execute(sql)
        assert reply.cost.epsilon == 1
        values = reply.table.column(1).to_pylist()
        off = [abs(v - t) / abs(t) for v, t in zip(values, truth, strict=True)]
        found.append(statistics.mean(off))
    return statistics.mean(found), statistics.stdev(found) / len(found) ** 0.5


_VERSIONS = itertools.count(2)


def apart(policy: Path, runs: int, rows: int) -> Iterator[Service]:
    """Services that allow so many rows of a unit; none knows what another found."""
    text = policy.read_text().replace("max_rows_per_unit: 100", f"max_rows_per_unit: {rows}")
    for _ in range(runs):
        other = policy.with_name("apart.yaml")
        other.write_text(text.replace('data_version: "1"', f'data_version: "{next(_VERSIONS)}"'))
        with Service.open(other) as service:
            yield service


def _shown(aggregate: str, found: tuple[float, float], remark: str) -> float:
    mean, spread = found
    print(f"{aggregate:10} {mean:8.3%} (±{spread:.3%})  {remark}", flush=True)
    return mean


def add_options(parser: argparse.ArgumentParser) -> None:
    """What it may be told."""
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--json", type=Path)


def main(options: argparse.Namespace) -> None:
    """Print a line for each aggregate."""
    figures: dict[str, float] = {}
    folder = tempfile.TemporaryDirectory()
    with folder as place:
        policy = make(Path(place), options.units)
        print(f"{options.units:,} units, {options.runs} runs")
        with Service.open(policy) as service:
            for aggregate, goal in GOALS.items():
                found = error([service] * options.runs, aggregate)
                figures[aggregate] = _shown(aggregate, found, f"goal {goal:.1%}")
        for aggregate, goal in GOALS.items():
            found = error(apart(policy, options.runs, 100), aggregate, "search = on")
            remark = f"search on, goal {goal:.1%}"
            figures[f"{aggregate}, 100 rows, search on"] = _shown(aggregate, found, remark)
        print("10,000 rows of a unit allowed, 100 there are")
        for aggregate in GOALS:
            for search in ("off", "on"):
                found = error(apart(policy, options.runs, 10_000), aggregate, f"search = {search}")
                name = f"{aggregate}, search {search}"
                figures[name] = _shown(aggregate, found, f"search {search}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
