"""Whether public groups hold every row. Values beyond a declared range and NaN are in no group.

Claim: where ``is_within_ends`` is true, the column's value in every row that is counted is between
    the ends of its domain, and is neither NULL nor NaN.
Assumes: the engine orders NaN above all numbers.
Argument: conditions compare the column with constants on both sides, which are within those ends.
    NULL fails such a condition, and so does NaN, which is above all numbers. A declaration alone
    proves nothing about a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from fractions import Fraction

from dpsql.ir.expressions import Call, Case, Column, Expression, Literal, columns
from dpsql.policy.types import Scalar

_FLIP = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def is_covered(atom: Expression, conditions: Iterable[Expression]) -> bool:
    """Whether no row that satisfies the conditions has a value of ``atom`` that is not listed.

    A list of values in the policy is trusted. The listed values of a computed expression follow
    from those of its columns.
    """
    if isinstance(atom, Call | Case) and atom.shape.domain.members is not None:
        return True
    needed = list(columns(atom))
    known = list(conditions)
    return all(c.shape.domain.members is not None or is_within_ends(c, known) for c in needed)


def is_within_ends(column: Column, conditions: Iterable[Expression]) -> bool:
    """Whether conditions restrict a column to values between the ends of its domain."""
    low = high = False
    for sign, value in _compared(column, conditions):
        domain = column.shape.domain
        low |= sign in ("gt", "ge", "eq") and _ordered(domain.low, value)
        high |= sign in ("lt", "le", "eq") and _ordered(value, domain.high)
    return low and high


def _compared(column: Column, conditions: Iterable[Expression]) -> Iterable[tuple[str, Scalar]]:
    """The constants that a column is compared with, each with the comparison."""
    for condition in conditions:
        if not isinstance(condition, Call) or condition.function not in _FLIP:
            continue
        left, right, sign = *condition.args, condition.function
        if isinstance(left, Literal):
            left, right, sign = right, left, _FLIP[sign]
        same = isinstance(left, Column) and left.number == column.number
        if same and isinstance(right, Literal) and right.value is not None:
            yield sign, right.value


def _ordered(low: Scalar | None, high: Scalar | None) -> bool:
    """Whether both are given and in this order. Only values of one kind are compared."""
    match low, high:
        case (int() | Fraction(), int() | Fraction()):
            return low <= high
        case (datetime(), datetime()):
            return low <= high
        case (date(), date()) if not isinstance(low, datetime) and not isinstance(high, datetime):
            return low <= high
        case _:
            return False
