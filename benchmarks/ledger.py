"""What the ledger costs: per query on each store, for a recalled answer, and as it grows.

python benchmarks/ledger.py                       # grows to a million records
python benchmarks/ledger.py --records 10000000    # ten million: some minutes, some gigabytes
python benchmarks/ledger.py --dsn "host=.."       # PostgreSQL too (password in PGPASSFILE)
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from dpsql.cli import main as dpsql
from dpsql.ledger.accounts import Account
from dpsql.ledger.chain import START, Record, next_record
from dpsql.ledger.charge import ATTO, NANO, Charge
from dpsql.ledger.rows import put_meta, seal
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Ledger, Note, RecallKey
from dpsql.privacy.accounting import rho_of_pure
from dpsql.privacy.cost import Cost
from dpsql.service import Service

ACCOUNTS = tuple(
    Account(f"bench/{key}", "dataset", "", "", 10**6 * NANO, ATTO // 10**6, zcdp=True)
    for key in ("dataset", "role:a", "session:a/b")
)
SMALL = Fraction(1, 10**4)
COST = Cost(SMALL, Fraction(0), rho_of_pure(SMALL))
EVENT = '{"event": "laplace", "l1": "1", "scale": "10000"}'
NOTE = Note("v1", "a", "b", "SELECT COUNT(*) FROM t")
WHEN = "2026-01-01T00:00:00.000000+00:00"


def now() -> datetime:
    return datetime.now(UTC)


def timed(do: Callable[[], object], times: int) -> str:
    """Median and 95th percentile, in milliseconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        do()
        found.append(1000 * (time.perf_counter() - start))
    found.sort()
    return f"{statistics.median(found):8.3f} ms  (95 %: {found[int(0.95 * len(found))]:.3f})"


def query(ledger: Ledger) -> None:
    """A query's life in the ledger."""
    hold = ledger.reserve(ACCOUNTS, COST, [EVENT], NOTE, start=True)
    ledger.commit(hold, {RecallKey(f"key {hold.id}", f"family {hold.id}", (1.0,)): b"x" * 500})


def rate(ledger: Ledger, threads: int, each: int) -> float:
    """Debits each second, by so many threads."""

    def client() -> None:
        for _ in range(each):
            ledger.reserve(ACCOUNTS, COST, [EVENT], NOTE, start=True)

    crew = [threading.Thread(target=client) for _ in range(threads)]
    start = time.perf_counter()
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return threads * each / (time.perf_counter() - start)


def measure(name: str, ledger: Ledger) -> None:
    print(f"{name}: a query (reserve and commit)  {timed(lambda: query(ledger), 100)}")
    for threads in (1, 8, 64):
        print(f"{name}: debits by {threads:2} threads          {rate(ledger, threads, 20):8.0f} /s")


def answers() -> None:
    """Whole answers in process: new, recalled, added up, and what EXPLAIN of them takes."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):
            dpsql(["demo", folder])
        with Service.open(Path(folder) / "policy.yaml") as service:
            timings(service)


def timings(service: Service) -> None:
    session = service.session("analyst")
    by, total = (
        "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
        "SELECT COUNT(*) FROM orders",
    )
    session.execute("SET dpsql.epsilon = 0.5")
    start = time.perf_counter()
    session.execute(by)
    print(f"answers : a new one                  {1000 * (time.perf_counter() - start):8.3f} ms")
    print(f"answers : recalled                   {timed(lambda: session.execute(by), 300)}")
    session.execute("SET dpsql.epsilon = 0.1")
    assert session.execute(total).recalled
    print(f"answers : added up, remembered       {timed(lambda: session.execute(total), 300)}")

    def anew() -> None:
        service.tools.memory.__init__(256)
        session.execute(total)

    print(f"answers : added up from the store    {timed(anew, 100)}")
    print(f"answers : EXPLAIN                    {timed(lambda: session.explain(by), 100)}")


def grown(path: Path, records: int) -> None:
    """Append records, two for each hold, as fast as SQLite takes them; the chain is a real one."""
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        last = Record(*(db.execute("SELECT * FROM event ORDER BY seq DESC LIMIT 1").fetchone() or (
            START.seq, START.hold, START.json, START.prev_hash, START.hash)))  # fmt: skip
        [(hold,)] = db.execute("SELECT coalesce(max(id), 0) FROM hold")
        charge, ids = Charge.of(COST), [account.id for account in ACCOUNTS]
        made = 0

        def rows() -> Iterator[tuple[object, ...]]:
            nonlocal last, made
            begun = {
                "state": "started", "time": WHEN, "charge": charge.numbers, "accounts": ids,
                "policy": "v1", "role": "a", "session": "b", "statement": NOTE.statement,
                "events": [json.loads(EVENT)],
            }  # fmt: skip
            for number in range(hold + 1, hold + 1 + (records - last.seq) // 2):
                for content in (begun, {"state": "committed", "time": WHEN}):
                    last = next_record(last, number, content)
                    yield last.seq, last.hold, last.json, last.prev_hash, last.hash
                made += 1

        db.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?)", rows())
        db.executemany(
            "INSERT INTO hold VALUES (?, 'committed', ?, ?, ?, ?, ?, 'v1', 'a', 'b', ?, 'o', NULL)",
            ((hold + 1 + i, *charge.numbers, json.dumps(ids), WHEN) for i in range(made)),
        )
        for account in ids:
            row = db.execute("SELECT * FROM account WHERE id = ?", (account,)).fetchone()
            before = Charge(*row[1:]) if row else Charge()
            total = Charge(
                *(a + made * b for a, b in zip(before.numbers, charge.numbers, strict=True))
            )
            db.execute(
                "INSERT OR REPLACE INTO account VALUES (?, ?, ?, ?, ?)", (account, *total.numbers)
            )
        put_meta(db, "seal", seal(db))
        db.execute("COMMIT")
    db.close()


def growth(directory: Path, most: int) -> None:
    path = directory / "grown.ledger"
    SqliteLedger.open(path, now).close()
    records = 1000
    while records <= most:
        grown(path, records)
        with SqliteLedger.open(path, now) as ledger:
            query(ledger)
            balance = timed(lambda: ledger.balances(ACCOUNTS), 200)
            asked = timed(lambda: query(ledger), 50)
            size = path.stat().st_size / 1e6
            line = f"{records:>10,} records {size:8.1f} MB  balances {balance}  query {asked}"
            if records <= 1_000_000:
                start = time.perf_counter()
                assert ledger.verify().sound
                line += f"  verify {time.perf_counter() - start:.1f} s"
        print(line, flush=True)
        records *= 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--dsn", default="")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with SqliteLedger.open(Path(folder) / "bench.ledger", now) as ledger:
            measure("sqlite  ", ledger)
        if chosen.dsn:
            from dpsql.ledger.postgres import PostgresLedger

            server = PostgresLedger.open(chosen.dsn, now, schema="dpsql_benchmark")
            measure("postgres", server)
            server.close()
        answers()
        growth(Path(folder), chosen.records)


if __name__ == "__main__":
    main()
