"""Rows of a FROM clause or of a query: their columns, and the state of their units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dpsql.engines.duckdb.guard.facts import STORED, Fact, Unsafe, plain
from dpsql.engines.duckdb.guard.parts import Node, conjuncts, name_of

Columns = dict[str, Fact]


class Every(Columns):
    """All columns of a public table that lists none."""

    def __contains__(self, _: object) -> bool:
        return True

    def __getitem__(self, _: str) -> Fact:
        return plain(STORED)


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns by alias, and the units of their rows.

    If ``above``, there is one row for each unit that has more rows than a constant. If ``few``, the
    rows are those of the other units. ``hides`` says that some column must not name a group.
    ``strays`` says that some rows may have no unit, because their key is NULL. ``read`` is the FROM
    and the WHERE of a query's rows. No two rows have the same values in the columns ``grouped``.
    """

    sources: tuple[tuple[str, Columns], ...]
    state: str
    parts: int = 0
    kind: str | None = None
    above: bool = False
    few: bool = False
    hides: bool = False
    strays: bool = False
    read: tuple[Node, Node | None] | None = None
    grouped: frozenset[str] | None = None

    def find(self, names: list[str]) -> Fact | None:
        """The column of a name. If USING has merged several, it is the first one."""
        table = names[0] if len(names) > 1 else None
        column = names[-1] if len(names) < 3 else names[1]
        for alias, columns in self.sources:
            if table in (None, alias) and column in columns:
                found = columns[column]
                return found.fields[names[2]] if len(names) == 3 else found
        return None

    def resolve(self, names: list[str]) -> Fact:
        """The column of a name. Raises ``Unsafe`` if there is none."""
        found = self.find(names)
        if found is None:
            raise Unsafe(f"the column {'.'.join(names)}, which is not listed here")
        return found

    @property
    def columns(self) -> Columns:
        """All columns, as ``*`` gives them."""
        return {name: fact for _, columns in self.sources for name, fact in columns.items()}

    def under(self, alias: str, columns: Columns) -> Rows:
        """The same rows, with their columns under one alias."""
        return replace(self, sources=((alias, columns),))

    def changed(self, change: Callable[[Fact], Fact]) -> Rows:
        """The same rows, with changed facts of their columns."""
        return replace(
            self,
            sources=tuple(
                (alias, {name: change(fact) for name, fact in columns.items()})
                for alias, columns in self.sources
            ),
        )


def apply_condition(rows: Rows, condition: Node | None) -> Rows:
    """The rows that a condition keeps. It may ensure that each has the whole key of its unit."""
    if condition is None or not rows.strays:
        return rows
    held = [
        rows.resolve(name_of(part["children"][0])).unit
        for part in conjuncts(condition)
        if part["type"] == "OPERATOR_IS_NOT_NULL" and name_of(part["children"][0])
    ]
    known: frozenset[int] = frozenset().union(*held)
    return replace(rows, strays=len(known) < rows.parts)


def apart(found: Iterator[tuple[str, Fact]]) -> Columns:
    """Columns by name. Raises if two are the same to the engine, which would read the first one."""
    columns: Columns = {}
    folded = set()
    for name, fact in found:
        if name.lower() in folded:
            raise Unsafe(f"two columns called {name}")
        folded.add(name.lower())
        columns[name] = fact
    return columns


def anew(rows: Rows, numbers: Iterator[int]) -> Rows:
    """Rows that are read another time. The keys of one reading do not identify rows of another."""
    fresh: dict[int, int] = {}

    def renumbered(fact: Fact) -> Fact:
        if not fact.keys:
            return fact
        for *_, reading in fact.keys:
            if reading not in fresh:
                fresh[reading] = next(numbers)
        return replace(fact, keys=frozenset((t, i, n, fresh[r]) for t, i, n, r in fact.keys))

    return rows.changed(renumbered)
