"""Planning, noise, the ledger, recall, the wire, and a whole query over a tiny table: each alone.

python -m benchmarks.alone [--repeat 35] [--no-wire] [--data DIR] [--out DIR]

``wire`` starts ``dpsql serve`` and needs psycopg; ``benchmarks/wire.py`` asks more of it, beside
PostgreSQL.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from benchmarks.coverage.corpus import CORPORA
from benchmarks.ledger import ACCOUNTS, COST, EVENT, NOTE, now, query
from benchmarks.tables import Data, opened
from benchmarks.turns import TIMES, Report, alone, options
from dpsql.cli import main as dpsql
from dpsql.diagnostics.refusal import Refused
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.privacy.entropy import Entropy
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, TruncatedGeometric
from dpsql.service import Service, Session

CELLS = 100_000
USUAL = "SELECT word, COUNT(*), SUM(x) FROM t GROUP BY word"
TEN_LINES = """
SELECT word, CASE WHEN x < 100 THEN 'low' WHEN x < 300 THEN 'middle' ELSE 'high' END AS band,
       COUNT(*) AS n,
       SUM(x) AS total,
       AVG(x) AS mean,
       STDDEV(x) AS spread,
       COUNT(*) FILTER (WHERE x > 250) AS many
FROM t
WHERE x BETWEEN 10 AND 400 AND word <> 'w3'
GROUP BY 1, 2 HAVING COUNT(*) > 10
ORDER BY n DESC LIMIT 20
"""
PASSWORD = "alone"
LISTENS = re.compile(r"port (\d+)")


def planning(report: Report, session: Session, repeat: int) -> None:
    """Text to priced plan. Spaces tell texts apart, so that no plan is remembered."""
    spaces = (" " * n for n in itertools.count(1))
    report.add(
        alone("planning: ten lines", lambda: session.prepare(TEN_LINES + next(spaces)), repeat)
    )
    report.add(alone("planning: remembered", lambda: session.prepare(TEN_LINES), repeat))
    values = itertools.count()
    text = "SELECT word, COUNT(*) FROM t WHERE x > ? GROUP BY word"
    report.add(
        alone(
            "planning: a statement with another value each time",
            lambda: session.prepare(text, [next(values)]), repeat,
        )
    )  # fmt: skip


def corpora(report: Report, repeat: int) -> None:
    """Every answered query of TPC-H and ClickBench, planned one after the other."""
    for corpus in CORPORA[:2]:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            corpus.make(folder / f"{corpus.name}.duckdb", 0.01 if corpus.name == "tpch" else 1000)
            policy = folder / "policy.yaml"
            policy.write_text((corpus.folder / "policy.yaml").read_text())
            with Service.open(policy) as service:
                session = service.session()
                texts = [q.sql for q in corpus.queries if _answered(session, q.sql)]
                about = f"planning: all {len(texts)} of {corpus.title}"
                report.add(alone(about, _every(session, texts), max(3, repeat // 5)))


def _every(session: Session, texts: Sequence[str]) -> Callable[[], None]:
    """Plans all of them anew."""
    spaces = (" " * n for n in itertools.count(1))

    def run() -> None:
        more = next(spaces)
        for text in texts:
            session.prepare(text + more)

    return run


def _answered(session: Session, text: str) -> bool:
    try:
        session.prepare(text)
    except Refused:
        return False
    return True


def noise(report: Report, repeat: int) -> None:
    """A hundred thousand cells of each law."""
    entropy = Entropy()
    laws = (
        DiscreteLaplace(Fraction(1000)),
        DiscreteGaussian(Fraction(10**6)),
        TruncatedGeometric(Fraction(1, 2), 40),
    )
    for law in laws:
        about = f"noise: {CELLS:,} cells, {law.name}"
        report.add(alone(about, lambda law=law: law.sample(entropy, CELLS), repeat, 30))


def ledger(report: Report, repeat: int) -> None:
    """What a query asks of it, on disk."""
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteLedger.open(Path(folder) / "alone.ledger", now) as book,
    ):
        report.add(alone("ledger: reserve and commit", lambda: query(book), repeat))
        report.add(
            alone(
                "ledger: reserve",
                lambda: book.reserve(ACCOUNTS, COST, [EVENT], NOTE, start=True), repeat,
            )
        )  # fmt: skip
        report.add(alone("ledger: balances", lambda: book.balances(ACCOUNTS), repeat))


def whole(report: Report, session: Session, repeat: int) -> None:
    """Queries through the Python API, ledger on disk."""
    session.execute(USUAL)
    report.add(alone("query: recalled", lambda: session.execute(USUAL), repeat, 2))
    spaces = (" " * n for n in itertools.count(1))
    report.add(
        alone(
            "query: recalled, written differently",
            lambda: session.execute(USUAL + next(spaces)), repeat,
        )
    )  # fmt: skip
    session.execute("SET dpsql.fresh = on")
    report.add(alone("query: tiny table, new", lambda: session.execute(USUAL), repeat, 8))
    report.add(
        alone(
            "query: tiny table, new and never seen",
            lambda: session.execute(USUAL + next(spaces)), repeat,
        )
    )  # fmt: skip


@contextmanager
def served(policy: Path) -> Iterator[int]:
    """``dpsql serve`` in a process of its own, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsql", "serve", "--policy", str(policy), "--port", "0"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        while not (found := LISTENS.search(process.stderr.readline())):
            pass
        yield int(found[1])
    finally:
        process.terminate()
        process.wait()


def wire(report: Report, repeat: int) -> None:
    """The same recalled answer over the endpoint: what is more than `query: recalled` is the wire."""
    import psycopg  # only here: the rest needs no driver

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):
            dpsql(["demo", folder])
        policy = Path(folder) / "policy.yaml"
        text = "SELECT channel, COUNT(*) FROM orders GROUP BY channel"
        trial = policy.read_text().replace(
            "  analyst:\n", f"  analyst:\n    password: {PASSWORD}\n"
        )
        policy.write_text(trial)
        with (
            served(policy) as port,
            psycopg.connect(
                f"host=127.0.0.1 port={port} user=analyst password={PASSWORD} dbname=demo",
                autocommit=True,
            ) as connection,
        ):

            def asked(statement: str, *, binary: bool) -> Callable[[], object]:
                return lambda: connection.execute(statement, binary=binary).fetchall()

            report.add(alone("wire: SELECT 1", asked("SELECT 1", binary=False), repeat))
            report.add(alone("wire: recalled, as text", asked(text, binary=False), repeat))
            report.add(alone("wire: recalled, binary", asked(text, binary=True), repeat))


def main() -> None:
    """Print a line for each."""
    parser = options(__doc__, repeat=35)
    parser.add_argument("--no-wire", action="store_true")
    chosen = parser.parse_args()
    report = Report("alone", chosen.out, TIMES, "milliseconds")
    with opened(Data(1, groups=(20,)), 1000, None) as service:
        planning(report, service.session("wide"), chosen.repeat)
        whole(report, service.session("wide"), chosen.repeat)
    corpora(report, chosen.repeat)
    noise(report, chosen.repeat)
    ledger(report, chosen.repeat)
    if not chosen.no_wire:
        wire(report, chosen.repeat)
    report.close()


if __name__ == "__main__":
    main()
