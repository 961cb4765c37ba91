"""Functions of text. The length of each result is bounded beforehand: see ``lengths``."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.catalog.function import (
    Function,
    FunctionNode,
    FunctionRecord,
    Mismatch,
    any_nullable,
    constant,
    expect,
    expect_kind,
)
from dpsql.catalog.record import EVERY_DIALECT
from dpsql.ir.domain import Domain, interval, longest
from dpsql.ir.expressions import Expression, Literal, Shape
from dpsql.ir.lengths import Length, as_all, as_first
from dpsql.policy.types import Kind

TEXT = (Kind.TEXT,)
LONGEST = 1_000


def _simple(name: str, about: str) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        expect(args, 1, name)
        expect_kind(args[0], TEXT, name)
        return _no_longer(args)

    return Function(name, shape, about, as_first)


def _trimming(name: str) -> Function:
    """A function that trims the characters in ``option``, or spaces if ``option`` is empty."""
    return _simple(name, f"`{name.upper()}(a)`")


def _length_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 1, "length")
    expect_kind(args[0], TEXT, "length")
    most = longest(args[0].shape.domain)
    return Shape(Kind.INTEGER, any_nullable(args), interval(0, most, integral=True))


def _no_longer(args: tuple[Expression, ...], most: int | None = None) -> Shape:
    """A text with at most as many characters as the first argument, and at most ``most``."""
    known = [n for n in (longest(args[0].shape.domain), most) if n is not None]
    return Shape(Kind.TEXT, any_nullable(args), Domain(longest=min(known, default=None)))


def _substring_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, range(2, 4), "substring")
    expect_kind(args[0], TEXT, "substring")
    said = f"substring takes a literal start and length from 0 to {LONGEST}"
    places = [_place(a, "start and length of substring", said) for a in args[1:]]
    return _no_longer(args, places[1] if len(places) > 1 else None)


def _place(argument: Expression, what: str, said: str) -> int:
    """The value of a literal position in a text, or of a literal number of characters."""
    value = constant(argument, what).value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LONGEST:
        raise Mismatch(said)
    return value


def _cut(lengths: Sequence[Length], args: tuple[Expression, ...], _: str) -> Length:
    """At most the length of the first argument, and at most the literal number of characters."""
    most = args[-1].value if isinstance(args[-1], Literal) else None
    return lengths[0].up_to(most) if isinstance(most, int) else lengths[0]


def _part(lengths: Sequence[Length], args: tuple[Expression, ...], option: str) -> Length:
    """As ``_cut``, if a length is given after the start; else the length of the first argument."""
    return _cut(lengths, args, option) if len(args) > 2 else lengths[0]


def _end(name: str) -> Function:
    def shape(args: tuple[Expression, ...], _: str) -> Shape:
        expect(args, 2, name)
        expect_kind(args[0], TEXT, name)
        said = f"{name} takes a literal length from 0 to {LONGEST}"
        return _no_longer(args, _place(args[1], f"the length of {name}", said))

    return Function(name, shape, f"`{name.upper()}(a, 3)`", _cut)


_JOINABLE = (Kind.TEXT, Kind.INTEGER, Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN)


def _concat_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, range(1, 1_000), "||")
    for a in args:
        expect_kind(a, _JOINABLE, "||")
    return Shape(Kind.TEXT, any_nullable(args))


def _strpos_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 2, "position")
    for a in args:
        expect_kind(a, TEXT, "position")
    most = longest(args[0].shape.domain)
    last = None if most is None else max(1, most)  # an empty text is found at 1
    return Shape(Kind.INTEGER, any_nullable(args), interval(0, last, integral=True))


def _replace_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 3, "replace")
    for a in args:
        expect_kind(a, TEXT, "replace")
    old, new = (constant(a, "what replace looks for and writes").value for a in args[1:])
    if not isinstance(old, str) or not isinstance(new, str) or len(new) > len(old):
        raise Mismatch("replace takes literals, the new one not longer than the old one")
    return _no_longer(args)


def _prefix_shape(args: tuple[Expression, ...], _: str) -> Shape:
    expect(args, 2, "starts_with")
    for a in args:
        expect_kind(a, TEXT, "starts_with")
    constant(args[1], "the prefix of starts_with")
    return Shape(Kind.BOOLEAN, any_nullable(args))


RECORDS = (
    FunctionRecord(
        function=_simple("lower", "`LOWER(a)`"),
        nodes=(FunctionNode("Lower", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("LOWER(kind)",),
    ),
    FunctionRecord(
        function=_simple("upper", "`UPPER(a)`"),
        nodes=(FunctionNode("Upper", ("this",), ("this",), EVERY_DIALECT),),
        strict=True,
        examples=("UPPER(kind)",),
    ),
    FunctionRecord(
        function=_trimming("trim"),
        nodes=(FunctionNode("Trim", ("this", "position", "expression"), None, ("snowflake",)),),
        strict=False,
        examples=("TRIM(kind)",),
    ),
    FunctionRecord(
        function=_trimming("ltrim"),
        nodes=(),
        strict=False,
        examples=("LTRIM(kind)",),
    ),
    FunctionRecord(
        function=_trimming("rtrim"),
        nodes=(),
        strict=False,
        examples=("RTRIM(kind)",),
    ),
    FunctionRecord(
        function=Function("length", _length_shape, "`LENGTH(a)`"),
        nodes=(FunctionNode("Length", ("this",), ("this",), ()),),
        strict=True,
        examples=("LENGTH(kind)",),
    ),
    FunctionRecord(
        function=Function(
            "substring", _substring_shape, "`SUBSTRING(a, 1, 3)`: literal places", _part
        ),
        nodes=(
            FunctionNode(
                "Substring", ("this", "start", "length"), ("this", "start", "length"), ("duckdb",)
            ),
        ),
        strict=True,
        examples=("SUBSTRING(kind, 1, 1)",),
    ),
    FunctionRecord(
        function=_end("left"),
        nodes=(
            FunctionNode(
                "Left", ("this", "expression"), ("this", "expression"), ("duckdb", "bigquery")
            ),
        ),
        strict=False,
        examples=("LEFT(kind, 1)",),
    ),
    FunctionRecord(
        function=_end("right"),
        nodes=(
            FunctionNode(
                "Right", ("this", "expression"), ("this", "expression"), ("duckdb", "bigquery")
            ),
        ),
        strict=False,
        examples=("RIGHT(kind, 1)",),
    ),
    FunctionRecord(
        function=Function("concat", _concat_shape, "`a || b`: NULL when a part is", as_all),
        nodes=(
            FunctionNode("DPipe", ("this", "expression", "safe"), None, ()),
            FunctionNode("Concat", ("expressions", "safe", "coalesce"), None, ()),
        ),
        strict=False,
        examples=("kind || 'x'",),
    ),
    FunctionRecord(
        function=Function(
            "strpos",
            _strpos_shape,
            "`POSITION(a IN b)`",
        ),
        nodes=(FunctionNode("StrPosition", ("this", "substr"), ("this", "substr"), ()),),
        strict=False,
        examples=("POSITION('a' IN kind)",),
    ),
    FunctionRecord(
        function=Function(
            "replace",
            _replace_shape,
            "`REPLACE(a, 'x', 'y')`: literals, not growing",
            as_first,
        ),
        nodes=(
            FunctionNode(
                "Replace",
                ("this", "expression", "replacement"),
                ("this", "expression", "replacement"),
                EVERY_DIALECT,
            ),
        ),
        strict=False,
        examples=("REPLACE(kind, 'a', 'b')",),
    ),
    FunctionRecord(
        function=Function(
            "starts_with",
            _prefix_shape,
            "`STARTS_WITH(a, 'x')`",
        ),
        nodes=(
            FunctionNode(
                "StartsWith", ("this", "expression"), ("this", "expression"), EVERY_DIALECT
            ),
        ),
        strict=False,
        examples=("STARTS_WITH(kind, 'a')",),
    ),
)
