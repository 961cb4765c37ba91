"""What privacy costs in time: every way to bound a unit, beside plain DuckDB on the same rows.

Run: python benchmarks/speed.py [--rows N ..] [--repeat K] [--only WORD] [--json FILE] [--plot FILE]

Both sides take turns in one process on one open database. Ratios are of medians, of the time that
passes (``wall``) and of the time that processors work (``cpu``, which other work on the machine
hardly changes).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from dpsql.service import Service

POLICY = """
source: {{engine: duckdb, path: {name}.duckdb}}
data_version: "1"
units: {{person: {{table: {home}, key: id}}}}
tables:
{tables}
accounts: {{dataset: {{epsilon: 1000000000, delta: 0.1, composition: basic}}}}
roles: {{analyst: {{query: {{epsilon: 1, delta: 1e-9}}, max_groups_per_unit: {limit}}}}}
"""
FACTS = """
  t:
    unit: person
{keys}
    columns:
      id: {{type: bigint}}
      grp: {{type: integer, range: [0, {groups}]}}
      word: {{type: text, values: [{words}]}}
      rare: {{type: integer}}
      x: {{type: double, range: [0, 500]}}
"""
PEOPLE = "  people: {unit: person, columns: {id: {type: bigint}}}"
FAR = """
  people: {unit: person, columns: {id: {type: bigint}}}
  accounts:
    unit: person
    key: account
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 10
    columns: {account: {type: bigint}, id: {type: bigint}}
"""


@dataclass(frozen=True)
class Data:
    """A table ``t`` of so many rows to a unit, in so many groups; ``far`` has a key between."""

    per_unit: int
    groups: int = 20
    far: bool = False
    limit: int = 20

    @property
    def name(self) -> str:
        """The file's."""
        return f"t{self.per_unit}_{self.groups}_{self.limit}{'_far' if self.far else ''}"

    def make(self, folder: Path, rows: int) -> Path:
        """The data and its policy."""
        units = max(1, rows // self.per_unit)
        path = folder / f"{self.name}.duckdb"
        with duckdb.connect(str(path)) as connection:
            one = "range" if self.per_unit == 1 else f"(hash(range) % {units})"
            key = "account" if self.far else "id"
            connection.execute(
                f"CREATE TABLE t AS SELECT {one}::BIGINT AS {key},"
                f" (hash(range, 1) % {self.groups})::INTEGER AS grp,"
                f" 'w' || (hash(range, 3) % 20) AS word,"
                f" (hash(range, 4) % {max(20, rows // 1000)})::INTEGER AS rare,"
                f" (hash(range, 2) % 50001) / 100.0::DOUBLE AS x FROM range({rows})"
            )
            if self.per_unit > 1:
                connection.execute(f"CREATE TABLE people AS SELECT range AS id FROM range({units})")
            if self.far:
                connection.execute(
                    f"CREATE TABLE accounts AS SELECT range AS account, range // 2 AS id"
                    f" FROM range({units})"
                )
        policy = folder / f"{self.name}.yaml"
        policy.write_text(self._policy())
        return policy

    def _policy(self) -> str:
        facts = FACTS.format(
            keys=self._keys(), groups=self.groups - 1, words=", ".join(f"w{i}" for i in range(20))
        )
        if self.far:
            facts = facts.replace("      id: {type: bigint}", "      account: {type: bigint}")
        others = FAR if self.far else PEOPLE if self.per_unit > 1 else ""
        home = "people" if others else "t"
        return POLICY.format(name=self.name, home=home, tables=others + facts, limit=self.limit)

    def _keys(self) -> str:
        if self.per_unit == 1:
            return ""
        step = "account], references: accounts" if self.far else "id], references: people"
        most = 2 * self.per_unit * (2 if self.far else 1)
        return f"    foreign_keys: [{{columns: [{step}}}]\n    max_rows_per_unit: {most}"


@dataclass(frozen=True)
class Case:
    """A query over some data, and the most that it should cost (0: no goal)."""

    name: str
    data: Data
    sql: str
    goal: float = 0.0
    plain: str = ""


ONE, MANY = Data(1), Data(100)
USUAL = "SELECT word, COUNT(*), SUM(x), AVG(x) FROM t GROUP BY word"
CASES = (
    Case("one row: COUNT, SUM, AVG", ONE, USUAL, 1.2),
    Case("one row: COUNT", ONE, "SELECT COUNT(*) FROM t WHERE x > 100"),
    Case("one row: VARIANCE", ONE, "SELECT word, VARIANCE(x) FROM t GROUP BY word"),
    Case("one row: keys by threshold", ONE, "SELECT rare, COUNT(*) FROM t GROUP BY rare"),
    Case("one row: MEDIAN", ONE, "SELECT word, MEDIAN(x) FROM t GROUP BY word"),
    Case("10 rows: COUNT, SUM, AVG", Data(10), USUAL),
    Case("100 rows: COUNT, SUM, AVG", MANY, USUAL, 2.5),
    Case("100 rows: COUNT DISTINCT units", MANY, "SELECT COUNT(DISTINCT id) FROM t"),
    Case("100 rows: units by group", MANY, "SELECT word, COUNT(DISTINCT id) FROM t GROUP BY word"),
    Case(
        "100 rows: 1,000 groups, 5 for a unit", Data(100, 1000, limit=5),
        "SELECT grp, COUNT(*), SUM(x) FROM t GROUP BY grp", 4.0,
    ),
    Case(
        "100 rows: keys by threshold", MANY, "SELECT rare, COUNT(*) FROM t GROUP BY rare"
    ),
    Case(
        "100 rows: unit one key away", Data(100, far=True), USUAL, 4.0,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """Medians of both sides, and quartiles of the ratio of neighbouring runs."""

    case: str
    rows: int
    plain_ms: float
    dpsql_ms: float
    wall: float
    low: float
    high: float
    cpu: float
    goal: float


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds that pass, and that processors work."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def figure(case: Case, service: Service, rows: int, repeat: int) -> Figure:
    """Both sides in turn."""
    session = service.session()
    session.execute("SET dpsql.fresh = on")
    plain = service._engine._root.cursor()  # the same database, the same settings
    sides = (
        lambda: plain.sql(case.plain or case.sql).to_arrow_table(),
        lambda: session.execute(case.sql),
    )
    for side in sides:
        side()
    runs = [[timed(side) for side in sides] for _ in range(repeat)]
    (plain_wall, plain_cpu), (wall, cpu) = (
        [statistics.median(run[side][kind] for run in runs) for kind in (0, 1)] for side in (0, 1)
    )
    ratios = sorted(run[1][0] / run[0][0] for run in runs)
    quarters = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
    return Figure(
        case.name, rows, round(1e3 * plain_wall, 2), round(1e3 * wall, 2),
        round(wall / plain_wall, 2), round(quarters[0], 2), round(quarters[2], 2),
        round(cpu / plain_cpu, 2), case.goal,
    )  # fmt: skip


def figures(sizes: list[int], repeat: int, only: str) -> Iterator[Figure]:
    """Every case at every size; data is made once for those that share it."""
    wanted = [case for case in CASES if only in case.name]
    for rows in sizes:
        for data in dict.fromkeys(case.data for case in wanted):
            place = tempfile.TemporaryDirectory()
            with place as folder, Service.open(data.make(Path(folder), rows)) as service:
                for case in wanted:
                    if case.data == data:
                        yield figure(case, service, rows, repeat)


def plot(found: list[Figure], path: Path) -> None:
    """Ratios as bars, one colour for each size."""
    from matplotlib.figure import Figure as Drawing  # only here: not everybody plots

    names = list(dict.fromkeys(f.case for f in found))
    sizes = sorted({f.rows for f in found})
    drawing = Drawing(figsize=(9, 1 + 0.45 * len(names)), layout="constrained")
    axes = drawing.subplots()
    height = 0.8 / len(sizes)
    for i, rows in enumerate(sizes):
        mine = {f.case: f.wall for f in found if f.rows == rows}
        places = [n + (i - (len(sizes) - 1) / 2) * height for n in range(len(names))]
        axes.barh(places, [mine.get(n, 0) for n in names], height, label=f"{rows:,} rows")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time, as a multiple of plain DuckDB")
    axes.legend()
    drawing.savefig(path, dpi=120)


def main() -> None:
    """Print a line for each figure as it comes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    print(f"{'case':40} {'rows':>12} {'plain':>10} {'dpsql':>10}  wall (quartiles)      cpu  goal")
    found = []
    for f in figures(options.rows, options.repeat, options.only):
        found.append(f)
        goal = f"{f.goal:.1f}x" if f.goal else ""
        print(
            f"{f.case:40} {f.rows:12,} {f.plain_ms:8.1f}ms {f.dpsql_ms:8.1f}ms"
            f" {f.wall:6.2f}x ({f.low:.2f}-{f.high:.2f}) {f.cpu:8.2f}x {goal:>5}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(f) for f in found], indent=1))
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
