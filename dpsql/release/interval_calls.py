"""``DP_INTERVAL_LOW`` and ``DP_INTERVAL_HIGH``: computed once everything is released.

Claim: the result depends on released values and public noise laws only, so it costs nothing.
Assumes: the noise of released columns is the noise that they were priced with.
Argument: the functions here get nothing else.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace
from itertools import count

import pyarrow as pa

from dpsql.catalog.build import call as apply
from dpsql.catalog.build import real
from dpsql.exact import parse_exact
from dpsql.ir.expressions import NULL, Call, Case, Column, Expression, Shape, substitute
from dpsql.ir.relations import Relation, inputs, with_expressions, with_inputs
from dpsql.plan.interval_functions import NOTHING, find_interval_calls, trace_to_table
from dpsql.policy.types import Kind
from dpsql.release.intervals import Noises, Runner, Simulated, carry_columns, simulate

_NUMBERS = count(1)
_FIRST = -1_000_000_000
"""Helper columns have numbers far below those of outputs."""


def compute_interval_calls(
    relation: Relation,
    known: Noises,
    tables: MutableMapping[str, pa.Table],
    run: Runner,
) -> Relation:
    """The relation with every interval call replaced by the expression that computes it.

    Simulated ends are added to ``tables`` as columns.
    """
    below = tuple(compute_interval_calls(r, known, tables, run) for r in inputs(relation))
    relation = with_inputs(relation, below)
    ends: dict[Expression, tuple[Expression, Expression]] = {}
    for call in find_interval_calls(relation):
        value = call.args[0]
        if value in ends:
            continue
        (source,) = inputs(relation)
        found = trace_to_table(source, value)
        assert found is not None, "plan.ends lets no other pass"
        expanded, stored = found
        if not known.of(expanded):
            ends[value] = NOTHING, NOTHING
            continue
        noise = known.by_number[expanded.number] if isinstance(expanded, Column) else None
        if noise is not None and noise.even:
            ends[value] = _around(value, noise.half_width())
            continue
        low, high = (
            Column(_FIRST - next(_NUMBERS), w, Shape(Kind.DOUBLE)) for w in ("low", "high")
        )
        wanted = [Simulated(0, expanded, low, high)]
        tables[stored.name] = simulate(known, wanted, tables[stored.name], run)
        relation = with_inputs(relation, (carry_columns(source, wanted),))
        ends[value] = _where_known(value, low), _where_known(value, high)
    if not ends:
        return relation
    return with_expressions(relation, lambda node: substitute(node, lambda n: _end(n, ends)))


def _where_known(value: Expression, end: Expression) -> Expression:
    """The end of an interval; NULL where the value is NULL."""
    known = apply("not", apply("is_null", value))
    return Case(((known, end),), replace(NULL, shape=end.shape), end.shape.optional())


def _around(value: Expression, width: float) -> tuple[Expression, Expression]:
    double = apply("cast", value, option=Kind.DOUBLE.value)
    half = real(parse_exact(repr(width)))
    return apply("subtract", double, half), apply("add", double, half)


def _end(
    node: Expression, ends: dict[Expression, tuple[Expression, Expression]]
) -> Expression | None:
    if not isinstance(node, Call) or node.function not in ("interval_low", "interval_high"):
        return None
    return ends[node.args[0]][node.function == "interval_high"]
