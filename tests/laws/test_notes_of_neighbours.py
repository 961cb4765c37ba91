"""Notes are equal on neighbours with equal released numbers, whatever was cut on one of them.

One unit of one neighbour breaks every limit; on the other nothing is cut. Every measured integer is
replaced by the same number, and noise is made of the same bytes. So notes that differ depend on rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from support.datasets import policy_text, script
from support.services import FreeLedger, Seeded, noon
from test_hostile import Spy

from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.exact_rows import ExactRows, unseal
from dpsql.policy.load import load
from dpsql.price import notes
from dpsql.price.priced import PricedPlan
from dpsql.service import Reply, Service
from dpsql.service import session as session_module

MANY = 100_000
GREEDY = (
    "INSERT INTO customers SELECT 5000, 'g@example.org', 'de', 400, 'city 18'",
    """INSERT INTO orders SELECT 5000, 9e9, DATE '2024-01-01' + CAST(i AS INTEGER), 'shop'
       FROM range(600) AS t(i)""",
)
"""One more customer: too old, with too many orders on too many days, each worth too much."""
FACTS = {
    "rows beyond": "SELECT max(n) > 50 FROM (SELECT count(*) AS n FROM orders GROUP BY customer_id)",
    "counts in at most": (
        "SELECT max(n) > 50 FROM (SELECT count(DISTINCT placed) AS n FROM orders GROUP BY customer_id)"
    ),
    "values outside": "SELECT max(amount) > 500 FROM orders",
}  # fmt: skip
"""Whether what a note begins with has happened."""
QUESTIONS = (
    "SELECT channel, COUNT(*), SUM(amount), AVG(amount) FROM orders GROUP BY channel",
    "SELECT placed, COUNT(DISTINCT customer_id) AS n FROM orders GROUP BY placed ORDER BY n LIMIT 9",
    "SELECT COUNT(*) FROM orders WHERE amount > 499",
    "SELECT city, COUNT(*), AVG(age) FROM customers GROUP BY city",
    "SELECT city, SUM(amount) FROM customers JOIN orders USING (customer_id) GROUP BY city",
    "SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n FROM customers GROUP BY city) AS t",
    "SELECT COUNT(DISTINCT channel), STDDEV(amount) FROM orders",
)


class Pinned(Spy):
    """The real engine, whose integers are all the same."""

    def measure(self, sql: str, parameters: object) -> ExactRows:
        table = pa.concat_tables(unseal(self.engine.measure(sql, parameters)))  # type: ignore[arg-type]
        keys = [name for name in table.column_names if name.startswith("k")]
        table = table.sort_by([(name, "ascending") for name in keys]) if keys else table
        columns = [
            column if name.startswith("k") else pa.chunked_array([_filled(column)])
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        return ExactRows(pa.Table.from_arrays(columns, schema=table.schema))


def _filled(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([MANY] * len(column)).cast(column.type)


@dataclass(frozen=True)
class Place:
    """A database that is asked, and what has happened in it."""

    service: Service
    facts: dict[str, bool]

    def ask(self, sql: str) -> Reply:
        return self.service.session("analyst").execute(sql)


def place(folder: Path, name: str, changes: tuple[str, ...]) -> Place:
    here = folder / name
    here.mkdir()
    with duckdb.connect(str(here / "shop.duckdb")) as connection:
        for statement in (script("shop"), *changes):
            connection.execute(statement)
        found = {words: connection.sql(sql).fetchall()[0][0] for words, sql in FACTS.items()}
    text = policy_text("shop").replace("max_groups_per_unit: 3", "max_groups_per_unit: 60")
    (here / "policy.yaml").write_text(text)
    policy = load(here / "policy.yaml")
    engine = Pinned(DuckDB(policy.source.path, policy.limits))
    return Place(
        Service(policy, engine, FreeLedger(), clock=noon, entropy=Seeded(1)),  # type: ignore[arg-type]
        found,
    )


@pytest.fixture
def places(tmp_path: Path) -> tuple[Place, Place]:
    return place(tmp_path, "with", GREEDY), place(tmp_path, "without", ())


def differing(places: tuple[Place, Place], before: Callable[[Place], object]) -> list[str]:
    """The questions whose notes tell the neighbours apart; their numbers do not."""
    found = []
    for sql in QUESTIONS:
        replies = []
        for here in places:
            before(here)
            replies.append(here.ask(sql))
        one, other = replies
        assert one.table.equals(other.table), sql
        if repr(one.notes).encode() != repr(other.notes).encode():
            found.append(sql)
    return found


def test_notes_are_those_of_a_neighbour(places: tuple[Place, Place]) -> None:
    greedy, modest = places
    assert all(greedy.facts.values()), "everything is cut"
    assert not any(modest.facts.values()), "nothing is"
    assert differing(places, lambda _: None) == []
    said = " ".join(note for sql in QUESTIONS for note in modest.ask(sql).notes)
    assert all(words in said for words in (*FACTS, "are not shown", "different values"))


@pytest.mark.parametrize("words", FACTS)
def test_a_note_on_what_has_happened_is_noticed(
    words: str, places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    def plant(here: Place) -> None:
        def told(priced: PricedPlan) -> tuple[str, ...]:
            every = notes.notes(priced)
            return tuple(n for n in every if words not in n or here.facts[words])

        monkeypatch.setattr(session_module, "notes", told)

    assert differing(places, plant)
