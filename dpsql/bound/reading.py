"""Statements over prepared copies of private tables, which bound a unit in the scan itself.

A copy numbers the rows of each unit, from one, in an order that depends only on a salt and on the
unit's own rows. A scan that reads no number above ``most`` reads at most ``most`` rows of a unit.

Claim: where ``Reading.ranked`` is a scan, a statement over ``Reading.limited(most)`` sees at most
    ``most`` rows of a unit, and which rows it sees of one unit does not depend on any other unit.
Assumes: the copy numbers rows as ``bound.copies`` says, and keys in ``PreparedCopies.keyed`` are
    unique.
Argument: below the frontier each row comes from one row of the copied table, and no two rows come
    from the same one (``once``). Projections and filters keep or drop rows. A join whose condition
    covers a key of one side matches each row of the other side with at most one row. A row belongs
    to the unit of its row in the copied table, as a unit is joined with itself only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dpsql.ir.expressions import Column, Shape
from dpsql.ir.relations import (
    Aggregate,
    Copied,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    Stepped,
    inputs,
    walk_relations,
    with_inputs,
)
from dpsql.plan.nodes import Measurement
from dpsql.policy.prepared_copies import PreparedCopies, PreparedCopy, declared_key
from dpsql.policy.types import Kind
from dpsql.sql.bind.join_rules import equalities, find_fan_outs


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of a measurement, read from copies where there are any.

    ``ranked`` is the scan that bounds how many rows of a unit are read, if there is one.
    """

    relation: Relation
    ranked: Scan | None = None

    @property
    def most(self) -> int | None:
        """The number of rows of a unit at which a unit that is as declared loses none."""
        return None if self.ranked is None else self.ranked.table.max_rows_per_unit

    def limited(self, most: int) -> Relation:
        """The rows, with at most ``most`` of each unit."""
        assert self.ranked is not None
        return _replaced(self.relation, self.ranked, most)


def match_copies(measurement: Measurement, shelf: PreparedCopies) -> Reading | None:
    """How the measurement reads copies; None where none of its tables has one.

    Under strict timing no copy is read: the number of rows that the rank lets through would be
    visible in the time.
    """
    if measurement.lifted is not None:
        return None
    scans = [r for r in walk_relations(measurement.input) if isinstance(r, Scan)]
    if not any(scan.table.name in shelf.copies for scan in scans):
        return None
    used = [f.number for r in walk_relations(measurement.input) for f in r.fields]
    used += [f.number for scan in scans for f in scan.unit_fields]
    relation = _copied(measurement.input, shelf, iter(range(max(used) + 1, 2**31)))
    ranked = [
        scan
        for scan in walk_relations(relation)
        if isinstance(scan, Scan) and scan.copied is not None and scan.unit_fields
        and scan.table.max_rows_per_unit > 1 and once(relation, scan, shelf)
    ]  # fmt: skip
    return Reading(relation, ranked[0] if ranked else None)


def _copied(relation: Relation, shelf: PreparedCopies, numbers: Iterator[int]) -> Relation:
    if isinstance(relation, Scan):
        copy = shelf.copies.get(relation.table.name)
        return relation if copy is None else replace(relation, copied=_of(relation, copy, numbers))
    below = tuple(_copied(r, shelf, numbers) for r in inputs(relation))
    return with_inputs(relation, below)


def _of(scan: Scan, copy: PreparedCopy, numbers: Iterator[int]) -> Copied:
    whole = Shape(Kind.INTEGER)
    stepped = tuple(
        Stepped(f.number, Column(next(numbers), copy.steps[f.name].name, whole), copy.steps[f.name])
        for f in scan.fields
        if f.name in copy.steps
    )
    return Copied(stepped)


def _replaced(relation: Relation, scan: Scan, most: int) -> Relation:
    if relation is scan:
        assert scan.copied is not None
        return replace(scan, copied=replace(scan.copied, most=most))
    return with_inputs(relation, tuple(_replaced(r, scan, most) for r in inputs(relation)))


def once(relation: Relation, scan: Scan, shelf: PreparedCopies) -> bool:
    """Whether each row comes from one row of the scan, and no two from the same."""
    match relation:
        case Scan():
            return relation is scan
        case Filter(input=below) | Project(input=below):
            return once(below, scan, shelf)
        case Join(kind="semi" | "anti", left=left):
            return once(left, scan, shelf)
        case Join(kind="inner" | "left", left=left, right=right) if once(left, scan, shelf):
            return _single(relation, right, shelf)
        case Join(kind="inner", left=left, right=right) if once(right, scan, shelf):
            return _single(relation, left, shelf)
        case _:
            return False


def _single(join: Join, side: Relation, shelf: PreparedCopies) -> bool:
    """Whether a row of the other side matches at most one row of ``side``."""
    assert join.condition is not None
    own = {f.number for f in side.fields}
    pairs = equalities([join.condition]).pairs
    matched = {n for pair in pairs if set(pair) - own for n in pair} & own
    return any(key <= matched for key in _keys(side, shelf))


def _keys(relation: Relation, shelf: PreparedCopies) -> list[set[int]]:
    """Sets of columns that are unique; for private tables this was verified, not only declared.

    What was verified of a computed table may be otherwise in the statement's own reading.
    """
    match relation:
        case Scan(table=table) if table.computed:
            return []
        case Scan(table=table, fields=fields):
            own = {f.name: f.number for f in fields}
            if table.public:
                return [columns for columns, most in find_fan_outs(relation) if most == 1]
            key = declared_key(table)
            known = bool(key) and table.name in shelf.keyed
            return [{own[name] for name in key}] if known and set(key) <= own.keys() else []
        case Filter(input=below) | Project(input=below):
            return _keys(below, shelf)
        case Join(kind="semi" | "anti", left=left):
            return _keys(left, shelf)
        case Join(kind="inner" | "left", left=left, right=right):
            kept = _keys(left, shelf) if _single(relation, right, shelf) else []
            if relation.kind == "inner" and _single(relation, left, shelf):
                kept += _keys(right, shelf)
            return kept
        case Aggregate(fields=fields, keys=keys, sets=()):
            return [{f.number for f in fields[: len(keys)]}]
        case _:
            return []
