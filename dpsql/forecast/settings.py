"""Variants of a policy: another price of a question, other limits, other ranges. No file is edited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.exact import number
from dpsql.policy.model import Column, Policy, QueryLimit, QueryShare, Table
from dpsql.policy.types import Kind, Scalar

FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
WIDTHS = (Fraction(1, 2), Fraction(1), Fraction(2))
"""What the policy's own numbers and the widths of its ranges are multiplied by."""
LEAST_ROWS = 2
"""With ``max_rows_per_unit: 1`` a policy declares that the data has one row of a unit."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A policy with one key set to ``value``, as a policy would write it; ``own`` if it is set so."""

    value: str
    policy: Policy
    own: bool


@dataclass(frozen=True, slots=True)
class Knob:
    """A key of the policy, and the values that are tried.

    ``table`` and ``column`` are empty for a key that concerns all questions.
    """

    key: str
    variants: tuple[Variant, ...]
    table: str = ""
    column: str = ""

    def touches(self, tables: Iterable[str], text: str) -> bool:
        """Whether a question that reads these tables, and has this text, may depend on the key."""
        if self.table and self.table not in tables:
            return False
        return self.column.lower() in text.lower()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The values that the owner asks to try; those of the policy and some around them if empty."""

    epsilons: tuple[Fraction, ...] = ()
    shares: tuple[Fraction, ...] = ()
    rows: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    ranges: tuple[Fraction, ...] = ()


def list_knobs(policy: Policy, role: str, wanted: Wanted) -> Iterator[Knob]:
    """The keys that decide between more noise and more cuts, each with the values to try."""
    shared = isinstance(policy.roles[role].query, QueryShare)
    if wanted.shares or (shared and not wanted.epsilons):
        yield _knob("query.share", _shares(policy, role, wanted.shares))
    if wanted.epsilons or (not shared and not wanted.shares):
        yield _knob("query.epsilon", _epsilons(policy, role, wanted.epsilons))
    yield _knob("max_groups_per_unit", _groups(policy, role, wanted.groups))
    for table in policy.tables.values():
        if not table.public and table.max_rows_per_unit >= LEAST_ROWS:
            limits = _limits(policy, table, wanted.rows)
            yield _knob(f"{table.name}: max_rows_per_unit", limits, table.name)
    for table in policy.tables.values():
        for column in table.columns.values():
            if not table.public and column.kind.numeric and column.range is not None:
                widths = _ranges(policy, table, column, wanted.ranges or WIDTHS)
                yield _knob(f"{table.name}.{column.name}: range", widths, table.name, column.name)


def _knob(key: str, variants: Iterator[Variant], table: str = "", column: str = "") -> Knob:
    return Knob(key, tuple({v.value: v for v in variants}.values()), table, column)


def composes_in_rho(policy: Policy, role: str) -> bool:
    """Whether all accounts of a role do, so that a question may be priced as a share of rho."""
    known = policy.roles[role]
    return all(a.composition == "zcdp" for a in (policy.dataset, known.allowance, known.session))


def _shares(policy: Policy, role: str, wanted: Sequence[Fraction]) -> Iterator[Variant]:
    query, session = policy.roles[role].query, policy.roles[role].session
    own = query.share if isinstance(query, QueryShare) else None
    tried = wanted or tuple(min(Fraction(1), (own or Fraction(1)) * f) for f in FACTORS)
    for share in tried:
        usual = own is None or query.delta == own * session.delta
        changed = QueryShare(share, share * session.delta if usual else query.delta)
        value = f"{number(share * 100)}%"
        yield Variant(value, with_role(policy, role, query=changed), share == own)


def _epsilons(policy: Policy, role: str, wanted: Sequence[Fraction]) -> Iterator[Variant]:
    query, session = policy.roles[role].query, policy.roles[role].session
    own = query.epsilon if isinstance(query, QueryLimit) else None
    delta = session.delta / 100 if own is None else query.delta
    for epsilon in wanted or tuple((own or Fraction(1)) * f for f in FACTORS):
        changed = QueryLimit(epsilon, delta)
        yield Variant(number(epsilon), with_role(policy, role, query=changed), epsilon == own)


def _groups(policy: Policy, role: str, wanted: Sequence[int]) -> Iterator[Variant]:
    own = policy.roles[role].max_groups_per_unit
    for groups in wanted or _around(own, 1):
        changed = with_role(policy, role, max_groups_per_unit=groups)
        yield Variant(str(groups), changed, groups == own)


def _limits(policy: Policy, table: Table, wanted: Sequence[int]) -> Iterator[Variant]:
    own = table.max_rows_per_unit
    for rows in wanted or _around(own, LEAST_ROWS):
        changed = replace(table, max_rows_per_unit=rows)
        yield Variant(str(rows), with_table(policy, changed), rows == own)


def _ranges(
    policy: Policy, table: Table, column: Column, widths: Sequence[Fraction]
) -> Iterator[Variant]:
    for width in widths:
        ends = scale_range(column, width)
        if ends[0] != ends[1]:
            changed = with_table(policy, with_range(table, column.name, ends))
            yield Variant(f"{_end(ends[0])} .. {_end(ends[1])}", changed, width == 1)


def _around(own: int, least: int) -> tuple[int, ...]:
    return tuple(sorted({max(least, int(own * factor)) for factor in FACTORS} | {own}))


def scale_range(column: Column, width: Fraction) -> tuple[Scalar, Scalar]:
    """A range that is ``width`` times as wide; its end that is nearest to zero, or zero, stays."""
    assert column.range is not None
    low, high = (_exact(end) for end in column.range)
    fixed = min(max(low, Fraction(0)), high)
    ends = fixed + (low - fixed) * width, fixed + (high - fixed) * width
    if column.kind is Kind.INTEGER:
        return round(ends[0]), round(ends[1])
    return ends


def _exact(end: Scalar) -> Fraction:
    assert isinstance(end, int | Fraction), "ends of numbers are numbers"
    return Fraction(end)


def _end(value: Scalar) -> str:
    return number(_exact(value))


def with_role(policy: Policy, role: str, **changes: object) -> Policy:
    """The policy with other fields of a role."""
    changed = replace(policy.roles[role], **changes)  # type: ignore[arg-type]
    return replace(policy, roles={**policy.roles, role: changed})


def with_table(policy: Policy, table: Table) -> Policy:
    """The policy with another table of that name."""
    return replace(policy, tables={**policy.tables, table.name: table})


def with_range(table: Table, column: str, ends: tuple[Scalar, Scalar]) -> Table:
    """The table with another range of a column."""
    changed = replace(table.columns[column], range=ends)
    return replace(table, columns={**table.columns, column: changed})
