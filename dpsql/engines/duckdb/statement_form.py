"""The form of a statement: what its check depends on. Statements of one form are checked once.

A dashboard asks the same with another constant each time. Where values are only compared with a constant,
the second check cannot tell one constant from another, so the form has a number in its place: the first
such constant of the statement is 0, another one 1, and so on.

Claim: of two statements of one form the second check lets both through, or neither.
Assumes: a comparison is a truth value to the check, whatever constant is on its right, if that is a text;
    and so is an equality, if it is a whole number of at most 15 digits (``guard.terms``: both sides are of
    like kinds, and only ``<``, ``<=``, ``>`` and ``>=`` put numbers between ends).
Argument: the check reads what the writer writes. Two statements of one form are written alike but for such
    constants, as the writer goes by kinds and by which parts are equal. Equal constants have equal
    numbers and others have others, so that the same parts are equal in a statement and in its form.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dpsql.ir.expressions import Call, Expression, Literal, substitute
from dpsql.ir.public_groups import Combinations, PublicGroups, RowList, ValueList
from dpsql.ir.relations import Relation, inputs, with_expressions, with_inputs
from dpsql.ir.statements import (
    Alias,
    Bin,
    CaseWhen,
    Cast,
    CommonTable,
    EveryGroup,
    From,
    Items,
    JoinKeys,
    JoinPath,
    JoinUsing,
    KeyValue,
    Op,
    Query,
    Read,
    RowValue,
    Select,
    Steps,
    Term,
    UnionAll,
)
from dpsql.policy.types import Kind

COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])
LARGEST = 10**15
"""Whole numbers below are of one type of the engine, or of two that are alike."""


def form_of(query: Query) -> Query:
    """The statement with numbers for the constants that values are only compared with; itself without any."""
    form = _Form()
    made = form.query(query)
    return made if form.known else query


@dataclass(slots=True)
class _Form:
    """A form in the making, and the numbers of the constants that were met."""

    known: dict[tuple[type, object], int] = field(default_factory=dict)
    shared: dict[str, CommonTable] = field(default_factory=dict)

    def query(self, query: Query) -> Query:
        match query:
            case Read(relation=relation, items=items):
                return Read(self.relation(relation), self.items(items))
            case PublicGroups():
                return self.groups(query)
            case EveryGroup(groups=groups, sums=sums):
                return replace(query, groups=self.groups(groups), sums=self.query(sums))
            case CommonTable(name=name, query=inner):
                if name not in self.shared:  # a name stands for one query
                    self.shared[name] = replace(query, query=self.query(inner))
                return self.shared[name]
            case Select(source=source):
                return replace(query, source=self.source(source))
            case UnionAll(queries=queries):
                return UnionAll(tuple(map(self.query, queries)))

    def groups(self, groups: PublicGroups) -> PublicGroups:
        return replace(groups, parts=tuple(map(self.combinations, groups.parts)))

    def combinations(self, part: Combinations) -> Combinations:
        return Combinations(
            tuple(map(self.rows, part.lists)),
            tuple((place, self.expression(key)) for place, key in part.keys),
            tuple(map(self.expression, part.conditions)),
            part.distinct,
        )

    def rows(self, rows: ValueList | RowList) -> ValueList | RowList:
        """Listed constants are as they are."""
        match rows:
            case RowList(relation=relation):
                return replace(rows, relation=self.relation(relation))
            case ValueList():
                return rows

    def source(self, source: From) -> From:
        match source:
            case Alias():
                return self.alias(source)
            case JoinUsing(left=left, right=right):
                return replace(source, left=self.source(left), right=self.alias(right))
            case JoinKeys(left=left, right=right):
                return replace(source, left=self.source(left), right=self.alias(right))
            case JoinPath(rows=rows):
                return replace(source, rows=self.alias(rows))

    def alias(self, source: Alias) -> Alias:
        return replace(source, query=self.query(source.query))

    def items(self, items: Items) -> Items:
        return tuple((name, self.term(term)) for name, term in items)

    def term(self, term: Term) -> Term:
        """The same of what is computed of a row; other terms have no constants of a query."""
        match term:
            case RowValue(expression=expression):
                return RowValue(self.expression(expression))
            case KeyValue(expression=expression):
                return KeyValue(self.expression(expression))
            case Steps(value=value):
                return replace(term, value=self.expression(value))
            case Bin(value=value):
                return replace(term, value=self.expression(value))
            case Op(args=args):
                return replace(term, args=tuple(map(self.term, args)))
            case Cast(value=inner):
                return replace(term, value=self.term(inner))
            case CaseWhen(whens=whens, otherwise=otherwise):
                pairs = tuple((self.term(when), self.term(then)) for when, then in whens)
                return CaseWhen(pairs, None if otherwise is None else self.term(otherwise))
            case _:
                return term

    def relation(self, relation: Relation) -> Relation:
        below = tuple(map(self.relation, inputs(relation)))
        return with_expressions(with_inputs(relation, below), self.expression)

    def expression(self, expression: Expression) -> Expression:
        return substitute(expression, self._swap)

    def _swap(self, node: Expression) -> Expression | None:
        """A comparison with a number for its constant; None where it is no such comparison."""
        match node:
            case Call(function=name, args=(left, Literal() as right)) if name in COMPARISONS:
                kind = _kind_left_out(name, right)
                if kind is None:
                    return None
                number = self.known.setdefault((kind, right.value), len(self.known))
                value = number if kind is int else str(number)
                return replace(node, args=(self.expression(left), replace(right, value=value)))
            case _:
                return None


def _kind_left_out(comparison: str, constant: Literal) -> type | None:
    """The kind of a constant on which the check of a comparison does not depend."""
    value, kind = constant.value, constant.shape.kind
    if type(value) is str and kind is Kind.TEXT and "\0" not in value:
        return str
    if comparison == "eq" and type(value) is int and kind is Kind.INTEGER and 0 <= value < LARGEST:
        return int
    return None
