"""What becomes of a query: answered and equal to plain SQL, answered wrongly, refused, failed."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.coverage.compare import ABSOLUTE, differs
from benchmarks.coverage.corpus import Corpus, Query
from dpsql.diagnostics.refusal import Refused
from dpsql.price.priced import PricedPlan
from dpsql.service import Service, Session

EQUAL, DIFFERENT, REFUSED, FAILED = "equal", "different", "refused", "failed"


@dataclass(frozen=True)
class Outcome:
    """One query's. ``said`` is what was wrong, or the headline of the refusal."""

    query: str
    state: str
    code: str = ""
    said: str = ""
    why: str = ""
    instead: str = ""
    planning_ms: float = 0.0

    @property
    def recorded(self) -> str:
        """What a change would change: the state, and the code of a refusal."""
        return f"{self.state} {self.code}".strip()


@dataclass
class Days:
    """A clock that is set forward between questions, so that daily budgets are new for each."""

    now: datetime = field(default_factory=lambda: datetime(2025, 6, 1, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Asked:
    """An open corpus: dpsql at epsilon 1e9 beside plain DuckDB on the same file."""

    session: Session
    plain: duckdb.DuckDBPyConnection
    days: Days

    def outcome(self, query: Query, plans: int = 3) -> Outcome:
        """Ask both; the fastest of so many plans is timed."""
        self.days.now += timedelta(days=1)
        try:
            planned = (self._planned(query.sql + " " * spaces) for spaces in range(plans))
            taken, priced = min(planned, key=lambda p: p[0])
            reply = self.session.execute(query.sql)
            table = reply.table
        except Refused as refused:
            first = refused.first
            told = (first.code, first.headline, first.why, first.instead)
            return Outcome(query.name, REFUSED, *told)
        except Exception as error:  # noqa: BLE001 (a crash is an outcome, and a defect)
            return Outcome(query.name, FAILED, said=f"{type(error).__name__}: {error}")
        try:
            said = self._differs(query, priced, table)
        except duckdb.Error as error:
            said = f"plain SQL fails: {error}"
        return Outcome(query.name, DIFFERENT if said else EQUAL, said=said, planning_ms=taken)

    def _planned(self, text: str) -> tuple[float, PricedPlan]:
        """Milliseconds and the plan; spaces tell texts apart, so that none is remembered.

        Processor time: what else the machine does is not planning.
        """
        start = time.process_time()
        priced = self.session.prepare(text)
        return 1000 * (time.process_time() - start), priced

    def _differs(self, query: Query, priced: PricedPlan, table: pa.Table) -> str:
        expected = self._expected(query.plain)
        if query.ties is None:
            least = max(ABSOLUTE, query.near)
            return differs(table, expected, priced, ordered=query.ordered, least=least)
        columns = [query.ties]
        said = differs(table.select(columns), expected.select(columns), ordered=True)
        everything = self._expected(re.sub(r"\sLIMIT \d+( OFFSET \d+)?$", "", query.plain))
        return said or differs(table, everything, part=True)

    def _expected(self, text: str) -> pa.Table:
        today = self.days.now.strftime("%Y-%m-%d")
        text = text.replace("CURRENT_DATE", f"DATE '{today}'")
        text = text.replace("CURRENT_TIMESTAMP", f"TIMESTAMP '{today} 12:00:00'")
        text = text.replace("NOW()", f"TIMESTAMP '{today} 12:00:00'")
        return self.plain.sql(text).to_arrow_table()


@contextmanager
def opened(corpus: Corpus, scale: float, data: Path | None = None) -> Iterator[Asked]:
    """The corpus at a scale; ``data`` is a folder that may keep the file for later runs."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kept = (data or place) / f"{corpus.name}-{scale:g}.duckdb"
        if not kept.exists():
            corpus.make(kept, scale)
        (place / f"{corpus.name}.duckdb").symlink_to(kept.absolute())
        policy = place / "policy.yaml"
        policy.write_text((corpus.folder / "policy.yaml").read_text())
        days = Days()
        copy = place / "copy.duckdb"  # one process opens a file with one configuration only
        shutil.copy(kept, copy)
        with Service.open(policy, clock=days) as service, duckdb.connect(str(copy)) as plain:
            plain.execute("CREATE SCHEMA public")
            for (table,) in plain.sql("SELECT table_name FROM duckdb_tables()").fetchall():
                plain.execute(f"CREATE VIEW public.{table} AS SELECT * FROM main.{table}")
            yield Asked(service.session(), plain, days)
