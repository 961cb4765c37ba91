"""MEDIAN, PERCENTILE_CONT, PERCENTILE_DISC and similar aggregates: a value by its rank.

The values of two neighbouring rows are not averaged. So the continuous forms differ from the
discrete ones only in the type of the result.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.catalog.aggregates.mode import list_values
from dpsql.catalog.record import (
    EVERY_DIALECT,
    LISTED,
    RANKED,
    AggregateNode,
    AggregateRecord,
    Distinct,
    Form,
    Needs,
    ResultShape,
    Steady,
)
from dpsql.catalog.shapes import rank_shape, same_shape
from dpsql.catalog.statistic import Lowered, Quantile
from dpsql.ir.expressions import Aggregated
from dpsql.ir.relations import Private
from dpsql.policy.types import Kind


def lower(call: Aggregated, _: Private) -> Lowered:
    """The quantile at the fraction in ``option``."""
    return Lowered((make_quantile(call, Fraction(call.option)),), lambda columns: columns[0])


def make_quantile(call: Aggregated, fraction: Fraction, *, extreme: bool = False) -> Quantile:
    """The quantile at ``fraction``: a value of a range, or a listed text or truth value."""
    value = call.args[0]
    domain, kind, where = value.shape.domain, call.shape.kind, call.where
    if not (kind.numeric or kind.temporal):
        members = list_values(value.shape)
        assert members, "checks.known_aggregates lets no other pass"
        return Quantile(value, members[0], members[-1], fraction, extreme, kind, where, members)
    assert domain.low is not None
    assert domain.high is not None, "checks.bounded_values lets no other pass"
    return Quantile(value, domain.low, domain.high, fraction, extreme, kind, where)


_VALUE_AND_ORDER, _VALUE_AND_FRACTION = ("this", "expression"), ("this", "quantile")


def _node(name: str, arguments: tuple[str, ...], output: str, form: Form) -> AggregateNode:
    return AggregateNode(
        name=name,
        spellings=(),
        arguments=arguments,
        form=form,
        output=output,
        dialects=EVERY_DIALECT,
    )


def _record(
    name: str, about: str, nodes: tuple[AggregateNode, ...], kinds: frozenset[Kind],
    shape: ResultShape, examples: tuple[str, ...],
) -> AggregateRecord:  # fmt: skip
    return AggregateRecord(
        name=name,
        about=about,
        nodes=nodes,
        values=(1, 1),
        kinds=kinds,
        shape=shape,
        lower=lower,
        needs=Needs.RANGE_OR_LIST,
        distinct=Distinct.REFUSED,
        strict_timing=True,
        row_bounds=True,
        group_bounds=False,
        per_unit=None,
        steady=Steady.NEVER,
        chooses=True,
        windowed=False,
        correlated=False,
        gives_values=True,
        wider=False,
        examples=examples,
    )


RECORDS = (
    _record(
        "quantile_cont",
        "`MEDIAN(x)`, `PERCENTILE_CONT(f) WITHIN GROUP (ORDER BY x)`, "
        "`QUANTILE_CONT(x, f)`: of an even number of rows one of the two middle values, not their "
        "mean; `f` may be a list, `ARRAY[0.25, 0.75]`",
        (
            _node("Median", ("this",), "median", Form.RANK),
            _node("PercentileCont", _VALUE_AND_ORDER, "percentile_cont", Form.RANK),
        ),
        RANKED,
        rank_shape,
        ("MEDIAN(x)", "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)"),
    ),
    _record(
        "quantile_disc",
        "`PERCENTILE_DISC(f) WITHIN GROUP (ORDER BY x)`, `QUANTILE(x, f)`, "
        "`QUANTILE_DISC(x, f)`, `APPROX_QUANTILE(x, f)`, `APPROX_PERCENTILE(x, f)`; "
        "`APPROX_QUANTILES(x, n)`: MIN, n - 1 quantiles and MAX as a list",
        (
            _node("PercentileDisc", _VALUE_AND_ORDER, "percentile_disc", Form.RANK),
            _node("Quantile", _VALUE_AND_FRACTION, "quantile", Form.RANK),
            _node("ApproxQuantile", _VALUE_AND_FRACTION, "approx_quantile", Form.RANK),
            _node("ApproxQuantiles", ("this", "expression"), "approx_quantiles", Form.RANKS),
        ),
        LISTED,
        same_shape,
        ("PERCENTILE_DISC(0) WITHIN GROUP (ORDER BY n)", "QUANTILE_DISC(kind, 0.5)"),
    ),
)
