"""Expressions as SQL: constants read back as they were, windows and orders spelled out."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import duckdb
import pytest

from dpsql.catalog.functions import FUNCTIONS
from dpsql.engines.duckdb.constants import literal, quote_name
from dpsql.engines.duckdb.expressions import as_planned, expression, sort_list, write_call
from dpsql.engines.duckdb.types import engine_type
from dpsql.ir.expressions import (
    NULL,
    Aggregated,
    Call,
    Column,
    Expression,
    Frame,
    FrameEnd,
    Interval,
    Literal,
    Parameter,
    Shape,
    SortKey,
    Window,
    alias,
)
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind.literals import literal as constant

AMOUNT = Column(1, "amount", Shape(Kind.INTEGER))
NAME = Column(2, "name", Shape(Kind.TEXT))
NAMES = {1: "t.amount", 2: "t.name"}


def run(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t AS SELECT 1::BIGINT AS amount, 'a' AS name")
        engine.execute("INSERT INTO t VALUES (9223372036854775807, 'b'), (NULL, NULL)")
        return engine.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, Kind.BOOLEAN),
        (False, Kind.BOOLEAN),
        (0, Kind.INTEGER),
        (-1, Kind.INTEGER),
        (2**63 - 1, Kind.INTEGER),
        (-(2**63), Kind.INTEGER),
        (Fraction(1, 10), Kind.DOUBLE),
        (Fraction(-5, 2), Kind.DOUBLE),
        (Fraction(10) ** 300, Kind.DOUBLE),
        (Fraction(1, 3), Kind.DOUBLE),
        ("", Kind.TEXT),
        ('it\'s "so" -- /* \\', Kind.TEXT),
        ("日本💥", Kind.TEXT),
        ("a\0b\0", Kind.TEXT),
        ("\0", Kind.TEXT),
        (date(1, 1, 1), Kind.DATE),
        (date(9999, 12, 31), Kind.DATE),
        (datetime(2024, 2, 29, 23, 59, 59, 999999), Kind.TIMESTAMP),  # noqa: DTZ001
        (datetime(1, 1, 1), Kind.TIMESTAMP),  # noqa: DTZ001
        (None, Kind.INTEGER),
        (None, Kind.TEXT),
    ],
)
def test_constants_read_back_with_their_type(value: Scalar | None, kind: Kind) -> None:
    text = expression(Literal(value, Shape(kind)), {})
    [(got, engine)] = run(f"SELECT {text}, typeof({text})")
    assert engine == engine_type(kind)
    assert got == (float(value) if isinstance(value, Fraction) else value)


def test_whole_constants_of_double_columns_are_doubles() -> None:
    assert literal(500, Kind.DOUBLE) == "500.0e0"


def test_what_is_beyond_every_double_is_infinite() -> None:
    for sign, name in ((1, "inf"), (-1, "-inf")):
        text = literal(sign * Fraction(10) ** 400, Kind.DOUBLE)
        assert run(f"SELECT CAST({text} AS VARCHAR)") == [(name,)]


def test_null_without_a_kind() -> None:
    assert expression(NULL, {}) == "NULL"


def test_names_are_quoted_and_aliases_plain() -> None:
    assert quote_name('se"lect') == '"se""lect"'
    assert alias(Column(3, "SELECT", Shape(Kind.TEXT))) == "select_3"
    assert alias(Column(4, '"; DROP', Shape(Kind.TEXT))) == "drop_4"
    assert alias(Column(5, "日本", Shape(Kind.TEXT))) == "c_5"
    assert alias(Column(6, "1st", Shape(Kind.TEXT))) == "c_6"


def test_arguments_are_bare_and_results_typed() -> None:
    five = constant(5)
    assert expression(five, {}) == "CAST(5 AS BIGINT)"
    less = Call("lt", (AMOUNT, five), FUNCTIONS["lt"].shape((AMOUNT, five), ""))
    assert expression(less, NAMES) == "(t.amount < 5)"


def test_parameters() -> None:
    assert expression(Parameter("p", Shape(Kind.DATE)), {}) == "CAST($p AS DATE)"
    several = Parameter("p", Shape(Kind.DATE), many=True)
    assert expression(several, {}) == "(SELECT unnest($p::DATE[]))"


def test_quantiles_name_their_fraction() -> None:
    half = Aggregated("quantile_disc", (AMOUNT,), Shape(Kind.INTEGER), option="1/2")
    assert write_call(half, NAMES) == "quantile_disc(t.amount, 0.5e0)"


def test_intervals() -> None:
    assert expression(Interval(-3, "month"), {}) == "INTERVAL '-3 month'"


@pytest.mark.parametrize("value", [None, True, 5, "a", Fraction(1, 2), date(2024, 1, 1)])
def test_orders_may_be_by_constants(value: Scalar | None) -> None:
    keys = (SortKey(constant(value)), SortKey(AMOUNT, descending=True, nulls_first=True))
    rows = run(f"SELECT amount FROM t ORDER BY {sort_list(keys, NAMES)}")
    assert rows == [(None,), (2**63 - 1,), (1,)]
    assert len(run(f"SELECT row_number() OVER (ORDER BY {sort_list(keys, NAMES)}) FROM t")) == 3


def window(function: str, kind: Kind, *args: Expression, **more: object) -> str:
    node = Window(function, args, (NAME,), (SortKey(AMOUNT),), None, Shape(kind), **more)  # type: ignore[arg-type]
    return expression(node, NAMES)


def test_windows() -> None:
    assert window("row_number", Kind.INTEGER) == (
        "row_number() OVER (PARTITION BY t.name ORDER BY t.amount ASC NULLS LAST)"
    )
    assert window("count", Kind.INTEGER).startswith("count(*) OVER (")
    where = Call("is_null", (NAME,), Shape(Kind.BOOLEAN, nullable=False))
    assert " FILTER (WHERE (t.name IS NULL)) OVER " in window(
        "sum", Kind.INTEGER, AMOUNT, where=where
    )
    assert window("sum", Kind.INTEGER, AMOUNT, distinct=True).startswith(
        "TRY_CAST(sum(DISTINCT t.amount)"
    )
    assert (
        expression(Window("count", (), (), (), None, Shape(Kind.INTEGER)), NAMES)
        == "count(*) OVER ()"
    )


@pytest.mark.parametrize(("frame", "words"), [
    (Frame("rows", FrameEnd("preceding", 1), FrameEnd("current row")),
     "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
    (Frame("range", FrameEnd("preceding", 5), FrameEnd("following", 5)),
     "RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING"),
    (Frame("range", FrameEnd("preceding"), FrameEnd("current row")),
     "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
    (Frame("groups", FrameEnd("preceding", 1), FrameEnd("following", 1)),
     "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
])  # fmt: skip
@pytest.mark.parametrize("descending", [False, True])
def test_frames_reach_beyond_the_largest_number(frame: Frame, words: str, descending: bool) -> None:
    order = (SortKey(AMOUNT, descending=descending),)
    node = Window("sum", (AMOUNT,), (), order, frame, Shape(Kind.INTEGER))
    text = expression(node, NAMES)
    assert f" {words})" in text
    kinds = run(f"SELECT typeof({text}) FROM t")
    assert kinds == [("BIGINT",)] * 3


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("sum", Kind.INTEGER), ("avg", Kind.DOUBLE), ("count", Kind.INTEGER), ("min", Kind.INTEGER),
        ("max", Kind.INTEGER), ("var_samp", Kind.DOUBLE), ("stddev_pop", Kind.DOUBLE),
    ],
)  # fmt: skip
def test_aggregates_have_the_planned_type(function: str, kind: Kind) -> None:
    call = Aggregated(function, (AMOUNT,), Shape(kind))
    text = as_planned(write_call(call, NAMES), call)
    assert run(f"SELECT typeof({text}) FROM t") == [(engine_type(kind),)]
