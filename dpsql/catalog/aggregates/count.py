"""COUNT(*), COUNT(x), COUNT(DISTINCT unit), COUNT(DISTINCT x), COUNT(DISTINCT x, y)."""

from __future__ import annotations

from dpsql.catalog.build import not_null
from dpsql.catalog.record import (
    ANY_KIND,
    EVERY_DIALECT,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    Steady,
)
from dpsql.catalog.shapes import count_shape
from dpsql.catalog.statistic import Lowered, Rows, Units, Values
from dpsql.ir.expressions import Aggregated, Column
from dpsql.ir.relations import Private


def lower(call: Aggregated, privacy: Private) -> Lowered:
    """Counts rows where no argument is NULL; with DISTINCT, units or different values.

    ``COUNT(DISTINCT key)`` counts units if ``key`` is the unit's key, and different values
    otherwise.

    >>> from dpsql.policy.types import Kind
    >>> from dpsql.ir.expressions import Shape
    >>> count = Aggregated("count", (), Shape(Kind.INTEGER))
    >>> lower(count, Private("customer", (frozenset({0}),), 5)).statistics
    (Rows(where=None, cap=None),)
    """
    where = call.where
    if call.distinct and not counts_units(call, privacy):
        return Lowered((Values(call.args, where),), lambda columns: columns[0])
    for argument in call.args:
        where = not_null(argument, where)
    cap = None if call.bounds is None else call.bounds.group
    statistic = Units(where) if call.distinct else Rows(where, cap)
    return Lowered((statistic,), lambda columns: columns[0])


def counts_units(call: Aggregated, privacy: Private) -> bool:
    """Whether the arguments are exactly the columns of the unit's key.

    >>> from dpsql.policy.types import Kind
    >>> from dpsql.ir.expressions import Shape
    >>> person = Column(3, "customer_id", Shape(Kind.INTEGER))
    >>> counts_units(
    ...     Aggregated("count", (person,), Shape(Kind.INTEGER), distinct=True),
    ...     Private("customer", (frozenset({3}),), 5),
    ... )
    True
    """
    numbers = {a.number for a in call.args if isinstance(a, Column)}
    if len(numbers) != len(call.args) or len(numbers) != len(privacy.key):
        return False
    return bool(numbers) and all(component & numbers for component in privacy.key)


RECORDS = (
    AggregateRecord(
        name="count",
        about="`COUNT(*)`, `COUNT(x)`, `COUNT(DISTINCT unit)`, `COUNT(DISTINCT x)`, "
        "`COUNT(DISTINCT x, y)`, `COUNT(DISTINCT (x, y))`, `COUNT_IF(c)`, "
        "`APPROX_COUNT_DISTINCT(x)`",
        nodes=(
            AggregateNode(
                name="Count", spellings=(), arguments=("this", "big_int"), form=Form.VALUES, output="count",
                dialects=EVERY_DIALECT,
            ),
            AggregateNode(
                name="CountIf", spellings=(), arguments=("this",), form=Form.CONDITION, output="count_if",
                dialects=(),
            ),
            AggregateNode(
                name="ApproxDistinct", spellings=(), arguments=("this",), form=Form.DIFFERENT,
                output="approx_count_distinct", dialects=EVERY_DIALECT,
            ),
        ),
        values=(0, 1),
        kinds=ANY_KIND,
        shape=count_shape,
        lower=lower,
        needs=Needs.NOTHING,
        distinct=Distinct.COUNTS,
        strict_timing=True,
        row_bounds=False,
        group_bounds=True,
        per_unit=None,
        steady=Steady.ALWAYS,
        chooses=False,
        windowed=True,
        correlated=False,
        gives_values=False,
        wider=False,
        examples=("COUNT(*)", "COUNT(x)", "COUNT(DISTINCT n)", "COUNT(DISTINCT (n, kind))"),
    ),
)  # fmt: skip
