"""A parameter is its value: what its class says of itself is in no statement and in no plan's name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import pytest
from support.services import service

from dpsql import dbapi
from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb import constants
from dpsql.policy.types import Kind
from dpsql.serve.lists import constant
from dpsql.serve.pgwire.errors import WireError
from dpsql.service import Session
from dpsql.sql import parameters, placeholders
from dpsql.sql.bind import literals
from dpsql.sql.parameters import UNKNOWN, builtin

LIE = "0 OR TRUE"


def _lying(kind: type) -> Callable[..., Any]:
    """A class derived from another whose every method gives the same words, whatever its value."""
    answers: dict[str, object] = {
        "__str__": lambda _: LIE,
        "__repr__": lambda _: LIE,
        "__format__": lambda _, __: LIE,
        "__hash__": lambda _: 7,
        "__eq__": lambda _, __: True,
        "__ne__": lambda _, __: False,
        "__bool__": lambda _: True,
    }
    words = (
        "isoformat", "strftime", "replace", "split", "lower", "encode", "strip", "as_integer_ratio",
        "is_integer", "is_finite", "date", "time", "toordinal", "timetuple", "to_eng_string",
        "year", "month", "day", "hour", "numerator", "denominator", "real", "tzinfo",
    )  # fmt: skip
    answers |= {word: lambda *_: LIE for word in words if hasattr(kind, word)}
    answers |= {word: lambda *_: LIE for word in ("__int__", "__index__", "__float__", "__len__")}
    return type("int", (kind,), answers)


NOON = dt.datetime(2024, 5, 1, 12, 30, 0, 250)  # noqa: DTZ001 (as columns are)
VALUES: list[tuple[type, Any, tuple[Any, ...], str]] = [
    (int, 5001, (5001,), "age > ?"),
    (float, 5001.25, (5001.25,), "age > ?"),
    (Decimal, Decimal("5001.5"), ("5001.5",), "age > ?"),
    (str, "nowhere'", ("nowhere'",), "city = ?"),
    (dt.date, dt.date(2024, 5, 1), (2024, 5, 1), "DATE '2025-01-01' < ?"),
    (dt.datetime, NOON, (2024, 5, 1, 12, 30, 0, 250), "TIMESTAMP '2025-01-01 00:00:00' < ?"),
]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with service("oracle", "shop") as here:
        yield here.session("oracle")


def _explained(session: Session, condition: str, value: object) -> str:
    return session.explain(f"SELECT COUNT(*) FROM customers WHERE {condition}", [value])


@pytest.mark.parametrize(("kind", "plain", "made", "condition"), VALUES)
def test_a_class_of_the_callers_is_the_value_that_it_is_derived_from(
    session: Session, kind: type, plain: Any, made: tuple[Any, ...], condition: str
) -> None:
    hostile = _lying(kind)(*made)
    assert str(hostile) == LIE
    found = builtin(hostile)
    assert type(found) is kind
    assert found == plain
    # The lie comes first: what it is remembered under must not be another's name either.
    assert _explained(session, condition, hostile) == _explained(session, condition, plain)
    assert LIE not in _explained(session, condition, hostile)
    assert constant(hostile) == constant(plain)


def test_what_a_class_says_makes_no_statement_another(session: Session) -> None:
    text = "SELECT COUNT(*) FROM customers WHERE age > ?"
    kind = _lying(int)
    one, other = kind(31), kind(77)
    assert session.prepare(text, [one]).parts != session.prepare(text, [other]).parts
    assert session.prepare(text, [other]) is session.prepare(text, [77])


@pytest.mark.parametrize(
    ("kind", "made", "said", "written"),
    [
        (int, (12,), Kind.INTEGER, "12"),
        (int, (12,), Kind.DOUBLE, "12.0e0"),
        (str, ("a'b",), Kind.TEXT, "'a''b'"),
        (dt.date, (2024, 5, 1), Kind.DATE, "DATE '2024-05-01'"),
        (dt.date, (2024, 5, 1), Kind.TIMESTAMP, "TIMESTAMP '2024-05-01 00:00:00'"),
        (dt.datetime, (2024, 5, 1, 2), Kind.TIMESTAMP, "TIMESTAMP '2024-05-01 02:00:00'"),
    ],
)
def test_a_constant_is_written_from_its_value(
    kind: type, made: tuple[Any, ...], said: Kind, written: str
) -> None:
    assert constants.literal(_lying(kind)(*made), said) == written


class _Claims:
    """Of a class that says it is another."""

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return int

    def __int__(self) -> int:
        return 1

    __index__ = __int__


@pytest.mark.parametrize(
    "value",
    [[[1]], {1: 2}, b"x", bytearray(b"x"), dt.time(1), dt.timedelta(1), 1j, object(), _Claims(),
     _lying(Fraction)(1, 2)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_has_no_constant_is_refused(session: Session, value: object) -> None:
    assert builtin(value) is UNKNOWN
    with pytest.raises(Refused) as caught:
        _explained(session, "age > ?", value)
    assert caught.value.code == "DP205"
    assert LIE not in str(caught.value)
    with pytest.raises(WireError):
        constant(value)


@pytest.mark.parametrize("value", [[1], (1,), _lying(list)([1]), _lying(tuple)([1])])
def test_a_list_is_no_constant_whatever_its_class_says(session: Session, value: object) -> None:
    assert builtin(value) == (1,)
    with pytest.raises(Refused) as caught:
        _explained(session, "age > ?", value)
    assert caught.value.code == "DP113"
    assert LIE not in str(caught.value)
    with pytest.raises(WireError):
        constant(value)


def test_plain_values_stay_what_they_are() -> None:
    size = IntEnum("size", "small large")
    assert builtin(size.large) == 2
    assert type(builtin(size.large)) is int
    for value in (None, True, False, 3, 0.5, Decimal("0.1"), Fraction(1, 3), "x", NOON):
        assert builtin(value) == value
        assert type(builtin(value)) is type(value)
    zone = dt.timezone(dt.timedelta(hours=2))
    assert builtin(NOON.replace(tzinfo=zone)).tzinfo is dt.UTC  # and so it is refused


def test_a_statement_is_its_characters(session: Session) -> None:
    text = _lying(str)("SELECT COUNT(*) FROM customers")
    assert type(dbapi._text(text)) is str
    assert session.prepare(dbapi._text(text)).plan.columns
    with pytest.raises(dbapi.ProgrammingError):
        dbapi._text(b"SELECT 1")  # type: ignore[arg-type]


def test_values_that_are_taken_as_they_come_are_noticed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = _lying(int)(5003)
    for module in (literals, placeholders, constants):
        monkeypatch.setattr(module, "builtin", lambda value: value)
    monkeypatch.setattr("dpsql.service.session.builtins", tuple)
    with pytest.raises(Exception):  # noqa: B017 (whatever then goes wrong first)
        assert LIE not in _explained(session, "age > ?", hostile)
    monkeypatch.undo()
    assert LIE not in _explained(session, "age > ?", hostile)
    assert parameters.builtin(hostile) == 5003
