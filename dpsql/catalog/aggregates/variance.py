"""VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, from two centred totals and a count.

The centred values are squared, and the squares are centred again. So one row changes the total of
squares by at most an eighth of the squared range.
"""

from __future__ import annotations

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import not_null
from dpsql.catalog.moments import centre_value, of_sample
from dpsql.catalog.record import (
    EVERY_DIALECT,
    NUMBERS,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    Steady,
)
from dpsql.catalog.shapes import spread_shape
from dpsql.catalog.statistic import Lowered, Rows
from dpsql.ir.expressions import Aggregated, Column, Expression
from dpsql.ir.relations import Private


def lower(call: Aggregated, _: Private) -> Lowered:
    """``E[(x - mid)^2] - E[x - mid]^2``, clamped to the largest variance within the bounds."""
    value, where = centre_value(call.args[0]), call.where

    def finish(columns: tuple[Column, ...]) -> Expression:
        total, squares, count = columns
        population = value.spread(total, squares, count)
        return _finished(call.function, population, count)

    squares, count = value.squares(where), Rows(not_null(value.value, where))
    return Lowered((value.total(where), squares, count), finish, (squares, count))


def _finished(function: str, population: Expression, count: Column) -> Expression:
    """Applies Bessel's correction for the sample forms, and the root for standard deviations."""
    result = of_sample(population, count) if function.endswith("samp") else population
    return apply("sqrt", result) if function.startswith("stddev") else result


def _record(
    name: str, about: str, nodes: tuple[str, ...], output: str, example: str
) -> AggregateRecord:
    return AggregateRecord(
        name=name,
        about=about,
        nodes=tuple(
            AggregateNode(
                name=node, spellings=(), arguments=("this",), form=Form.VALUES, output=output,
                dialects=EVERY_DIALECT,
            )
            for node in nodes
        ),
        values=(1, 1),
        kinds=NUMBERS,
        shape=spread_shape,
        lower=lower,
        needs=Needs.BOUNDS,
        distinct=Distinct.REFUSED,
        strict_timing=True,
        row_bounds=True,
        group_bounds=False,
        per_unit=None,
        steady=Steady.NEVER,
        chooses=False,
        windowed=True,
        correlated=False,
        gives_values=True,
        wider=False,
        examples=(example,),
    )  # fmt: skip


RECORDS = (
    _record("var_pop", "`VAR_POP(x)`", ("VariancePop",), "var_pop", "VAR_POP(x)"),
    _record("var_samp", "`VAR_SAMP(x)`, `VARIANCE(x)`", ("Variance",), "variance", "VAR_SAMP(x)"),
    _record("stddev_pop", "`STDDEV_POP(x)`", ("StddevPop",), "stddev_pop", "STDDEV_POP(n)"),
    _record(
        "stddev_samp",
        "`STDDEV_SAMP(x)`, `STDDEV(x)`",
        ("Stddev", "StddevSamp"),
        "stddev",
        "STDDEV_SAMP(x)",
    ),
)
