"""The queries of a corpus, and where they are asked.

Queries of ``queries*.sql`` begin with ``-- name: ...``. Below may stand ``-- ordered`` where the
order of rows is part of the answer, ``-- ties: 2`` where LIMIT may take any of several rows whose
second column is the same, ``-- near: 0.1`` for values that are chosen on a grid, and ``-- plain:`` before lines of SQL for DuckDB where its own
semantics differ from PostgreSQL's, or where public groups without rows count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.coverage.bi import data as bi
from benchmarks.coverage.clickbench import data as clickbench
from benchmarks.coverage.tpch import data as tpch

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Query:
    """One query, and plain SQL with the same answer."""

    name: str
    sql: str
    plain: str
    ordered: bool
    ties: int | None = None
    near: float = 0.0


@dataclass(frozen=True)
class Corpus:
    """Queries over one data set, which ``make`` writes to a file at a scale."""

    name: str
    title: str
    make: Callable[[Path, float], None]
    small: float
    large: float
    goal: int

    @property
    def folder(self) -> Path:
        """Where its queries and its policy are."""
        return HERE / self.name

    @property
    def queries(self) -> tuple[Query, ...]:
        """All queries, in order."""
        texts = [path.read_text() for path in sorted(self.folder.glob("queries*.sql"))]
        blocks = [
            b for text in texts for b in re.split(r"^-- name: ", text, flags=re.MULTILINE)[1:]
        ]
        return tuple(_query(block) for block in blocks)


def _query(block: str) -> Query:
    name, _, text = block.partition("\n")
    ordered = "-- ordered\n" in text
    tied = re.search(r"^-- ties: (\d+)\n", text, flags=re.MULTILINE)
    near = re.search(r"^-- near: ([\d.]+)\n", text, flags=re.MULTILINE)
    text = re.sub(r"^-- (ordered|ties: \d+|near: [\d.]+)\n", "", text, flags=re.MULTILINE)
    sql, _, plain = (part.strip() for part in text.partition("-- plain:\n"))
    return Query(
        name.strip(), sql, plain or sql, ordered,
        int(tied[1]) - 1 if tied else None, float(near[1]) if near else 0.0,
    )  # fmt: skip


CORPORA = (
    Corpus("tpch", "TPC-H", tpch.make, 0.1, 1, 18),
    Corpus("clickbench", "ClickBench", clickbench.make, 20_000, 200_000, 30),
    Corpus("bi", "BI tools", bi.make, 2_000, 20_000, 140),
)
