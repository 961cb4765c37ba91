# ruff: noqa: DTZ001 (timestamps are naive here)
"""Random typed expressions of the registry, and the adversarial rows they meet."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from itertools import product

import duckdb
from hypothesis import strategies as st

from dpsql.catalog.function import common_kind
from dpsql.catalog.functions import FUNCTIONS, Mismatch, arithmetic, rounding
from dpsql.catalog.functions import powers as powers_and_roots
from dpsql.catalog.functions.conditional import join_domains, optional_as
from dpsql.catalog.functions.time import PARTS, UNITS
from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.duckdb.expressions import expression
from dpsql.engines.duckdb.types import engine_type
from dpsql.ir.domain import ANYTHING, Domain, interval, members
from dpsql.ir.expressions import NULL, Call, Case, Column, Expression, Interval, Shape
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind.literals import literal

BOOLEAN, INTEGER, DOUBLE, TEXT, DATE, TIMESTAMP = (
    Kind.BOOLEAN,
    Kind.INTEGER,
    Kind.DOUBLE,
    Kind.TEXT,
    Kind.DATE,
    Kind.TIMESTAMP,
)
KINDS = (BOOLEAN, INTEGER, DOUBLE, TEXT, DATE, TIMESTAMP)

WILD: dict[Kind, tuple[str, ...]] = {
    BOOLEAN: ("NULL", "TRUE", "FALSE"),
    INTEGER: (
        "NULL", "0", "1", "-1", "2", "-7", "100000", "2147483647", "-2147483648", "9007199254740993",
        "4611686018427387904", "9223372036854775807", "-9223372036854775807 - 1", "3000000000",
    ),
    DOUBLE: (
        "NULL", "'NaN'", "'-NaN'", "'Infinity'", "'-Infinity'", "0", "'-0.0'", "1", "0.5", "-2.5", "1.7976931348623157e308",
        "-1.7976931348623157e308", "5e-324", "-5e-324", "1e15", "9.3e18", "-9.3e18", "720.0",
    ),
    TEXT: (
        "NULL", "''", "'a'", "'it''s \"b\"'", "'日本é💥'", "chr(0) || 'x'", "repeat('long ', 4000)", "' 12 '", "'1e400'",
        "'-9223372036854775808'", "'nan'", "'infinity'", "'2024-02-29'", "'5000000-01-01'", "'true'", "'\\'", "'%_'",
        "'2024-01-01 25:00:00'", "'İßŉ'",
    ),
    DATE: (
        "NULL", "'0001-01-01'", "'9999-12-31'", "'infinity'", "'-infinity'", "'290000-01-01'", "'5000000-01-01'",
        "'5877642-06-25 (BC)'", "'5881580-07-10'", "'2024-02-29'", "'1970-01-01'", "'294247-01-11'", "'0044-03-15 (BC)'",
    ),
    TIMESTAMP: (
        "NULL", "'0001-01-01'", "'9999-12-31 23:59:59.999999'", "'infinity'", "'-infinity'", "'290000-01-01'",
        "'294247-01-10 04:00:54.775806'", "'290309-12-22 (BC) 00:00:00'", "'2024-02-29 12:00:00.5'", "'1970-01-01'",
    ),
}  # fmt: skip
"""Values as SQL text, the worst that a column of each kind can hold."""

Names = dict[int, str]


@dataclass(frozen=True, slots=True)
class World:
    """A table in an engine, and its columns as expressions."""

    engine: duckdb.DuckDBPyConnection
    columns: tuple[Column, ...]

    @property
    def names(self) -> Names:
        """How each column is written."""
        return {c.number: f"w.{quote_name(c.name)}" for c in self.columns}

    def of(self, kind: Kind) -> list[Column]:
        """The columns of a kind."""
        return [c for c in self.columns if c.shape.kind is kind]

    def write(self, node: Expression) -> str:
        """The SQL of an expression over the table."""
        return expression(node, self.names)


def _filled(columns: dict[str, tuple[Shape, Sequence[str]]], rows: int) -> World:
    engine = duckdb.connect()
    listed = list(columns.items())
    kinds = ", ".join(f"{quote_name(n)} {engine_type(s.kind)}" for n, (s, _) in listed)
    engine.execute(f"CREATE TABLE w ({kinds})")
    lines = []
    for row in range(rows):
        cells = []
        for position, (_, (shape, values)) in enumerate(listed):
            # Odd columns turn slower, so that every pair of values meets.
            turn = row if position % 2 == 0 else row // 19 + position
            cells.append(f"CAST({values[turn % len(values)]} AS {engine_type(shape.kind)})")
        lines.append(f"({', '.join(cells)})")
    engine.execute("INSERT INTO w VALUES " + ", ".join(lines))
    made = tuple(Column(n, name, shape) for n, (name, (shape, _)) in enumerate(listed))
    return World(engine, made)


@functools.cache
def wild_world() -> World:
    """Two columns of each kind that hold the worst, in every combination; no test changes them."""
    columns = {
        f"{kind.value}{n}": (Shape(kind, True, ANYTHING), WILD[kind])
        for kind in KINDS
        for n in "12"
    }
    return _filled(columns, 19 * 19)


def _written(domain: Domain, kind: Kind, values: Sequence[str]) -> tuple[Shape, Sequence[str]]:
    return Shape(kind, "NULL" in values, domain), values


@functools.cache
def tame_world() -> World:
    """Columns with declared domains, and rows inside them; no test changes them."""
    big = 2**62
    day, moment = date(2024, 1, 15), datetime(2024, 2, 29, 23, 59, 59, 500000)
    columns: dict[str, tuple[Shape, Sequence[str]]] = {
        "small": _written(interval(-3, 7, integral=True), INTEGER, [str(v) for v in range(-3, 8)]),
        "some": _written(interval(1, 100, integral=True), INTEGER, ["NULL", "1", "2", "50", "99", "100"]),
        "few": _written(members([1, 5, 9]), INTEGER, ["1", "5", "9"]),
        "wide": _written(interval(-big, 2 * big - 1, integral=True), INTEGER, [str(-big), "0", "-1", str(2 * big - 1)]),
        "least": _written(interval(None, None, integral=True), INTEGER, WILD[INTEGER][1:]),
        "tenth": _written(interval(Fraction(0), Fraction(1, 10)), DOUBLE, ["0", "0.1", "0.05", "0.03"]),
        "ratio": _written(interval(Fraction(-5, 2), Fraction(37, 10)), DOUBLE, ["-2.5", "3.7", "0", "-0.0", "1.5", "NULL", "2.5"]),
        "price": _written(interval(3, 1000), DOUBLE, ["3", "1000", "999.99", "123.456"]),
        "steps": _written(members([Fraction(1, 10), Fraction(5, 2), Fraction(-3)]), DOUBLE, ["0.1", "2.5", "-3"]),
        "free": _written(ANYTHING, DOUBLE, WILD[DOUBLE]),
        "below": _written(interval(None, 5), DOUBLE, ["5", "-1e308", "'-Infinity'", "0"]),
        "above": _written(interval(2, None), DOUBLE, ["2", "'NaN'", "'Infinity'", "7.25"]),
        "word": _written(members(["", "a", "web", "日本"]), TEXT, ["''", "'a'", "'web'", "'日本'"]),
        "note": _written(ANYTHING, TEXT, WILD[TEXT]),
        "placed": _written(interval(day, date(2025, 3, 2)), DATE, ["'2024-01-15'", "'2025-03-02'", "'2024-02-29'", "'2024-12-30'"]),
        "due": _written(members([day, date(2024, 12, 31)]), DATE, ["NULL", "'2024-01-15'", "'2024-12-31'"]),
        "ever": _written(ANYTHING, DATE, WILD[DATE][1:]),
        "seen": _written(interval(datetime(2023, 12, 31, 12), moment), TIMESTAMP, ["'2023-12-31 12:00:00'", f"'{moment}'", "'2024-01-31 10:30:00'"]),
        "since": _written(ANYTHING, TIMESTAMP, WILD[TIMESTAMP]),
        "flag": _written(members([False, True]), BOOLEAN, ["TRUE", "FALSE"]),
        "maybe": _written(members([False, True]), BOOLEAN, ["NULL", "TRUE", "FALSE"]),
    }  # fmt: skip
    return _filled(columns, 400)


_CONSTANTS: dict[Kind, tuple[Scalar, ...]] = {
    BOOLEAN: (True, False),
    INTEGER: (0, 1, -1, 2, 3, -7, 60, 5000000000, 2**63 - 1),
    DOUBLE: (Fraction(0), Fraction(1, 10), Fraction(5, 2), Fraction(-2), Fraction(10) ** 300),
    TEXT: ("", "a", "web", "it's", "2024-02-29", "a\0b", "12"),
    DATE: (date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)),
    TIMESTAMP: (datetime(2024, 1, 31), datetime(2024, 2, 29, 12, 30, 15, 250000)),
}
CONSTANTS = {kind: [literal(v) for v in values] for kind, values in _CONSTANTS.items()}
SPANS = [Interval(n, unit) for n in (0, 1, -13, 999_999) for unit in UNITS]
_PATTERNS = [literal(p) for p in ("%a_", "", "a\\%", "日%", "it's", "%%%_%")]
_PLACES = [literal(n) for n in (0, 1, 3, 1000)]
_ESCAPES = ("", "\\", "!", "%", "_", "'")
_PAIRS = [(k, k) for k in KINDS] + [
    (INTEGER, DOUBLE), (DOUBLE, INTEGER), (DATE, TIMESTAMP), (TIMESTAMP, DATE)
]  # fmt: skip
_NUMBERS = [(a, b) for a in (INTEGER, DOUBLE) for b in (INTEGER, DOUBLE)]

Part = Kind | tuple[Expression, ...]
"""An argument: anything of a kind, or one of these constants."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A way to call a function."""

    function: str
    args: tuple[Part, ...]
    options: tuple[str, ...] = ("",)


def signatures() -> tuple[Signature, ...]:
    """Every function with every combination of argument kinds that it takes."""
    found = [
        Signature(n, p)
        for n in ("add", "subtract", "multiply", "divide", "modulo")
        for p in _NUMBERS
    ]
    numeric = (
        record.function.name
        for family in (arithmetic, powers_and_roots, rounding)
        for record in family.RECORDS
    )
    one_number = [name for name in numeric if _takes(name, literal(1))]
    found += [Signature(n, (k,)) for n in one_number for k in (INTEGER, DOUBLE)]
    digits = tuple(literal(n) for n in (-15, -3, -1, 0, 1, 2, 15))
    found += [Signature("round", (k, digits)) for k in (INTEGER, DOUBLE)]
    exponents = tuple(
        literal(p) for p in (0, 1, 2, 3, 16, -1, 400, Fraction(1, 2), Fraction(-3, 2))
    )
    found += [Signature("power", (k, exponents)) for k in (INTEGER, DOUBLE)]
    found += [
        Signature("width_bucket", (k, (literal(low),), (literal(high),), (literal(n),)))
        for k in (INTEGER, DOUBLE)
        for low, high, n in (
            (0, 100, 10),
            (100, 0, 7),
            (Fraction(-1, 2), Fraction(33, 10), 100_000),
        )
    ]
    either = ("eq", "ne", "lt", "le", "gt", "ge", "distinct_from", "not_distinct_from")
    choosing = ("nullif", "coalesce", "least", "greatest", "in")
    found += [Signature(n, p) for n in (*either, *choosing) for p in _PAIRS]
    found += [Signature(n, (a, b, b)) for n in choosing[1:] for a, b in _PAIRS]
    found += [Signature(n, (BOOLEAN, BOOLEAN)) for n in ("and", "or")]
    found += [Signature(n, (BOOLEAN,)) for n in ("not", "is_true", "is_false")]
    found += [Signature("is_null", (k,)) for k in KINDS]
    found += [Signature(n, (TEXT, tuple(_PATTERNS)), _ESCAPES) for n in ("like", "ilike")]
    casts = {t: tuple(k.value for k in KINDS if _casts(t, k)) for t in KINDS}
    found += [Signature("cast", (k,), targets) for k, targets in casts.items()]
    found += [Signature(n, (TEXT,)) for n in ("lower", "upper", "trim", "ltrim", "rtrim", "length")]
    places = tuple(_PLACES)
    found += [
        Signature("substring", (TEXT, places)),
        Signature("substring", (TEXT, places, places)),
    ]
    found += [Signature(n, (TEXT, places)) for n in ("left", "right")]
    found += [Signature("concat", p) for p in product(KINDS, KINDS)]
    found += [Signature("strpos", (TEXT, TEXT))]
    found += [Signature("array", (kind, kind), ("", "sorted")) for kind in KINDS]
    words = tuple(literal(v) for v in ("long", "a", "'"))
    found += [Signature("replace", (TEXT, words, (literal(""), literal("b"))))]
    found += [Signature("replace", (TEXT, (literal(""),), (literal(""),)))]
    found += [Signature("starts_with", (TEXT, words))]
    for kind in (DATE, TIMESTAMP):
        found += [Signature("date_trunc", (kind,), UNITS), Signature("extract", (kind,), PARTS)]
        found += [Signature("shift", (kind, tuple(SPANS)), ("+", "-"))]
        found += [Signature("to_char", (kind,), ("%Y-%m", "%Y-%m-%d %H:%M:%S.%f"))]
    zones = ("Europe/Berlin", "America/St_Johns", "Pacific/Apia", "UTC")
    found += [Signature(name, (Kind.TIMESTAMP,), zones) for name in ("to_zone", "from_zone")]
    found += [Signature("to_timestamp", (kind,)) for kind in (INTEGER, DOUBLE)]
    found += [
        Signature("days", (DATE, INTEGER), ("+", "-")),
        Signature("days_between", (DATE, DATE)),
    ]
    return tuple(found)  # fmt: skip


def _takes(name: str, *args: Expression) -> bool:
    try:
        FUNCTIONS[name].shape(args, "")
    except Mismatch:
        return False
    return True


def _casts(source: Kind, target: Kind) -> bool:
    try:
        FUNCTIONS["cast"].shape((literal(_CONSTANTS[source][0]),), target.value)
    except Mismatch:
        return False
    return True


def call(function: str, *args: Expression, option: str = "") -> Call:
    """A typed call."""
    return Call(function, args, FUNCTIONS[function].shape(args, option), option)


def case(whens: tuple[tuple[Expression, Expression], ...], otherwise: Expression) -> Case:
    """A typed CASE."""
    values = [v for _, v in whens] + [otherwise]
    kind = common_kind(values, "CASE")
    nullable = any(optional_as(v, kind) for v in values)
    return Case(whens, otherwise, Shape(kind, nullable, join_domains(values, kind)))


def single_calls(world: World, function: str) -> Iterator[Call]:
    """A function over columns, constants and NULL, in every combination it takes."""
    for signature in (s for s in SIGNATURES if s.function == function):
        pools = [_pool(world, part) for part in signature.args]
        if len(pools) > 2:
            pools = [pool if len(pool) < 8 else pool[::3] for pool in pools]
        for args, option in product(product(*pools), signature.options):
            try:
                yield call(signature.function, *args, option=option)
            except Mismatch:
                continue


def _pool(world: World, part: Part) -> Sequence[Expression]:
    if isinstance(part, tuple):
        return part
    return [*world.of(part), CONSTANTS[part][0], CONSTANTS[part][-1], NULL]


SIGNATURES = signatures()
_RESULTS: dict[Kind, list[tuple[Signature, str]]] = {}


def _by_result(kind: Kind) -> list[tuple[Signature, str]]:
    """The ways to make a value of a kind."""
    if not _RESULTS:
        for signature in SIGNATURES:
            args = [CONSTANTS[p][1] if isinstance(p, Kind) else p[-1] for p in signature.args]
            for option in signature.options:
                try:
                    result = FUNCTIONS[signature.function].shape(tuple(args), option).kind
                except Mismatch:
                    continue
                _RESULTS.setdefault(result, []).append((signature, option))
    return _RESULTS[kind]


@st.composite
def expressions(
    draw: st.DrawFn, world: World, kind: Kind | None = None, depth: int = 4
) -> Expression:
    """A typed expression over the world's columns, up to ``depth`` calls deep."""
    wanted = kind or draw(st.sampled_from(KINDS))
    return _drawn(draw, world, wanted, depth)


def _drawn(draw: st.DrawFn, world: World, kind: Kind, depth: int) -> Expression:
    way = draw(st.integers(0, 9))
    if depth == 0 or way == 0:
        return draw(st.sampled_from(world.of(kind)))
    if way == 1:
        return draw(st.sampled_from([*CONSTANTS[kind], NULL]))
    if way == 2:
        condition = _drawn(draw, world, BOOLEAN, depth - 1)
        values = [_drawn(draw, world, kind, depth - 1) for _ in range(2)]
        return case(((condition, values[0]),), values[1])
    signature, option = draw(st.sampled_from(_by_result(kind)))
    args = []
    for part in signature.args:
        if isinstance(part, Kind):
            args.append(_drawn(draw, world, part, depth - 1))
        else:
            args.append(draw(st.sampled_from(part)))
    try:
        made = call(signature.function, *args, option=option)
    except Mismatch:
        return draw(st.sampled_from(world.of(kind)))
    return made if made.shape.kind is kind else draw(st.sampled_from(world.of(kind)))


def optional(column: Column) -> Column:
    """The column, possibly NULL."""
    return replace(column, shape=column.shape.optional())
