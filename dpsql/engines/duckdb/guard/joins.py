"""Joins of rows with rows of the same unit, and of numbers before noise with public keys.

Claim: if both sides are rows of units, a row is joined with rows of its own unit only.
Assumes: keys that foreign keys of the policy refer to are unique.
Argument: the condition equates either every part of the unit's key, or every part of the key of one
    row, which on each side is the row that tells the unit of that side's rows.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.engines.duckdb.guard.casts import separate
from dpsql.engines.duckdb.guard.facts import Fact, Unsafe, alike, kind_of
from dpsql.engines.duckdb.guard.parts import Node, conjuncts, equal, find_column_names, name_of
from dpsql.engines.duckdb.guard.rows import Columns, Rows
from dpsql.engines.duckdb.guard.terms import MEASURED, PRIVATE, PUBLIC, Terms

Pair = tuple[Fact, Fact]


def join_rows(left: Rows, right: Rows, node: Node, terms: Terms, *, steady: bool) -> Rows:
    """The rows of a join; ``terms`` are over both sides."""
    kind, condition, using = node["join_type"], node["condition"], node["using_columns"]
    states = {left.state, right.state}
    state = state_of(states)
    _meet(left, right, node)
    if condition is not None:
        terms.condition(condition)
    pairs = [(left.resolve([name]), right.resolve([name])) for name in using]
    pairs += [] if condition is None else _pairs(condition, left, right, terms)
    for pair in pairs:
        alike(list(pair))
    if states == {PRIVATE} and not (_units(pairs, left, right) or _owners(pairs)):
        raise Unsafe("a join of rows of different units")
    half = kind in ("SEMI", "ANTI")
    if steady and state == PRIVATE and (half or not _pairing(condition, left)):
        raise Unsafe("a condition that decides which private rows are joined")
    parts, unit = max(left.parts, right.parts), left.kind or right.kind
    if half:
        others = kind == "ANTI" and right.above and _units(pairs, left, right)
        few = others and left.read == right.read
        return replace(left, state=state, parts=parts, kind=unit, above=False, few=few, read=None)
    other = _optional(right) if kind == "LEFT" else right
    strays = left.strays or (right.strays and kind != "LEFT")
    if kind == "INNER" and _owners(pairs):  # rows of both sides belong to that row's unit
        strays = left.strays and right.strays
    both = Rows(
        left.sources + other.sources, state, parts, unit, hides=left.hides or right.hides,
        strays=strays and not (kind == "INNER" and _units(pairs, left, right)),
    )  # fmt: skip
    return both if kind == "LEFT" or condition is None else _with_units(both, condition)


def _meet(left: Rows, right: Rows, node: Node) -> None:
    """Refuse joins of rows that must not be joined, and joins that keep rows without a unit."""
    kind, states = node["join_type"], {left.state, right.state}
    plain = kind in ("INNER", "LEFT", "SEMI", "ANTI")
    if not plain or node["ref_type"] not in ("REGULAR", "CROSS"):
        raise Unsafe(f"a {kind} {node['ref_type']} join")
    if states == {PRIVATE, MEASURED}:
        raise Unsafe("private rows beside what was measured of them")
    if MEASURED in states and not (
        kind == "LEFT" and right.state == MEASURED and _by_keys(node["condition"])
    ):
        raise Unsafe("numbers before their noise, joined by more than their keys")
    if right.state == PRIVATE and left.state != PRIVATE and kind != "INNER":
        raise Unsafe("rows of no unit, kept by whether a unit has some")
    if state_of(states) == PRIVATE and len({left.kind, right.kind} - {None}) > 1:
        raise Unsafe("rows of different kinds of unit in one relation")


def state_of(states: set[str]) -> str:
    """The state of a relation that has rows of several states."""
    return next(s for s in (PRIVATE, MEASURED, PUBLIC) if s in states)


def _by_keys(condition: Node | None) -> bool:
    """Whether a condition only compares keys, or is constant."""
    return condition is not None and all(
        part["type"] == "COMPARE_NOT_DISTINCT_FROM" or part["class"] == "CONSTANT" or _true(part)
        for part in conjuncts(condition)
    )


def _true(part: Node) -> bool:
    return bool(part["class"] == "CAST" and part["child"]["class"] == "CONSTANT")


def _pairs(condition: Node, left: Rows, right: Rows, terms: Terms) -> list[Pair]:
    """The pairs of values of both sides that a condition makes equal, the left value first."""
    found = []
    for one, other in equal(condition):
        first, second = terms.fact(one), terms.fact(other)
        here, there = (left.find(name_of(side)) is not None for side in (one, other))
        mine, theirs = (right.find(name_of(side)) is not None for side in (one, other))
        if here and theirs and not (mine or there):
            found.append((first, second))
        elif there and mine and not (here or theirs):
            found.append((second, first))
    return found


def _units(pairs: list[Pair], left: Rows, right: Rows) -> bool:
    """Whether pairs make every part of the unit's key equal."""
    covered: frozenset[int] = frozenset().union(*(a.unit & b.unit for a, b in pairs))
    return bool(left.parts) and left.parts == right.parts == len(covered)


def _owners(pairs: list[Pair]) -> bool:
    """Whether pairs equate every part of the key of a row that the rows of both sides belong to."""
    found: dict[tuple[str, int, int, int], set[int]] = {}
    for one, other in pairs:
        for table, part, count, reading in one.keys:
            for same, place, _, there in other.keys:
                if (same, place) == (table, part):
                    found.setdefault((table, count, reading, there), set()).add(part)
    return any(len(parts) == count for (_, count, _, _), parts in found.items())


def _optional(rows: Rows) -> Rows:
    """Columns that are NULL in rows without a partner. They are no key: many units share NULL."""
    return rows.changed(
        lambda f: replace(f, unit=frozenset(), keys=frozenset()) if f.unit or f.keys else f
    )


def _pairing(condition: Node | None, left: Rows) -> bool:
    """Whether each part of a join's condition compares one side with the other."""
    if condition is None:
        return True
    mine = {alias for alias, _ in left.sources}
    return all(
        0 < len([t for t in tables if t in mine]) < len(tables)
        for part in conjuncts(condition)
        for tables in [{names[0] for names in find_column_names(part)}]
    )


def _with_units(rows: Rows, condition: Node) -> Rows:
    """Rows in which columns that a condition makes equal all have each other's keys.

    Columns with a cast that makes different values equal are left out.
    """
    sources: list[tuple[str, Columns]] = [(alias, dict(c)) for alias, c in rows.sources]
    rows = replace(rows, sources=tuple(sources))
    pairs = [
        (name_of(a), name_of(b)) for a, b in equal(condition) if _apart(a, rows) and _apart(b, rows)
    ]
    for _ in pairs:
        for one, other in pairs:
            first, second = rows.resolve(one), rows.resolve(other)
            unit, keys = first.unit | second.unit, first.keys | second.keys
            for names in (one, other):
                for alias, columns in sources:
                    if names[0] == alias and len(names) == 2 and names[1] in columns:
                        fact = replace(columns[names[1]], unit=unit, keys=keys)
                        columns[names[1]] = fact
    return rows


def _apart(side: Node, rows: Rows) -> bool:
    """Whether different values of the column stay different in the comparison."""
    if side["class"] != "CAST":
        return True
    return separate(rows.resolve(name_of(side)), kind_of(side["type_expr"]))
