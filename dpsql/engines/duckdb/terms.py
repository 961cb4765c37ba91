"""Writes the terms of statements for DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import assert_never

from dpsql.engines.duckdb.constants import double, literal, quote_name
from dpsql.engines.duckdb.expressions import canonical, expression
from dpsql.ir.expressions import Expression, Literal
from dpsql.ir.statements import (
    SALT,
    Bin,
    BinList,
    CaseWhen,
    Cast,
    Draw,
    DrawPart,
    Fold,
    KeyValue,
    Name,
    Number,
    Op,
    Operator,
    Over,
    Rank,
    RowDigest,
    RowValue,
    Steps,
    StoredColumn,
    Term,
)
from dpsql.policy.types import Kind

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (naive by design)
_INFIX: Mapping[Operator, str] = {
    "+": "+", "-": "-", "*": "*", "//": "//", "/": "/", "%": "%", "<<": "<<", "&": "&", "=": "=",
    "<>": "<>", ">": ">", ">=": ">=", "<=": "<=", "and": "AND", "or": "OR",
}  # fmt: skip
_PREFIX: Mapping[Operator, str] = {"negative": "-"}
_POSTFIX: Mapping[Operator, str] = {"is null": " IS NULL", "is not null": " IS NOT NULL"}


@dataclass(slots=True)
class Scope:
    """The columns of the relation of a ``Read``, and the way in which its expressions are written.

    If ``lifted`` is set, each expression is computed in a query below, and has a name here.
    ``repeats`` says that an expression that is more than a name would be written several times.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    lifted: dict[str, str] | None = None
    repeats: bool = False

    def once(self, value: Expression) -> str:
        """The text of an expression that is written once."""
        return self._lift(expression(value, self.names))

    def often(self, value: Expression, *, double: bool = False) -> str:
        """The text of an expression that is written several times; as a double if ``double``."""
        text = expression(value, self.names)
        if double and value.shape.kind is not Kind.DOUBLE:
            text = f"CAST({text} AS DOUBLE)"
        self.repeats = self.repeats or not bare(text)
        return self._lift(text)

    def _lift(self, text: str) -> str:
        if self.lifted is None:
            return text
        return self.lifted.setdefault(text, f"x{len(self.lifted)}")


def bare(text: str) -> bool:
    """Whether a text is only the name of a column.

    >>> bare('t1."amount"'), bare('t1."a" + 1')
    (True, False)
    """
    return re.fullmatch(r"""(?:\w+\.)?(?:\w+|"(?:[^"]|"")*")""", text) is not None


def term(node: Term, scope: Scope) -> str:  # noqa: C901 (one arm each)
    """The text of a term."""

    def inner(part: Term) -> str:
        return term(part, scope)

    match node:
        case Name(name=name, of=of):
            return f"{of}.{name}" if of else name
        case StoredColumn(name=name, of=of):
            return f"{of}.{quote_name(name)}"
        case Number(value=value):
            return str(value)
        case RowValue(expression=given):
            return scope.once(given)
        case KeyValue(expression=given):
            return _canonical(given, scope)
        case Steps():
            return _steps(node, scope)
        case Bin():
            return _bin(node, scope)
        case BinList(bin=place, weight=weight):
            return _bin_list(inner(place), inner(weight))
        case Op():
            return _operation(node, inner)
        case Cast(value=number, to=to):
            return f"CAST({inner(number)} AS {to.upper()})"
        case CaseWhen(whens=whens, otherwise=otherwise):
            arms = " ".join(f"WHEN {inner(c)} THEN {inner(v)}" for c, v in whens)
            return f"CASE {arms}{'' if otherwise is None else f' ELSE {inner(otherwise)}'} END"
        case Fold():
            return _fold(node, inner)
        case Over(fold=fold, partition=partition):
            return f"{_fold(fold, inner)} OVER (PARTITION BY {', '.join(map(inner, partition))})"
        case Rank(partition=partition, order=order, dense=dense):
            within = f"PARTITION BY {', '.join(map(inner, partition))}"
            function = "dense_rank" if dense else "row_number"
            return f"{function}() OVER ({within} ORDER BY {', '.join(map(inner, order))})"
        case Draw(values=values, salt=fixed):
            salt = f"${SALT}" if fixed is None else str(fixed)
            return f"hash({', '.join((*_tagged(values, inner), salt))})"
        case DrawPart(draw=draw, bits=bits):
            return f"{inner(draw)} >> {64 - bits}"
        case RowDigest(values=values):
            return f"md5_number_lower(CAST(row({', '.join(map(inner, values))}) AS VARCHAR))"
        case _:
            assert_never(node)


def _tagged(values: tuple[Term, ...], inner: Callable[[Term], str]) -> list[str]:
    """For each value a truth value that says whether it is NULL, and then the value.

    Claim: different values give different arguments, also to a hash that skips NULL: (NULL, 1) and
        (1, NULL) are read as (true, false, 1) and (false, 1, true).
    Assumes: the hash of the engine mixes its arguments in their order.
    Argument: the truth value before each value says whether a value follows.
    """
    texts = [inner(value) for value in values]
    return [part for text in texts for part in (f"{text} IS NULL", text)]


def _operation(node: Op, inner: Callable[[Term], str]) -> str:
    texts = [_bracketed(arg, inner) for arg in node.args]
    if node.name in _INFIX:
        return f" {_INFIX[node.name]} ".join(texts)
    if node.name in _PREFIX:
        return _PREFIX[node.name] + texts[0]
    if node.name in _POSTFIX:
        return texts[0] + _POSTFIX[node.name]
    return f"{node.name}({', '.join(map(inner, node.args))})"


def _bracketed(node: Term, inner: Callable[[Term], str]) -> str:
    """An operand, in brackets if it is an operation itself or a negative number."""
    several = isinstance(node, Op) and node.name in (*_INFIX, *_PREFIX, *_POSTFIX)
    text = inner(node)
    return f"({text})" if several or isinstance(node, DrawPart) or text.startswith("-") else text


def _fold(node: Fold, inner: Callable[[Term], str]) -> str:
    value = "*" if node.value is None else inner(node.value)
    where = "" if node.where is None else f" FILTER (WHERE {inner(node.where)})"
    return f"{node.function}({'DISTINCT ' if node.distinct else ''}{value}){where}"


def _canonical(value: Expression, scope: Scope) -> str:
    if value.shape.kind is not Kind.DOUBLE or isinstance(value, Literal):
        return scope.once(value)
    return canonical(scope.often(value), value.shape.kind)


def _steps(node: Steps, scope: Scope) -> str:
    text = scope.often(node.value, double=not node.whole)
    if node.inside:
        return _rounded(text, node)
    ends = (
        (str(node.least), str(node.most)) if node.whole else (double(node.low), double(node.high))
    )
    least, most = node.least - node.centre, node.most - node.centre
    less = "" if not node.centre else f" {'-' if node.centre > 0 else '+'} {abs(node.centre)}"
    return (
        f"CASE WHEN {text} >= {ends[0]} AND {text} <= {ends[1]} THEN {_rounded(text, node)}{less}"
        f" WHEN {text} < {ends[0]} THEN {_end(least, node)}"
        f" WHEN {text} > {ends[1]} THEN {_end(most, node)} END"
    )


def _rounded(text: str, node: Steps) -> str:
    """A value between the ends, in steps. Half a step is rounded up."""
    if node.whole:
        return f"CAST({text} AS DOUBLE)" if node.doubles else text
    steps = f"floor({text} * {double(Fraction(2) ** node.shift)} + 0.5e0)"
    return steps if node.doubles else f"CAST({steps} AS BIGINT)"


def _end(steps: int, node: Steps) -> str:
    return double(Fraction(steps)) if node.doubles else str(steps)


def _bin(node: Bin, scope: Scope) -> str:
    text = scope.often(node.value)
    if node.members is not None:
        whens = (f" WHEN {literal(m, node.kind)} THEN {i}" for i, m in enumerate(node.members))
        return f"CASE {text}{''.join(whens)} END"
    low, high = literal(node.low, node.kind), literal(node.high, node.kind)
    inside = f"CASE WHEN {text} >= {low} AND {text} <= {high} THEN {_within(text, node, low)}"
    if node.closed:
        return f"{inside} END"
    return f"{inside} WHEN {text} < {low} THEN 0 WHEN {text} > {high} THEN {node.count - 1} END"


def _within(text: str, node: Bin, low: str) -> str:
    """The number of the bin of a value between the ends."""
    if node.count == 1:
        return "0"
    if node.kind is Kind.DOUBLE:
        places = f"({text} - {low}) * {double(1 / node.width)}"
        return f"least({node.count - 1}, CAST(floor({places}) AS BIGINT))"
    first, width = int(node.origin), int(node.width)
    match node.kind:
        case Kind.DATE:
            day = literal((EPOCH + timedelta(days=first)).date(), Kind.DATE)
            steps = f"({text} - {day})"
        case Kind.TIMESTAMP:
            steps = f"(epoch_us({text}) - {first})"
        case _:
            whole = f"CAST({text} AS HUGEINT)" if node.wide else text
            steps = f"({whole} - {first})"
    return steps if width == 1 else f"{steps} // {width}"


def _bin_list(place: str, weight: str) -> str:
    """A list of bins with their weights.

    ``least`` only makes the cast total. If a bin were listed twice, cutting each weight by itself
    would break the claim of the histogram. But no weight is cut unless a bin has 2^42 rows, which
    is more than any engine holds.
    """
    pair = f"{{'b': CAST({place} AS BIGINT), 'n': CAST(least({weight}, {1 << 62}) AS BIGINT)}}"
    return f"list({pair}) FILTER (WHERE {place} IS NOT NULL AND {weight} IS NOT NULL)"
