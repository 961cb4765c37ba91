"""Numbers. Whole-number arithmetic is PostgreSQL's: ``7 / 2`` is 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from dpsql.catalog.function import (
    Function,
    FunctionNode,
    FunctionRecord,
    Mismatch,
    any_nullable,
    common_kind,
    constant,
    expect,
    expect_kind,
    typed,
)
from dpsql.catalog.record import EVERY_DIALECT
from dpsql.policy.types import Kind
from dpsql.sql.domain import Domain, interval, nearest, numbers, whole_numbers
from dpsql.sql.expressions import Expression, Literal, Shape

NUMERIC = (Kind.INTEGER, Kind.DOUBLE)
Ends = tuple[Fraction | None, Fraction | None]

# Why the ends of double results hold exactly: an engine's ``+ - * /``, ``sqrt`` and casts give the
# double nearest to the true result, and "nearest" never swaps two numbers. So whatever rises or
# falls between the ends of its arguments stays between the nearest doubles of its own ends.
# A double that is open above may be NaN, which engines order above everything; so a result of it is, too.


def _domain(kind: Kind, ends: Ends, *, integral: bool = False) -> Domain:
    low, high = ends
    if kind is not Kind.INTEGER:
        return interval(*nearest((low, high)), integral=integral)
    return whole_numbers(low, high)


def ends_as(argument: Expression, kind: Kind) -> Ends:
    """The ends of an argument once the engine has it as a number of ``kind``."""
    ends = numbers(argument.shape.domain)
    return nearest(ends) if Kind.DOUBLE in (kind, argument.shape.kind) else ends


def _may_be_nan(args: tuple[Expression, ...]) -> bool:
    return any(a.shape.kind is Kind.DOUBLE and numbers(a.shape.domain)[1] is None for a in args)


def _numeric(args: tuple[Expression, ...], count: int, what: str) -> Kind:
    expect(args, count, what)
    for a in args:
        expect_kind(a, NUMERIC, what)
    return common_kind(args, what)


def _binary(name: str, symbol: str, ends: Callable[[Ends, Ends], Ends], about: str) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        kind = _numeric(args, 2, symbol)
        low, high = ends(ends_as(args[0], kind), ends_as(args[1], kind))
        if _may_be_nan(args):
            high = None
        # Whole-number results may leave 64 bits: the engine then answers NULL.
        may_overflow = kind is Kind.INTEGER and not _small((low, high))
        return Shape(kind, may_overflow or any_nullable(args), _domain(kind, (low, high)))

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        if common_kind(args, symbol) is Kind.INTEGER:
            return f"TRY({f' {symbol} '.join(_whole(texts, args))})"
        return f"({as_double(texts[0], args[0])} {symbol} {as_double(texts[1], args[1])})"

    return Function(name, shape, write, about)


def as_double(text: str, argument: Expression) -> str:
    """The text of an argument as a double."""
    if argument.shape.kind is Kind.DOUBLE:
        return text
    return f"CAST({text} AS DOUBLE)"


def _whole(texts: Sequence[str], args: tuple[Expression, ...]) -> list[str]:
    """Two operands of which at least one has 64 bits, so that the operation has; NULL has a type."""
    narrow = args[0] if all(isinstance(a, Literal) for a in args) else None
    wide = [a is narrow or a.shape.kind is Kind.NULL for a in args]
    cast = [typed(t, a, Kind.INTEGER) for t, a in zip(texts, args, strict=True)]
    return [c if w else t for t, c, w in zip(texts, cast, wide, strict=True)]


def _small(ends: Ends) -> bool:
    return all(e is not None and abs(e) < 2**62 for e in ends)


def _plus(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else a + b


def _minus(a: Ends) -> Ends:
    return (None if a[1] is None else -a[1], None if a[0] is None else -a[0])


def _add(a: Ends, b: Ends) -> Ends:
    return _plus(a[0], b[0]), _plus(a[1], b[1])


def _subtract(a: Ends, b: Ends) -> Ends:
    return _add(a, _minus(b))


def _multiply(a: Ends, b: Ends) -> Ends:
    return _corners(a, b, lambda x, y: x * y)


def _corners(a: Ends, b: Ends, f: Callable[[Fraction, Fraction], Fraction]) -> Ends:
    """The extremes of what rises or falls in each argument: they are at the corners."""
    known = [f(x, y) for x in a for y in b if x is not None and y is not None]
    return (min(known), max(known)) if len(known) == 4 else (None, None)


def _divide_shape(args: tuple[Expression, ...], _: str) -> Shape:
    kind = _numeric(args, 2, "/")
    top, bottom = ends_as(args[0], kind), ends_as(args[1], kind)
    nonzero = _away_from_zero(bottom)
    ends: Ends = (None, None)
    if nonzero:
        ends = _corners(top, bottom, lambda x, y: x / y)
    elif kind is Kind.INTEGER:
        ends = _reach(top)
    if kind is Kind.INTEGER:
        ends = _trunc(ends)
    nullable = any_nullable(args) or not nonzero or _may_leave(kind, top, bottom)
    return Shape(kind, nullable, _domain(kind, ends))


def _away_from_zero(ends: Ends) -> bool:
    low, high = ends
    return low is not None and high is not None and (low > 0 or high < 0)


def _reach(a: Ends) -> Ends:
    """As far as the argument reaches, both ways."""
    if a[0] is None or a[1] is None:
        return None, None
    reach = max(abs(a[0]), abs(a[1]))
    return -reach, reach


def _may_leave(kind: Kind, top: Ends, bottom: Ends) -> bool:
    """Whether the one quotient that leaves 64 bits, the least number by -1, is possible."""
    if kind is not Kind.INTEGER or (top[0] is not None and top[0] > -(2**63)):
        return False
    return not (_away_from_zero(bottom) and bottom[0] is not None and bottom[0] > -1)


def _divide(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    if common_kind(args, "/") is Kind.INTEGER:
        top, bottom = _whole(texts, args)
        return f"TRY({top} // nullif({bottom}, 0))"
    top, bottom = as_double(texts[0], args[0]), as_double(texts[1], args[1])
    if (
        isinstance(args[1], Literal)
        and args[1].value
        and _away_from_zero(ends_as(args[1], Kind.DOUBLE))
    ):
        return f"({top} / {bottom})"
    return f"({top} / nullif({bottom}, 0))"


def _modulo_shape(args: tuple[Expression, ...], _: str) -> Shape:
    """The remainder has the sign of ``a``, and is nearer to zero than ``b``, and not farther than ``a``."""
    kind = _numeric(args, 2, "%")
    top, bottom = ends_as(args[0], kind), ends_as(args[1], kind)
    within = [r for r in (_reach(top)[1], _reach(bottom)[1]) if r is not None]
    if kind is Kind.INTEGER and _reach(bottom)[1] is not None:
        within[-1] = max(Fraction(0), within[-1] - 1)
    high = min(within, default=None)
    low = None if high is None else -high
    if top[0] is not None and top[0] >= 0:
        low = Fraction(0)
    if top[1] is not None and top[1] <= 0:
        high = Fraction(0)
    if kind is Kind.DOUBLE and (None in top or _may_be_nan(args)):
        high = None  # the remainder of an infinite number is NaN
    nullable = any_nullable(args) or not _away_from_zero(bottom) or _may_leave(kind, top, bottom)
    return Shape(kind, nullable, _domain(kind, (low, high)))


def _modulo(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    if common_kind(args, "%") is Kind.INTEGER:
        top, bottom = _whole(texts, args)
        return f"TRY({top} % nullif({bottom}, 0))"
    return f"({as_double(texts[0], args[0])} % nullif({as_double(texts[1], args[1])}, 0))"


def _signed(name: str, template: str, ends: Callable[[Ends], Ends], about: str) -> Function:
    """A function that keeps the kind; the least whole number has no counterpart above."""

    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        kind = _numeric(args, 1, name)
        before = ends_as(args[0], kind)
        low, high = ends(before)
        if _may_be_nan(args):
            high = None
        leaves = kind is Kind.INTEGER and (before[0] is None or before[0] <= -(2**63))
        return Shape(kind, any_nullable(args) or leaves, _domain(kind, (low, high)))

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        return template.format(typed(texts[0], args[0], args[0].shape.kind))

    return Function(name, shape, write, about)


def _abs(a: Ends) -> Ends:
    low, high = a
    if low is None or high is None:
        return Fraction(0), None
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def _stepped(name: str, whole: Callable[[Fraction], int], about: str) -> Function:
    """A rising function to whole values; whole arguments it leaves alone."""

    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        kind = _numeric(args, 1, name)
        ends = _mapped(ends_as(args[0], kind), lambda e: Fraction(whole(e)))
        return Shape(kind, any_nullable(args), _domain(kind, ends, integral=True))

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        if args[0].shape.kind is Kind.DOUBLE:
            return f"{name}({texts[0]})"
        return typed(texts[0], args[0], Kind.INTEGER)

    return Function(name, shape, write, about)


def _mapped(a: Ends, f: Callable[[Fraction], Fraction]) -> Ends:
    return (None if a[0] is None else f(a[0]), None if a[1] is None else f(a[1]))


def _trunc(a: Ends) -> Ends:
    return _mapped(a, lambda e: Fraction(math.trunc(e)))


def _sign_shape(args: tuple[Expression, ...], _: str) -> Shape:
    _numeric(args, 1, "sign")
    return Shape(Kind.INTEGER, any_nullable(args), interval(-1, 1, integral=True))


def _curve(
    name: str, template: str, ends: Callable[[Ends], Ends], about: str, *, nullable: bool
) -> Function:
    """A rising function of a double; the argument stands once in the text, however long it is."""

    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        _numeric(args, 1, name)
        domain = _domain(Kind.DOUBLE, ends(ends_as(args[0], Kind.DOUBLE)))
        return Shape(Kind.DOUBLE, nullable or any_nullable(args), domain)

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        return template.format(as_double(texts[0], args[0]))

    return Function(name, shape, write, about)


def _sqrt(a: Ends) -> Ends:
    low, high = a
    first = Fraction(0) if low is None or low <= 0 else Fraction(math.sqrt(low))
    return first, None if high is None else Fraction(math.sqrt(max(high, Fraction(0))))


def _exp(a: Ends) -> Ends:
    low, high = a
    first = Fraction(0) if low is None or low > 700 else _widen(math.exp(low), down=True)
    last = None if high is None or high > 700 else _widen(math.exp(high), down=False)
    return max(first, Fraction(0)), last


def _cbrt(a: Ends) -> Ends:
    low, high = a
    first = None if low is None else _widen(math.cbrt(low), down=True)
    return first, None if high is None else _widen(math.cbrt(high), down=False)


def _logarithm(f: Callable[[float], float]) -> Callable[[Ends], Ends]:
    def ends(a: Ends) -> Ends:
        low, high = a
        first = None if low is None or low <= 0 else _widen(f(float(low)), down=True)
        last = None if high is None or high <= 0 else _widen(f(float(high)), down=False)
        return first, last

    return ends


def _widen(value: float, *, down: bool) -> Fraction:
    """The value moved by more than the rounding of any engine's ``exp``, ``ln`` and ``pow``."""
    slack = Fraction(abs(value)) / 2**40 + Fraction(1, 2**60)
    return Fraction(value) - slack if down else Fraction(value) + slack


def _digits(args: tuple[Expression, ...]) -> int:
    if len(args) == 1:
        return 0
    value = constant(args[1], "the number of digits of round").value
    if isinstance(value, bool) or not isinstance(value, int) or not -15 <= value <= 15:
        raise Mismatch("round takes a literal number of digits from -15 to 15")
    return value


def _round_shape(args: tuple[Expression, ...], _: str) -> Shape:
    """Halves go away from zero, as PostgreSQL rounds ``numeric``."""
    expect(args, range(1, 3), "round")
    kind = _numeric(args[:1], 1, "round")
    digits = _digits(args)
    before = ends_as(args[0], kind)
    if kind is Kind.INTEGER and digits >= 0:
        return Shape(kind, any_nullable(args), _domain(kind, before))
    step = Fraction(10) ** -digits
    low, high = before
    ends: Ends = (
        None if low is None else math.floor(low / step) * step,
        None if high is None else math.ceil(high / step) * step,
    )
    leaves = kind is Kind.INTEGER and not _small(ends)
    return Shape(kind, any_nullable(args) or leaves, _domain(kind, ends, integral=digits <= 0))


def _round(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    digits = _digits(args)
    if args[0].shape.kind is Kind.DOUBLE:
        return f"round({texts[0]}, {digits})"
    whole = typed(texts[0], args[0], Kind.INTEGER)
    return whole if digits >= 0 else f"TRY(round({whole}, {digits}))"


def _power_shape(args: tuple[Expression, ...], _: str) -> Shape:
    _numeric(args, 2, "power")
    exponent = constant(args[1], "the exponent of power").value
    low, high = ends_as(args[0], Kind.DOUBLE)
    ends: Ends = (None, None)
    if isinstance(exponent, int) and 0 <= exponent <= 16 and low is not None and high is not None:
        powers = [low**exponent, high**exponent]
        least = Fraction(0) if exponent and exponent % 2 == 0 and low <= 0 <= high else min(powers)
        ends = _outside(least, down=True), _outside(max(powers), down=False)
    return Shape(Kind.DOUBLE, any_nullable(args), _domain(Kind.DOUBLE, ends))


def _outside(value: Fraction, *, down: bool) -> Fraction | None:
    """An end of a power: engines are exact where a double is, and nearly so elsewhere."""
    near = nearest((value, None))[0]
    return near if near is None or near == value else _widen(float(near), down=down)


def _power(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    return f"pow({as_double(texts[0], args[0])}, {as_double(texts[1], args[1])})"


RECORDS = (
    FunctionRecord(
        function=_binary("add", "+", _add, "`a + b`"),
        nodes=(FunctionNode("Add", ("this", "expression"), None, ("duckdb", "bigquery")),),
        strict=True,
        examples=("x + 1",),
    ),
    FunctionRecord(
        function=_binary("subtract", "-", _subtract, "`a - b`"),
        nodes=(FunctionNode("Sub", ("this", "expression"), None, ("duckdb",)),),
        strict=True,
        examples=("x - 1",),
    ),
    FunctionRecord(
        function=_binary("multiply", "*", _multiply, "`a * b`"),
        nodes=(FunctionNode("Mul", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("x * 2",),
    ),
    FunctionRecord(
        function=Function(
            "divide", _divide_shape, _divide, "`a / b`: NULL when b is 0; whole for whole numbers"
        ),
        nodes=(FunctionNode("Div", ("this", "expression", "typed", "safe"), None, ()),),
        strict=True,
        examples=("x / y",),
    ),
    FunctionRecord(
        function=Function(
            "modulo", _modulo_shape, _modulo, "`a % b`, `MOD(a, b)`: NULL when b is 0"
        ),
        nodes=(FunctionNode("Mod", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=True,
        examples=("n % 2",),
    ),
    FunctionRecord(
        function=_signed("negate", "TRY(- {0})", _minus, "`-a`"),
        nodes=(FunctionNode("Neg", ("this",), None, EVERY_DIALECT),),
        strict=True,
        examples=("-x",),
    ),
    FunctionRecord(
        function=_signed("abs", "TRY(abs({0}))", _abs, "`ABS(a)`"),
        nodes=(FunctionNode("Abs", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("ABS(x)",),
    ),
    FunctionRecord(
        function=_stepped("floor", math.floor, "`FLOOR(a)`"),
        nodes=(FunctionNode("Floor", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("FLOOR(x)",),
    ),
    FunctionRecord(
        function=_stepped("ceil", math.ceil, "`CEIL(a)`"),
        nodes=(FunctionNode("Ceil", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("CEIL(x)",),
    ),
    FunctionRecord(
        function=_stepped("trunc", math.trunc, "`TRUNC(a)`"),
        nodes=(FunctionNode("Trunc", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("TRUNC(x)",),
    ),
    FunctionRecord(
        function=Function(
            "sign",
            _sign_shape,
            lambda t, a, _: f"CAST(sign({as_double(t[0], a[0])}) AS BIGINT)",
            "`SIGN(a)`",
        ),
        nodes=(FunctionNode("Sign", ("this",), ("this",), EVERY_DIALECT),),
        strict=False,
        examples=("SIGN(x)",),
    ),
    FunctionRecord(
        function=_curve(  # below 0 there is nothing, and the greatest double below 0 stands for all of that
            "sqrt",
            "TRY(sqrt(nullif(greatest({0}, -5e-324), -5e-324)))",
            _sqrt,
            "`SQRT(a)`: NULL below 0",
            nullable=True,
        ),
        nodes=(FunctionNode("Sqrt", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("SQRT(y)",),
    ),
    FunctionRecord(
        function=_curve("cbrt", "cbrt({0})", _cbrt, "`CBRT(a)`", nullable=False),
        nodes=(FunctionNode("Cbrt", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("CBRT(x)",),
    ),
    FunctionRecord(
        function=_curve("exp", "exp({0})", _exp, "`EXP(a)`", nullable=False),
        nodes=(FunctionNode("Exp", ("this",), ("this",), EVERY_DIALECT),),
        strict=False,
        examples=("EXP(x)",),
    ),
    FunctionRecord(
        function=_curve(
            "ln",
            "ln(nullif(greatest({0}, 0), 0))",
            _logarithm(math.log),
            "`LN(a)`: NULL at and below 0",
            nullable=True,
        ),
        nodes=(FunctionNode("Ln", ("this",), ("this",), EVERY_DIALECT),),
        strict=False,
        examples=("LN(y)",),
    ),
    FunctionRecord(
        function=_curve(
            "log10",
            "log10(nullif(greatest({0}, 0), 0))",
            _logarithm(math.log10),
            "`LOG(a)`, `LOG10(a)`: NULL at and below 0",
            nullable=True,
        ),
        nodes=(FunctionNode("Log", ("this",), ("this",), ()),),
        strict=False,
        examples=("LOG(y)",),
    ),
    FunctionRecord(
        function=Function("round", _round_shape, _round, "`ROUND(a)`, `ROUND(a, 2)`"),
        nodes=(
            FunctionNode(
                "Round", ("this", "decimals"), ("this", "decimals"), ("duckdb", "bigquery")
            ),
        ),
        strict=True,
        examples=("ROUND(x)",),
    ),
    FunctionRecord(
        function=Function("power", _power_shape, _power, "`POWER(a, 2)`: a literal exponent"),
        nodes=(FunctionNode("Pow", ("this", "expression"), ("this", "expression"), EVERY_DIALECT),),
        strict=False,
        examples=("POWER(x, 2)",),
    ),
)
