"""dpsql and its peers over the same Parquet file: time beside plain DuckDB, and how far answers are off.

python -m benchmarks.peers [--peers] [--units 100000] [--envs DIR] [--data DIR] [--out DIR]

Epsilon 1, delta 1e-6, 20 groups, units with a Pareto number of rows up to 100; each query alone, with
new noise each time. ``--peers`` installs and asks `smartnoise-sql` and `pyqrlew`, each in an
environment of its own; without it only dpsql is asked. A peer's ratio is to plain DuckDB in the
peer's own process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.accuracy.pareto import make
from benchmarks.tables import plain
from benchmarks.turns import Ratio, Report, Spread, options, places, timed
from dpsql.service import Service

HERE = Path(__file__).parent
PEERS = {"smartnoise": "smartnoise-sql", "qrlew": "pyqrlew"}
BY = "SELECT grp, {} AS v FROM t GROUP BY grp"
QUERIES = {
    "COUNT": BY.format("COUNT(*)"),
    "SUM": BY.format("SUM(x)"),
    "AVG": BY.format("AVG(x)"),
    "VARIANCE": BY.format("VARIANCE(x)"),
    "MEDIAN": BY.format("MEDIAN(x)"),
    "COUNT, SUM, AVG": "SELECT grp, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY grp",
    "COUNT DISTINCT units": "SELECT COUNT(DISTINCT id) AS v FROM t",
}
GROUPS, MOST = 20, 100


def installed(name: str, envs: Path) -> Path:
    """The Python of an environment that has the peer, made when it is not there."""
    place = envs / name
    python = place / "bin" / "python"
    done = place / ".ready"
    if not done.exists():
        print(f"installing {PEERS[name]} in {place}", file=sys.stderr)
        venv.create(place, with_pip=True)
        pip = [str(python), "-m", "pip", "--no-input", "--disable-pip-version-check", "install"]
        # what they write for PostgreSQL has volatile orders in windows, which DuckDB 2 refuses
        wanted = [PEERS[name], "duckdb<2", "pyarrow", "sqlalchemy>=2"]
        subprocess.run([*pip, "-qqq", *wanted], check=True)
        done.touch()
    return python


def files(database: Path, folder: Path) -> dict[str, str]:
    """Both tables as Parquet."""
    found = {}
    with duckdb.connect(str(database), read_only=True) as connection:
        for table in ("t", "people"):
            path = folder / f"{table}.parquet"
            connection.execute(f"COPY {table} TO '{path}'")
            found[table] = str(path)
    return found


def dpsql_says(service: Service, repeat: int) -> Iterator[dict[str, Any]]:
    """Every query of dpsql and of plain DuckDB, in turns, in the form that peers tell theirs."""
    session, other = service.session(), plain(service)
    session.execute("SET dpsql.fresh = on")
    for name, text in QUERIES.items():
        rows: dict[str, list[Any]] = {}

        def ask(side: str, text: str = text, rows: dict[str, list[Any]] = rows) -> None:
            if side == "plain":
                table = other.sql(text).to_arrow_table()
            else:
                table = session.execute(text).table
            rows[side] = list(zip(*(c.to_pylist() for c in table.columns), strict=True))

        ask("plain"), ask("ours")
        runs = []
        for _ in range(repeat):
            found: dict[str, Any] = {}
            for side in ("plain", "ours"):
                found[side] = timed(lambda side=side: ask(side))
                found[f"{side}_rows"] = rows[side]
            runs.append(found)
        yield {"query": name, "runs": runs}


def peer_says(name: str, python: Path, task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The same of a peer, in its own process."""
    done = subprocess.run(
        [str(python), str(HERE / f"{name}.py")],
        input=json.dumps(task), capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    yield from map(json.loads, lines)
    if len(lines) < len(QUERIES):
        last = done.stderr.strip().splitlines()[-1:] or ["nothing"]
        yield {"query": "the rest", "refused": f"it ended, saying: {last[0][:160]}"}


def off(runs: list[dict[str, Any]]) -> float:
    """The mean over runs and groups of how far the last column is off, relative to the truth."""
    found = []
    for run in runs:
        truth = {tuple(map(str, row[:1] if len(row) > 1 else ())): row for row in run["plain_rows"]}
        for row in run["ours_rows"]:
            wanted = truth.get(tuple(map(str, row[:1] if len(row) > 1 else ())))
            if wanted is not None:
                pairs = list(zip(row, wanted, strict=True))[1 if len(row) > 1 else 0 :]
                found.append(
                    statistics.mean(abs(float(a or 0) - float(b)) / abs(float(b)) for a, b in pairs)
                )
    return statistics.mean(found) if found else float("nan")


def told(who: str, rows: int, said: Mapping[str, Any], report: Report) -> None:
    """A line for what was answered, a note for what was not."""
    about = f"{who}: {said['query']}"
    if "refused" in said:
        report.note(f"{about}: not answered", said["refused"])
        return
    runs = said["runs"]
    times = [1e3 * statistics.median(run[side][0] for run in runs) for side in ("plain", "ours")]
    wall, cpu = (Spread.of([r["ours"][k] / r["plain"][k] for r in runs]) for k in (0, 1))
    report.add(Ratio(about, rows, times[0], times[1], wall, cpu))
    report.note(f"{about}: mean relative error", f"{off(runs):.3%}")


def main() -> None:
    """Ask dpsql, and its peers when that is wanted."""
    parser = options(__doc__)
    parser.add_argument("--peers", action="store_true", help="install and ask the others too")
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--envs", type=Path, default=Path("build/peers"), help="their environments")
    chosen = parser.parse_args()
    report = Report("peers", chosen.out)
    with places(None) as (folder, _):
        policy = make(folder, chosen.units)
        tables = files(folder / "pareto.duckdb", folder)
        with Service.open(policy) as service:
            [(rows,)] = plain(service).sql("SELECT count(*) FROM t").fetchall()
            for said in dpsql_says(service, chosen.repeat):
                told("dpsql", rows, said, report)
        task = {
            "tables": tables, "queries": QUERIES, "repeat": chosen.repeat, "groups": GROUPS,
            "rows": rows, "units": chosen.units, "most": MOST, "epsilon": 1.0, "delta": 1e-6,
        }  # fmt: skip
        for name in PEERS if chosen.peers else ():
            for said in peer_says(name, installed(name, chosen.envs.absolute()), task):
                told(PEERS[name], rows, said, report)
    report.close()


if __name__ == "__main__":
    main()
