"""The corpus: queries that dpsql answers, and plain SQL with the same answer.

Entries of fixtures/corpus/*.sql are separated by blank lines. Under the query may stand
``-- plain:`` and SQL for DuckDB where its own semantics differ from PostgreSQL's, and
``-- ordered`` where the order of rows is part of the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from support.datasets import FIXTURES


@dataclass(frozen=True)
class World:
    """Where a file's queries are asked: policy, data, what is changed in the policy, dialect."""

    policy: str
    data: str
    change: Callable[[str], str] = str
    dialect: str = "postgres"


@dataclass(frozen=True)
class Entry:
    """One query with its plain form."""

    name: str
    sql: str
    plain: str
    ordered: bool
    world: World

    def __str__(self) -> str:
        return self.name


def unlimited(text: str) -> str:
    """A policy whose only role may spend so much that answers equal plain SQL."""
    head = text.partition("accounts:")[0].replace("max_rows_per_group: 20", "")
    return head + (
        "accounts:\n  dataset: {epsilon: 1e9, delta: 1e-5, composition: basic}\n"
        "roles:\n  oracle: {epsilon: 1e9, session: {epsilon: 1e9}, query: {epsilon: 1e9},"
        " max_groups_per_unit: 1000}\n"
    )


def _keyed(text: str) -> str:
    """The public table with its key declared, so that private rows may join it."""
    return text.replace("countries: {public: true}", "countries: {public: true, key: country}")


def _nameless(text: str) -> str:
    """The trade, where the numbers of orders identify people."""
    return unlimited(text).replace(
        "order_id: {type: bigint}", "order_id: {type: bigint, identifier: true}"
    )


SHOP = World("oracle", "shop", _keyed)
WORLDS = {
    "rows": World("rows", "shop", unlimited),
    "trade": World("far", "trade", unlimited),
    "types": World("types", "types", unlimited),
    "ratings": World("ratings", "ratings", unlimited),
    "identifiers": World("far", "trade", _nameless),
    "ssb": World("ssb", "ssb"),
    "dashboards": World("dashboards", "shop", unlimited),
    **{name: World("oracle", "shop", _keyed, name) for name in ("bigquery", "snowflake", "duckdb")},
}


def _entry(name: str, text: str, world: World) -> Entry:
    query, plain, ordered = [], [], False
    for line in text.splitlines():
        if line.startswith("-- plain:"):
            plain.append(line.removeprefix("-- plain:"))
        elif line.startswith("-- ordered"):
            ordered = True
        else:
            query.append(line)
    sql = "\n".join(query)
    return Entry(name, sql, "\n".join(plain) or sql, ordered, world)


def _entries() -> tuple[Entry, ...]:
    found = []
    for path in sorted((FIXTURES / "corpus").glob("*.sql")):
        texts = [t.strip() for t in path.read_text().split("\n\n") if t.strip()]
        world = WORLDS.get(path.stem, SHOP)
        found += [_entry(f"{path.stem}-{i}", t, world) for i, t in enumerate(texts, 1)]
    return tuple(found)


CORPUS = _entries()
