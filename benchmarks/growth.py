"""How cost grows: with rows, with groups, and with what was asked before.

python -m benchmarks.growth [--full] [--only rows groups history] [--data DIR] [--out DIR]

Rows and groups: ratios to plain DuckDB, which should not grow. History: a new and a recalled answer
over a tiny table, with a ledger that has so many records and stored answers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.ledger import grown
from benchmarks.speed import Case, figure
from benchmarks.tables import Data, opened
from benchmarks.turns import RATIOS, TIMES, Ratio, Report, alone, options, places
from dpsql.service import Service

SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
GROUPS = (20, 1_000, 100_000, 1_000_000)
RECORDS = (1_000, 10_000, 100_000, 1_000_000)
USUAL = "SELECT word, COUNT(*), SUM(x) FROM t GROUP BY word"


def by_rows(kept: Path | None, repeat: int, *, full: bool) -> Iterator[Ratio]:
    """The same queries over more and more rows."""
    for rows in SIZES if full else SIZES[:3]:
        for data in (Data(1), Data(100)):
            with opened(data, rows, kept) as service:
                about = f"{data.per_unit} rows each: COUNT, SUM by 20 groups"
                yield figure(Case(about, data, USUAL), service, rows, repeat)


def by_groups(kept: Path | None, repeat: int, *, full: bool) -> Iterator[Ratio]:
    """As many rows in more and more groups, public and not."""
    rows = 10_000_000 if full else 3_000_000
    for data in (Data(1, groups=GROUPS), Data(100, groups=GROUPS)):
        with opened(data, rows, kept) as service:
            for letter, which in (("g", "public"), ("r", "by threshold")):
                for groups in GROUPS:
                    about = f"{data.per_unit} rows each: COUNT by {groups:,} groups, {which}"
                    text = f"SELECT {letter}{groups}, COUNT(*) FROM t GROUP BY {letter}{groups}"
                    yield figure(Case(about, data, text), service, rows, repeat)


def by_history(repeat: int, most: int, report: Report) -> None:
    """What a ledger full of records and stored answers does to one more question."""
    data = Data(1, groups=(20,))
    with places(None) as (folder, place):
        database = folder / "tiny.duckdb"
        data.write(database, 1000)
        policy = place / "policy.yaml"
        policy.write_text(data.policy(database))
        with Service.open(policy) as service:
            service.session("wide").execute(USUAL)
            book = service.policy.ledger
        for records in RECORDS:
            if records > most:
                break
            grown(book, records)
            answers(book, records // 2)
            with Service.open(policy) as service:
                asked = partial(service.session("wide").execute, USUAL)
                anew = service.session("wide")
                anew.execute("SET dpsql.fresh = on")
                about = f"history of {records:,} records"
                report.add(alone(f"{about}: recalled", asked, 5 * repeat, 2))
                fresh = partial(anew.execute, USUAL)
                report.add(alone(f"{about}: new", fresh, 5 * repeat, 8))


def answers(book: Path, count: int) -> None:
    """So many stored answers more, of other questions."""
    with sqlite3.connect(book) as db:
        db.execute("PRAGMA synchronous = OFF")
        [(known,)] = db.execute("SELECT count(*) FROM release")
        body = bytes(600)
        db.executemany(
            "INSERT INTO release VALUES (?, 1, ?, ?, '[1.0, 2.0]', ?, '{}')",
            ((f"key {i}", body, f"family {i}", f"base {i}") for i in range(known, count)),
        )
    db.close()


def main() -> None:
    """What is named; all of it if nothing is."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", default=["rows", "groups", "history"])
    parser.add_argument("--full", action="store_true", help="100 million rows, a million records")
    chosen = parser.parse_args()
    for name, found in (("rows", by_rows), ("groups", by_groups)):
        if name in chosen.only:
            report = Report(f"growth_{name}", chosen.out, RATIOS)
            for line in found(chosen.data, chosen.repeat, full=chosen.full):
                report.add(line)
            report.close()
    if "history" in chosen.only:
        report = Report("growth_history", chosen.out, TIMES, "milliseconds")
        by_history(chosen.repeat, RECORDS[-1] if chosen.full else RECORDS[-2], report)
        report.close()


if __name__ == "__main__":
    main()
