"""What privacy costs in time: every way to bound a unit, beside plain DuckDB on the same rows.

python -m benchmarks.speed [--rows N ..] [--only WORD ..] [--full] [--prepared] [--data DIR] [--out DIR]

Without ``--full``: the cases with goals and their neighbours. With it: each aggregate over units of
1, 10 and 100 rows in 20, 1,000 and 100,000 groups, public and thresholded, at 1 to 100 million rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables import Data, opened, plain
from benchmarks.turns import Ratio, Report, in_turns, options
from dpsql.service import Service


@dataclass(frozen=True)
class Case:
    """A query over some data, and the most that it should cost (0: no goal).

    ``role`` says in how many groups a unit counts: 20 (``wide``), or 5.
    """

    name: str
    data: Data
    sql: str
    goal: float = 0.0
    role: str = "wide"


def by(key: str, what: str) -> str:
    """Grouped."""
    return f"SELECT {key}, {what} FROM t GROUP BY {key}"


ONE, TEN, MANY, FAR = Data(1), Data(10), Data(100), Data(100, far=True)
USUAL = "COUNT(*), SUM(x), AVG(x)"
JOINED = "SELECT {} FROM t JOIN people p ON p.id = t.id GROUP BY 1"
CASES = (
    Case("one row: COUNT, SUM, AVG", ONE, by("word", USUAL), 1.2),
    Case("one row: COUNT", ONE, "SELECT COUNT(*) FROM t WHERE x > 100"),
    Case("one row: VARIANCE", ONE, by("word", "VARIANCE(x)")),
    Case("one row: COUNT DISTINCT values", ONE, by("word", "COUNT(DISTINCT day)")),
    Case("one row: MEDIAN", ONE, by("word", "MEDIAN(x)")),
    Case("one row: keys by threshold", ONE, by("r1000", "COUNT(*)")),
    Case("one row: 100,000 groups", ONE, by("g100000", "COUNT(*), SUM(x)")),
    Case(
        "one row: a public table joined", ONE,
        "SELECT c.class, COUNT(*), SUM(x) FROM t JOIN classes c ON c.word = t.word GROUP BY 1",
    ),
    Case("10 rows: COUNT, SUM, AVG", TEN, by("word", USUAL)),
    Case("100 rows: COUNT, SUM, AVG", MANY, by("word", USUAL), 2.5),
    Case("100 rows: VARIANCE", MANY, by("word", "VARIANCE(x)")),
    Case("100 rows: COUNT DISTINCT units", MANY, "SELECT COUNT(DISTINCT id) FROM t"),
    Case("100 rows: units by group", MANY, by("word", "COUNT(DISTINCT id)")),
    Case("100 rows: COUNT DISTINCT values", MANY, by("word", "COUNT(DISTINCT day)")),
    Case("100 rows: MEDIAN", MANY, by("word", "MEDIAN(x)")),
    Case(
        "100 rows: 1,000 groups, 5 for a unit", MANY, by("g1000", "COUNT(*), SUM(x)"), 4.0,
        "narrow",
    ),
    Case("100 rows: 100,000 groups", MANY, by("g100000", "COUNT(*), SUM(x)")),
    Case("100 rows: keys by threshold", MANY, by("r1000", "COUNT(*)")),
    Case(
        "100 rows: joined with its unit", MANY,
        JOINED.format("p.region, COUNT(*), SUM(x)"),
    ),
    Case("100 rows: unit one key away", FAR, by("word", USUAL), 4.0),
)  # fmt: skip

AGGREGATES = {
    "COUNT": "COUNT(*)",
    "SUM": "SUM(x)",
    "AVG": "AVG(x)",
    "COUNT DISTINCT units": "COUNT(DISTINCT id)",
    "COUNT DISTINCT values": "COUNT(DISTINCT day)",
    "VARIANCE": "VARIANCE(x)",
    "MEDIAN": "MEDIAN(x)",
}


def matrix() -> Iterator[Case]:
    """Each aggregate over each table, by each key."""
    for data in (ONE, TEN, MANY):
        for groups in data.groups:
            role = "wide" if groups == 20 else "narrow"
            about = f"{data.per_unit} rows, {groups:,} groups: "
            for name, what in AGGREGATES.items():
                yield Case(about + name, data, by(f"g{groups}", what), 0, role)
            yield Case(about + "keys by threshold", data, by(f"r{groups}", "COUNT(*)"), 0, role)


def figure(case: Case, service: Service, rows: int, repeat: int) -> Ratio:
    """Both sides in turn."""
    session = service.session(case.role)
    session.execute("SET dpsql.fresh = on")
    other = plain(service)
    sides = (
        lambda: other.sql(case.sql).to_arrow_table(),
        lambda: session.execute(case.sql),
    )
    return in_turns(case.name, rows, sides, repeat, case.goal)


def figures(
    cases: Sequence[Case], sizes: Sequence[int], repeat: int, kept: Path | None, *, prepared: bool
) -> Iterator[Ratio]:
    """Every case at every size; data is made once for those that share it."""
    for rows in sizes:
        for data in dict.fromkeys(case.data for case in cases):
            with opened(data, rows, kept, prepared=prepared) as service:
                for case in cases:
                    if case.data == data:
                        yield figure(case, service, rows, repeat)


def main() -> None:
    """Print a line for each figure as it comes."""
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="cases whose names have one of these"
    )
    parser.add_argument("--full", action="store_true", help="the whole matrix")
    parser.add_argument("--prepared", action="store_true", help="with copies of all tables")
    chosen = parser.parse_args()
    cases = [*CASES, *matrix()] if chosen.full else list(CASES)
    cases = [case for case in cases if any(word in case.name for word in chosen.only)]
    usual = [1_000_000, 10_000_000, *([100_000_000] if chosen.full else [])]
    report = Report("speed-prepared" if chosen.prepared else "speed", chosen.out)
    for found in figures(
        cases, chosen.rows or usual, chosen.repeat, chosen.data, prepared=chosen.prepared
    ):
        report.add(found)
    report.close()


if __name__ == "__main__":
    main()
