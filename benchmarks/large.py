"""A million groups, noised and delivered: time beside plain DuckDB, and memory beyond its.

python -m benchmarks.large [--rows 10000000] [--only WORD ..] [--data DIR] [--out DIR]

Memory is the highest that a process of its own ever held: one that runs the query plainly in
DuckDB, one that asks dpsql; what the second has more is dpsql's. It does not depend on how busy the
machine is, so more than the goal ends with status 1. Times that miss their goals are named.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.speed import Case, by, figure
from benchmarks.tables import Data, opened, plain
from benchmarks.turns import Report, options

MILLION = 1_000_000
ONE, MANY = Data(1, groups=(MILLION,)), Data(100, groups=(MILLION,))
PUBLIC, SECRET = f"g{MILLION}", f"r{MILLION}"
CASES = (
    Case("one row: COUNT, public", ONE, by(PUBLIC, "COUNT(*)"), 3.0),
    Case("one row: COUNT, SUM, AVG, public", ONE, by(PUBLIC, "COUNT(*), SUM(x), AVG(x)"), 3.0),
    Case("one row: COUNT, by threshold", ONE, by(SECRET, "COUNT(*)"), 3.0),
    Case("100 rows: COUNT, SUM, AVG, public", MANY, by(PUBLIC, "COUNT(*), SUM(x), AVG(x)"), 3.0),
    Case(
        "one row: COUNT, HAVING, ORDER BY", ONE,
        f"{by(PUBLIC, 'COUNT(*) AS n')} HAVING COUNT(*) > 12 ORDER BY n DESC", 3.0,
    ),
)  # fmt: skip
LIMIT = 300
"""Megabytes that the process may have beyond the engine's."""


def peak() -> float:
    """Megabytes that this process held at most."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def child(side: str, number: int, rows: int, kept: Path) -> None:
    """Ask once, and three times more, and tell the memory."""
    case = CASES[number]
    with opened(case.data, rows, kept) as service:
        session, other = service.session(case.role), plain(service)
        session.execute("SET dpsql.fresh = on")
        begun = peak()
        for _ in range(4):
            table = (
                other.sql(case.sql).to_arrow_table()
                if side == "plain"
                else session.execute(case.sql).table
            )
            del table
    print(json.dumps({"begun": begun, "peak": peak()}))


def memory(number: int, rows: int, kept: Path) -> dict[str, float]:
    """Of both sides, each in its own process."""
    found = {}
    for side in ("plain", "dpsql"):
        told = ["-m", "benchmarks.large", "--child", side, str(number)]
        done = subprocess.run(
            [sys.executable, *told, "--rows", str(rows), "--data", str(kept)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        found[side] = json.loads(done.stdout.splitlines()[-1])["peak"]
    return found


def main() -> int:
    """Print a line for each; 1 where dpsql takes more memory than it may, else 0."""
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="cases whose names have one of these"
    )
    parser.add_argument("--child", nargs=2)
    chosen = parser.parse_args()
    if chosen.child is not None:
        side, number = chosen.child
        child(side, int(number), chosen.rows, chosen.data)
        return 0
    report = Report("large", chosen.out)
    wanted = [i for i, c in enumerate(CASES) if any(word in c.name for word in chosen.only)]
    for i in wanted:
        case = CASES[i]
        with opened(case.data, chosen.rows, chosen.data) as service:
            report.add(figure(case, service, chosen.rows, chosen.repeat))
    heavy = []
    for i in wanted if chosen.data is not None else []:
        found = memory(i, chosen.rows, chosen.data)
        more = found["dpsql"] - found["plain"]
        said = f"{more:.0f} MB more than the engine's {found['plain']:.0f} MB, goal {LIMIT}"
        report.note(f"memory, {CASES[i].name}", said)
        if not more <= LIMIT:  # also where it is not known
            heavy.append(CASES[i].name)
    report.close()
    if heavy:
        print(
            f"more memory than {LIMIT} MB beyond the engine's: {'; '.join(heavy)}", file=sys.stderr
        )
    return int(bool(heavy))


if __name__ == "__main__":
    sys.exit(main())
