"""Operators and functions whose meaning depends on types: ``+`` of dates, division, ``||``."""

from __future__ import annotations

from sqlglot import exp

from dpsql.ir.expressions import Call, Expression, Interval, Literal, Shape
from dpsql.ir.zones import zone_named
from dpsql.policy.types import INSTANT, Kind
from dpsql.sql import marks
from dpsql.sql.bind import literals
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import refuse
from dpsql.sql.own import own
from dpsql.sql.spans import span_of

_TRIMS = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def is_text_constant(value: Expression) -> bool:
    """Whether this is a quoted constant, which takes the type of the other operand."""
    return isinstance(value, Literal) and isinstance(value.value, str)


def align_types(args: tuple[Expression, ...], node: exp.Expr) -> tuple[Expression, ...]:
    """The arguments; text constants beside dates or numbers are read as these, as in PostgreSQL."""
    if any(a.shape.type_name == "uuid" for a in args) and isinstance(node, _COMPARING):
        return tuple(literals.fit_uuid(a, node) for a in args)
    others = [a.shape.kind for a in args if not is_text_constant(a)]
    target = next((k for k in others if k not in (Kind.TEXT, Kind.NULL, Kind.INTERVAL)), None)
    if target is None or not isinstance(node, _COMPARING):
        return args
    instant = any(a.shape.type_name == INSTANT for a in args)
    return tuple(literals.fit(a, target, node, instant=instant) for a in args)


_COMPARING = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.Coalesce, exp.Nullif, exp.Least, exp.Greatest, exp.Sub,
)  # fmt: skip


def add(self: Binder, node: exp.Expr) -> Expression:
    """``+`` and ``-`` of numbers, of a date and days, of a time and an interval, of two dates."""
    sign = "+" if isinstance(node, exp.Add) else "-"
    left, right = align_types((self.bind(node.this), self.bind(node.expression)), node)
    moves = isinstance(left, Interval) or left.shape.kind is Kind.INTEGER
    if sign == "+" and moves and right.shape.kind.temporal:
        left, right = right, left
    if isinstance(right, Interval):
        return kept_date(
            self, node, left, self.call("shift", (left, right), node, sign), right.unit
        )
    if left.shape.kind is Kind.DATE and right.shape.kind is Kind.INTEGER:
        return self.call("days", (left, right), node, sign)
    if left.shape.kind is Kind.DATE and right.shape.kind is Kind.DATE and sign == "-":
        if marks.has(node, marks.NO_DAYS):
            raise refuse(
                "DP201",
                node,
                "the difference of two dates is an interval in this dialect",
                "Intervals are not answered, but numbers of whole days are.",
                "DATE_DIFF(a, b, DAY)",
            )
        return self.call("days_between", (left, right), node)
    return self.call("add" if sign == "+" else "subtract", (left, right), node)


def kept_date(
    self: Binder, node: exp.Expr, before: Expression, after: Expression, unit: str
) -> Expression:
    """The result ``after``, cast to a date if ``before`` is one and the dialect keeps dates."""
    if marks.has(node, marks.KEEPS_DATE) and before.shape.kind is Kind.DATE and unit not in _TIMES:
        return self.call("cast", (after,), node, Kind.DATE.value)
    return after


_TIMES = ("second", "minute", "hour")


def divide(self: Binder, node: exp.Expr) -> Expression:
    """``/``: whole numbers have a whole quotient, unless the dialect says otherwise."""
    left, right = self.bind(node.this), self.bind(node.expression)
    whole = Kind.DOUBLE not in (left.shape.kind, right.shape.kind)
    if marks.has(node, marks.WHOLE_ONLY) and not whole:
        raise refuse(
            "DP201",
            node,
            "integer division takes whole numbers",
            "Dialects and engines round the result differently for numbers with a fraction.",
            "FLOOR(a / b), or TRUNC(a / b)",
        )
    if not marks.has(node, marks.SIX_DIGITS):
        return self.call("divide", (left, right), node)
    real = self.call("cast", (left,), node, Kind.DOUBLE.value)
    quotient = self.call("divide", (real, right), node)
    return self.call("round", (quotient, literals.literal(6, node)), node) if whole else quotient


def pipe(self: Binder, node: exp.Expr) -> Expression:
    """``a || b``: NULL when a part is."""
    parts = self.bind(node.this), self.bind(node.expression)
    for item in parts:
        check_written(item, node)
    return self.call("concat", parts, node)


def interval_end(self: Binder, node: exp.Expr) -> Expression:
    """``DP_INTERVAL_LOW(n)``: an end of the interval around a noised number."""
    value = self.bind(node.expressions[0])
    if not value.shape.kind.numeric:
        raise refuse(
            "DP201",
            node,
            f"an interval needs a number, not {value.shape.kind.value}",
            "Noise is added to numbers.",
            "Name a noised number of the same SELECT: COUNT(*) AS n, DP_INTERVAL_LOW(n).",
        )
    return Call(own(node), (value,), Shape(Kind.DOUBLE), span=span_of(node))


def check_written(value: Expression, node: exp.Expr) -> None:
    """Refuse to convert a value to text if the dialect writes it in another form."""
    kinds = {Kind.TIMESTAMP: marks.NO_TIMES, Kind.DOUBLE: marks.NO_DOUBLES}
    if marks.has(node, kinds.get(value.shape.kind, "")):
        raise refuse(
            "DP201",
            node,
            f"this dialect writes {value.shape.kind.value} as text in another form",
            "The text would differ from what this dialect gives.",
            "Format it with TO_CHAR, FORMAT_TIMESTAMP or strftime, or round it to a whole number.",
        )


def trim(self: Binder, node: exp.Expr) -> Expression:
    """TRIM, LTRIM and RTRIM of spaces, or of the given characters."""
    named = node.args.get("expression")
    characters = named.name if isinstance(named, exp.Literal) and named.is_string else ""
    if named is not None and not 0 < len(characters) <= MOST_TRIMMED:
        raise refuse(
            "DP114",
            node,
            "the characters that TRIM removes must be a literal",
            f"They must be known before data is read. There may be 1 to {MOST_TRIMMED} of them.",
            "TRIM(BOTH '- ' FROM city)",
        )
    name = _TRIMS.get(_side(node))
    if name is None:
        raise refuse(
            "DP201",
            node,
            "TRIM takes a text and the characters to remove",
            "The side is given by a word: LEADING, TRAILING or BOTH.",
            "TRIM(BOTH '- ' FROM city)",
        )
    return self.call(name, (self.bind(node.this),), node, characters)


def _side(node: exp.Expr) -> str | None:
    """The side of a TRIM, if one is given. A third argument of a call is not a side."""
    side = node.args.get("position")
    return side.sql() if isinstance(side, exp.Expr) else side


MOST_TRIMMED = 100


def concat(self: Binder, node: exp.Expr) -> Expression:
    """CONCAT ignores NULL, unlike ``||``."""
    empty = literals.literal("", node)
    parts = []
    for item in node.expressions:
        value = self.bind(item)
        check_written(value, node)
        text = self.call("cast", (value,), node, Kind.TEXT.value)
        parts.append(self.call("coalesce", (text, empty), node))
    return self.call("concat", tuple(parts), node)


def date_trunc(self: Binder, node: exp.Expr) -> Expression:
    """``DATE_TRUNC('month', a)``; with a zone, the instant at which the month begins there."""
    zone, value, unit = node.args.get("zone"), self.bind(node.this), word(node.args.get("unit"))
    if zone is not None:
        name = zone_named(str(zone.this)) if isinstance(zone, exp.Literal) else None
        if name is None or value.shape.type_name != INSTANT:
            raise refuse(
                "DP201", node, "DATE_TRUNC with a zone takes a timestamptz and a literal name of a zone",
                "A zone says in which local time an instant is read, and a timestamp is not an "
                "instant.",
                "DATE_TRUNC('month', CAST(a AS timestamptz), 'Europe/Berlin')",
            )  # fmt: skip
        local = self.call("to_zone", (value,), node, name)
        return self.call("from_zone", (self.call("date_trunc", (local,), node, unit),), node, name)
    return kept_date(self, node, value, self.call("date_trunc", (value,), node, unit), unit)


def word(node: object) -> str:
    """The word of a part or a unit, in lower case."""
    return str(node.this).lower() if isinstance(node, exp.Var | exp.Literal) else ""
