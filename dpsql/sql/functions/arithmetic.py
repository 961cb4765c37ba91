"""Numbers. Whole-number arithmetic is PostgreSQL's: ``7 / 2`` is 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from dpsql.exact import float_down, float_up
from dpsql.policy.types import Kind
from dpsql.sql.domain import ANYTHING, Domain, interval, numbers
from dpsql.sql.expressions import Expression, Literal, Shape
from dpsql.sql.functions.function import (
    Function,
    Mismatch,
    any_nullable,
    common_kind,
    constant,
    expect,
    expect_kind,
)

NUMERIC = (Kind.INTEGER, Kind.DOUBLE)
Ends = tuple[Fraction | None, Fraction | None]


def _domain(kind: Kind, ends: Ends, *, integral: bool = False) -> Domain:
    whole = kind is Kind.INTEGER or integral
    low, high = ends
    if whole:
        return interval(
            None if low is None else math.floor(low),
            None if high is None else math.ceil(high),
            integral=True,
        )
    return interval(low, high)


def _binary(
    name: str,
    symbol: str,
    ends: Callable[[Ends, Ends], Ends],
    about: str,
    *,
    nullable: bool = False,
) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        expect(args, 2, symbol)
        for a in args:
            expect_kind(a, NUMERIC, symbol)
        kind = common_kind(args, symbol)
        low_high = ends(numbers(args[0].shape.domain), numbers(args[1].shape.domain))
        # Whole-number results may leave 64 bits: the engine then answers NULL.
        may_overflow = kind is Kind.INTEGER and not _small(low_high)
        return Shape(kind, nullable or may_overflow or any_nullable(args), _domain(kind, low_high))

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        if common_kind(args, symbol) is Kind.INTEGER:
            first = f"{texts[0]}::BIGINT" if _literals(args) else texts[0]
            return f"TRY({first} {symbol} {texts[1]})"
        return f"({as_double(texts[0], args[0])} {symbol} {as_double(texts[1], args[1])})"

    return Function(name, shape, write, about)


def as_double(text: str, argument: Expression) -> str:
    """The text of an argument as a double."""
    if argument.shape.kind is Kind.DOUBLE:
        return text
    return f"CAST({text} AS DOUBLE)"


def _literals(args: tuple[Expression, ...]) -> bool:
    return all(isinstance(a, Literal) for a in args)


def _small(ends: Ends) -> bool:
    return all(e is not None and abs(e) < 2**62 for e in ends)


def _plus(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else a + b


def _add(a: Ends, b: Ends) -> Ends:
    return _plus(a[0], b[0]), _plus(a[1], b[1])


def _subtract(a: Ends, b: Ends) -> Ends:
    return _add(a, (None if b[1] is None else -b[1], None if b[0] is None else -b[0]))


def _multiply(a: Ends, b: Ends) -> Ends:
    if None in a or None in b:
        return None, None
    products = [x * y for x in a for y in b if x is not None and y is not None]
    return min(products), max(products)


def _divide_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 2, "/")
    for a in args:
        expect_kind(a, NUMERIC, "/")
    kind = common_kind(args, "/")
    top, bottom = numbers(args[0].shape.domain), numbers(args[1].shape.domain)
    nonzero = _away_from_zero(bottom)
    domain = ANYTHING
    if nonzero and None not in top:
        quotients = [x / y for x in top for y in bottom if x is not None and y is not None]
        ends: Ends = (min(quotients), max(quotients))
        if kind is Kind.INTEGER:
            ends = Fraction(math.trunc(min(quotients))), Fraction(math.trunc(max(quotients)))
        domain = _domain(kind, ends)
    return Shape(kind, any_nullable(args) or not nonzero, domain)


def _away_from_zero(ends: Ends) -> bool:
    low, high = ends
    return low is not None and high is not None and (low > 0 or high < 0)


def _divide(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    if common_kind(args, "/") is Kind.INTEGER:
        return f"TRY({texts[0]} // nullif({texts[1]}, 0))"
    top, bottom = as_double(texts[0], args[0]), as_double(texts[1], args[1])
    if isinstance(args[1], Literal) and args[1].value:
        return f"({top} / {bottom})"
    return f"({top} / nullif({bottom}, 0))"


def _modulo_ends(_: Ends, b: Ends) -> Ends:
    if b[0] is None or b[1] is None:
        return None, None
    reach = max(abs(b[0]), abs(b[1]))
    return -reach, reach


def _modulo_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 2, "%")
    for a in args:
        expect_kind(a, NUMERIC, "%")
    kind = common_kind(args, "%")
    top, bottom = numbers(args[0].shape.domain), numbers(args[1].shape.domain)
    low, high = _modulo_ends(top, bottom)
    if kind is Kind.INTEGER and low is not None and high is not None:
        low, high = low + 1, high - 1
    if top[0] is not None and top[0] >= 0 and low is not None:
        low = Fraction(0)
    return Shape(
        kind, any_nullable(args) or not _away_from_zero(bottom), _domain(kind, (low, high))
    )


def _modulo(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    if common_kind(args, "%") is Kind.INTEGER:
        return f"TRY({texts[0]} % nullif({texts[1]}, 0))"
    return f"({as_double(texts[0], args[0])} % nullif({as_double(texts[1], args[1])}, 0))"


def _unary(
    name: str,
    template: str,
    ends: Callable[[Ends], Ends],
    about: str,
    *,
    kind: Kind | None = None,
    integral: bool = False,
    nullable: bool = False,
) -> Function:
    """``kind`` None keeps the argument's; doubles are converted first where ``kind`` is given."""

    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        expect(args, 1, name)
        expect_kind(args[0], NUMERIC, name)
        result = kind or args[0].shape.kind
        domain = _domain(result, ends(numbers(args[0].shape.domain)), integral=integral)
        return Shape(result, nullable or any_nullable(args), domain)

    def write(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
        text = as_double(texts[0], args[0]) if kind is Kind.DOUBLE else texts[0]
        return template.format(text)

    return Function(name, shape, write, about)


def _negate(a: Ends) -> Ends:
    return _subtract((Fraction(0), Fraction(0)), a)


def _abs(a: Ends) -> Ends:
    low, high = a
    if low is None or high is None:
        return Fraction(0), None
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def _floor(a: Ends) -> Ends:
    return tuple(None if e is None else Fraction(math.floor(e)) for e in a)  # type: ignore[return-value]


def _ceil(a: Ends) -> Ends:
    return tuple(None if e is None else Fraction(math.ceil(e)) for e in a)  # type: ignore[return-value]


def _through(
    f: Callable[[float], float], domain: Callable[[Fraction], bool]
) -> Callable[[Ends], Ends]:
    """The ends of a rising function, widened by more than its rounding."""

    def ends(a: Ends) -> Ends:
        low = high = None
        if a[0] is not None and domain(a[0]):
            low = _widen(f(float_down(a[0])), down=True)
        if a[1] is not None and domain(a[1]):
            high = _widen(f(float_up(a[1])), down=False)
        return low, high

    return ends


def _widen(value: float, *, down: bool) -> Fraction | None:
    if not math.isfinite(value):
        return None
    slack = Fraction(abs(value)) / 2**40 + Fraction(1, 2**60)
    return Fraction(value) - slack if down else Fraction(value) + slack


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _sqrt_ends(a: Ends) -> Ends:
    _, high = _through(lambda x: math.sqrt(max(x, 0.0)), lambda x: x >= 0)(a)
    return Fraction(0), high


def _positive(x: Fraction) -> bool:
    return x > Fraction(1, 2**1000)


def _round_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, range(1, 3), "round")
    expect_kind(args[0], NUMERIC, "round")
    digits = 0
    if len(args) == 2:
        value = constant(args[1], "the number of digits of round").value
        if not isinstance(value, int) or not -15 <= value <= 15:
            raise Mismatch("round takes a literal number of digits from -15 to 15")
        digits = value
    low, high = numbers(args[0].shape.domain)
    step = Fraction(10) ** -digits
    ends: Ends = (
        None if low is None else math.floor(low / step) * step,
        None if high is None else math.ceil(high / step) * step,
    )
    kind = args[0].shape.kind
    return Shape(kind, any_nullable(args), _domain(kind, ends, integral=digits <= 0))


def _round(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    digits = texts[1] if len(texts) == 2 else "0"
    if args[0].shape.kind is Kind.INTEGER:
        return f"TRY_CAST(round(CAST({texts[0]} AS DOUBLE), {digits}) AS BIGINT)"
    return f"round({texts[0]}, {digits})"


def _power_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 2, "power")
    for a in args:
        expect_kind(a, NUMERIC, "power")
    exponent = constant(args[1], "the exponent of power").value
    low, high = numbers(args[0].shape.domain)
    domain = ANYTHING
    if isinstance(exponent, int) and 0 <= exponent <= 16 and low is not None and high is not None:
        powers = [low**exponent, high**exponent]
        least = Fraction(0) if exponent and exponent % 2 == 0 and low <= 0 <= high else min(powers)
        domain = interval(least, max(powers))
    return Shape(Kind.DOUBLE, any_nullable(args), domain)


def _power(texts: Sequence[str], args: tuple[Expression, ...], _: str) -> str:
    return f"pow({as_double(texts[0], args[0])}, {as_double(texts[1], args[1])})"


FAMILY = (
    _binary("add", "+", _add, "`a + b`"),
    _binary("subtract", "-", _subtract, "`a - b`"),
    _binary("multiply", "*", _multiply, "`a * b`"),
    Function(
        "divide", _divide_shape, _divide, "`a / b`: NULL when b is 0; whole for whole numbers"
    ),
    Function("modulo", _modulo_shape, _modulo, "`a % b`, `MOD(a, b)`: NULL when b is 0"),
    _unary("negate", "TRY(-{0})", _negate, "`-a`"),
    _unary("abs", "TRY(abs({0}))", _abs, "`ABS(a)`"),
    _unary("floor", "floor({0})", _floor, "`FLOOR(a)`", integral=True),
    _unary("ceil", "ceil({0})", _ceil, "`CEIL(a)`", integral=True),
    _unary(
        "trunc", "trunc({0})", lambda a: (_floor(a)[0], _ceil(a)[1]), "`TRUNC(a)`", integral=True
    ),
    _unary(
        "sign",
        "CAST(sign({0}) AS BIGINT)",
        lambda _: (Fraction(-1), Fraction(1)),
        "`SIGN(a)`",
        kind=Kind.INTEGER,
    ),
    _unary(
        "sqrt",
        "CASE WHEN {0} >= 0 THEN sqrt({0}) END",
        _sqrt_ends,
        "`SQRT(a)`: NULL below 0",
        kind=Kind.DOUBLE,
        nullable=True,
    ),
    _unary("exp", "exp({0})", _through(_exp, lambda _: True), "`EXP(a)`", kind=Kind.DOUBLE),
    _unary(
        "ln",
        "CASE WHEN {0} > 0 THEN ln({0}) END",
        _through(lambda x: math.log(max(x, 5e-324)), _positive),
        "`LN(a)`: NULL at and below 0",
        kind=Kind.DOUBLE,
        nullable=True,
    ),
    _unary(
        "log10",
        "CASE WHEN {0} > 0 THEN log10({0}) END",
        _through(lambda x: math.log10(max(x, 5e-324)), _positive),
        "`LOG(a)`, `LOG10(a)`: NULL at and below 0",
        kind=Kind.DOUBLE,
        nullable=True,
    ),
    Function("round", _round_shape, _round, "`ROUND(a)`, `ROUND(a, 2)`"),
    Function("power", _power_shape, _power, "`POWER(a, 2)`: a literal exponent"),
)
