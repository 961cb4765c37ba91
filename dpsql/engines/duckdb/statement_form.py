"""The form of a statement, on which its check depends. Statements of one form are checked once.

A dashboard asks the same query with another constant each time. If values are only compared with a
constant, the second check does not depend on the constant. So the form has a number in its place: 0
for the first such constant of the statement, 1 for the next different one, and so on.

Claim: of two statements of one form, both pass the second check or neither does.
Assumes: to the check, a comparison with a text on its right is a truth value, whatever the text is.
    So is an equality with a whole number of at most 15 digits (``guard.terms``: both sides are of
    like kinds, and only ``<``, ``<=``, ``>`` and ``>=`` put numbers between ends).
Argument: the check reads the text of the writer. Two statements of one form have the same text but
    for such constants, since the writer depends on kinds and on which parts are equal. Equal
    constants have equal numbers and different ones have different numbers, so that the same parts
    are equal in a statement and in its form.
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
"""Whole numbers below this have one type of the engine, or two that the check treats alike."""


def form_of(query: Query) -> Query:
    """The statement with numbers for constants that values are only compared with.

    A statement without such constants is its own form.
    """
    form = _Form()
    made = form.query(query)
    return made if form.known else query


@dataclass(slots=True)
class _Form:
    """Makes a form. ``known`` has the numbers of the constants so far."""

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
        """The form of a list. Listed constants are kept."""
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
        """The form of a term over a row. Other terms have no constants of a query."""
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
        """A comparison with a number for its constant; None if it is no such comparison."""
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
    """The type of a constant that the check does not depend on; None if the check depends on it."""
    value, kind = constant.value, constant.shape.kind
    if type(value) is str and kind is Kind.TEXT and "\0" not in value:
        return str
    if comparison == "eq" and type(value) is int and kind is Kind.INTEGER and 0 <= value < LARGEST:
        return int
    return None
