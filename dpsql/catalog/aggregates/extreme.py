"""MIN and MAX: a value near the end of the range that several rows still reach.

The very last row belongs to one unit, so it is not the target. The target is the row as many ranks
from the end as the choice may be off (``Exponential.half_width``). In a group with fewer than twice
that many rows it is the median. At a large epsilon it is the last row. DISTINCT changes nothing.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.aggregates.quantile import make_quantile
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
from dpsql.catalog.shapes import same_shape
from dpsql.catalog.statistic import Lowered
from dpsql.ir.expressions import Aggregated
from dpsql.ir.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """The quantile at 0 or 1, moved inwards as the module describes."""
    extreme = make_quantile(call, Fraction(call.function == "max"), extreme=True)
    return Lowered((extreme,), lambda columns: columns[0])


def _record(name: str, about: str, node: str, examples: tuple[str, ...]) -> AggregateRecord:
    return AggregateRecord(
        name=name,
        about=about,
        nodes=(
            AggregateNode(
                name=node, spellings=(), arguments=("this",), form=Form.VALUES, output=name,
                dialects=EVERY_DIALECT,
            ),
        ),
        values=(1, 1),
        kinds=ANY_KIND,
        shape=same_shape,
        lower=lower,
        needs=Needs.RANGE_OR_LIST,
        distinct=Distinct.SAME,
        strict_timing=True,
        row_bounds=True,
        group_bounds=False,
        per_unit=None,
        steady=Steady.ALWAYS,
        chooses=True,
        windowed=True,
        correlated=True,
        gives_values=True,
        wider=False,
        examples=examples,
    )  # fmt: skip


RECORDS = (
    _record(
        "min",
        "`MIN(x)` of numbers, times, truth values or a public list of texts: a value that some "
        "rows reach (approximate; EXPLAIN says how many)",
        "Min",
        ("MIN(x)", "MIN(moment)"),
    ),
    _record("max", "`MAX(x)`: likewise", "Max", ("MAX(n)", "MAX(day)")),
)
