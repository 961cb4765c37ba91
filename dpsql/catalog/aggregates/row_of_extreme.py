"""ARG_MAX and ARG_MIN: a value of the row in which another value is largest or smallest."""

from __future__ import annotations

from dpsql.catalog.record import (
    ANY_KIND,
    EVERY_DIALECT,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    Steady,
    Unanswered,
)
from dpsql.catalog.shapes import same_shape


def _record(name: str, node: str) -> AggregateRecord:
    called = name.upper()
    return AggregateRecord(
        name=name,
        about=f"`{called}(x, y)`",
        nodes=(
            AggregateNode(
                name=node, spellings=(), arguments=("this", "expression"), form=Form.VALUES, output=name,
                dialects=EVERY_DIALECT,
            ),
        ),
        values=(2, 2),
        kinds=ANY_KIND,
        shape=same_shape,
        lower=Unanswered(
            f"{called} is not answered: the row that it finds belongs to one unit",
            "The value beside an extreme belongs to one unit. Over groups it is answered: sort "
            f"the groups by their MAX or MIN and keep the first, or take {called}(key, n) of a "
            "subquery that counts by key.",
            "Group by the value, and sort the groups.",
        ),
        needs=Needs.NOTHING,
        distinct=Distinct.REFUSED,
        strict_timing=False,
        row_bounds=False,
        group_bounds=False,
        per_unit=Unanswered(
            f"{called} is not taken over the rows of one unit",
            "Ties would be decided by the order in which an engine reads rows.",
            "Use MIN, MAX or MEDIAN.",
        ),
        steady=Steady.NEVER,
        chooses=False,
        windowed=False,
        correlated=False,
        gives_values=True,
        wider=False,
        examples=(f"{called}(kind, x)",),
    )  # fmt: skip


RECORDS = (_record("arg_max", "ArgMax"), _record("arg_min", "ArgMin"))
