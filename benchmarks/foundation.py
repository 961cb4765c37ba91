"""The foundation's figures: grouped COUNT and SUM against plain DuckDB, planning, noise.

Run: python benchmarks/foundation.py [--rows N] [--repeat K]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb

from dpsql import pipeline
from dpsql.plan.request import Request
from dpsql.privacy.entropy import Entropy
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.service import Service
from dpsql.sql.parse import Source

QUERY = "SELECT grp, COUNT(*), SUM(x) FROM t GROUP BY grp"
TEN_LINES = """
SELECT grp, CASE WHEN x < 100 THEN 'low' WHEN x < 300 THEN 'middle' ELSE 'high' END AS band,
       COUNT(*) AS n,
       SUM(x) AS total,
       AVG(x) AS mean,
       STDDEV(x) AS spread,
       COUNT(*) FILTER (WHERE x > 250) AS many
FROM t
WHERE x BETWEEN 10 AND 400 AND grp <> 'g3'
GROUP BY 1, 2 HAVING COUNT(*) > 10
ORDER BY n DESC LIMIT 20
"""
POLICY = """
source: {{engine: duckdb, path: {name}.duckdb}}
data_version: "1"
units: {{person: {{table: {unit_table}, key: id}}}}
tables:
{unit_lines}
  t:
    unit: person
{keys}
    columns:
      id: {{type: bigint}}
      grp: {{type: text, values: [{groups}]}}
      x: {{type: double, range: [0, 500]}}
accounts: {{dataset: {{epsilon: 1000000000, delta: 0, composition: basic}}}}
roles: {{analyst: {{query: {{epsilon: 1}}}}}}
"""


def make(folder: Path, name: str, rows: int, units: int) -> Path:
    """A table of ``rows`` rows over ``units`` units in 20 groups, and its policy."""
    connection = duckdb.connect(str(folder / f"{name}.duckdb"))
    unit = "range" if units == rows else f"(hash(range) % {units})::BIGINT"
    connection.execute(
        f"CREATE TABLE t AS SELECT {unit}::BIGINT AS id, 'g' || (hash(range, 1) % 20) AS grp,"
        f" (hash(range, 2) % 50001) / 100.0::DOUBLE AS x FROM range({rows})"
    )
    groups = ", ".join(f"g{i}" for i in range(20))
    most = max(1, 2 * rows // units)
    if units == rows:
        unit_table, unit_lines, keys = "t", "", ""
    else:
        connection.execute(f"CREATE TABLE people AS SELECT range::BIGINT AS id FROM range({units})")
        unit_table = "people"
        unit_lines = "  people: {unit: person, columns: {id: {type: bigint}}}"
        keys = (
            "    foreign_keys: [{columns: [id], references: people}]\n"
            f"    max_rows_per_unit: {most}"
        )
    connection.close()
    path = folder / f"{name}.yaml"
    path.write_text(
        POLICY.format(
            name=name, groups=groups, unit_table=unit_table, unit_lines=unit_lines, keys=keys
        )
    )
    return path


def median(run: Callable[[], object], repeat: int) -> tuple[float, float]:
    """Median seconds and the spread between quartiles."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    quarters = statistics.quantiles(times, n=4)
    return statistics.median(times), quarters[2] - quarters[0]


def compare(folder: Path, name: str, rows: int, units: int, repeat: int) -> None:
    """dpsql against plain DuckDB, alternating in one process."""
    path = make(folder, name, rows, units)
    with Service.open(path) as service:
        session = service.session()
        session.execute("SET dpsql.fresh = on")
        plain = service._engine._root.cursor()  # the same database, the same settings
        base, base_spread, ours, spread = side_by_side(
            lambda: plain.sql(QUERY).to_arrow_table(), lambda: session.execute(QUERY), repeat
        )
    print(
        f"{name:28} plain {base * 1e3:8.1f} ms (±{base_spread * 1e3:.1f})"
        f"  dpsql {ours * 1e3:8.1f} ms (±{spread * 1e3:.1f})  ratio {ours / base:5.2f}x"
    )


def side_by_side(
    first: Callable[[], object], second: Callable[[], object], repeat: int
) -> tuple[float, float, float, float]:
    """Medians and spreads of two runs that take turns, so that both see the same machine."""
    times: tuple[list[float], list[float]] = ([], [])
    first(), second()
    for _ in range(repeat):
        for run, found in zip((first, second), times, strict=True):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    spreads = [statistics.quantiles(t, n=4)[2] - statistics.quantiles(t, n=4)[0] for t in times]
    return statistics.median(times[0]), spreads[0], statistics.median(times[1]), spreads[1]


def small(folder: Path, repeat: int) -> None:
    """Planning alone, noise alone, a query on a tiny table, a recalled query."""
    path = make(folder, "tiny", 1000, 1000)
    with Service.open(path) as service:
        session = service.session()
        source, catalog = Source(TEN_LINES), service.catalog("analyst")
        request = Request(Fraction(1), Fraction(0))
        enumerator = service.tools.enumerator
        seconds, _ = median(
            lambda: pipeline.prepare(source, catalog, request, enumerator), repeat * 5
        )
        print(f"{'planning a ten-line query':28} {seconds * 1e3:8.2f} ms")
        seconds, _ = median(lambda: session.execute(QUERY), repeat * 5)
        print(f"{'recalled answer':28} {seconds * 1e3:8.2f} ms")
        session.execute("SET dpsql.fresh = on")
        seconds, _ = median(lambda: session.execute(QUERY), repeat * 5)
        print(f"{'fixed cost of a query':28} {seconds * 1e3:8.2f} ms")
    entropy = Entropy()
    for law in (DiscreteLaplace(Fraction(1000)), DiscreteGaussian(Fraction(10**6))):
        seconds, _ = median(lambda law=law: law.sample(entropy, 100_000), repeat * 3)  # type: ignore[misc]
        print(f"{'noise, 100,000 cells, ' + law.name:34} {seconds * 1e3:6.2f} ms")


def main() -> None:
    """Run everything in a throw-away folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small(folder, options.repeat)
        compare(folder, "one row per unit", options.rows, options.rows, options.repeat)
        compare(
            folder, "about 100 rows per unit", options.rows, options.rows // 100, options.repeat
        )


if __name__ == "__main__":
    main()
