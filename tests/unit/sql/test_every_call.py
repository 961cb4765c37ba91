"""Every function that is read, in each dialect, of no values to five: answered or refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from sqlglot import exp, parse_one
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from support.services import service

from dpsql.diagnostics.refusal import Refused
from dpsql.service import Session
from dpsql.sql.allow import ALLOWED
from dpsql.sql.bind import operators
from dpsql.sql.dialects.tables import DIALECTS

FEW = ("", "city", "NULL, NULL", "city, 'x', 'y'", "age, 1, 2, 3")
MORE = (
    "age", "NULL", "city, 'x'", "'day', DATE '2024-05-01'", "age, 2", "DATE '2024-05-01', 1, 'day'",
    "city, 'x', 'y', 1", "age, 1, 2, 3, 4",
)  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with service("oracle", "shop") as here:
        yield here.session("oracle")


def _functions(dialect: str) -> Iterator[str]:
    """Names that the parser reads as a node that dpsql reads; one for calls that it reads alike."""
    parser = Dialect.get_or_raise(dialect).parser_class
    known = {*ALLOWED, *DIALECTS[dialect].changes}
    seen = set[str]()
    for name in sorted({*parser.FUNCTIONS, *parser.FUNCTION_PARSERS}):
        nodes = list(_read(name, dialect))
        if any(type(node) in known for node in nodes) and repr(nodes) not in seen:
            seen.add(repr(nodes))
            yield name


def _read(name: str, dialect: str) -> Iterator[exp.Expr]:
    for arguments in ("a", "a, b", "a, b, c"):
        try:
            yield parse_one(f"{name}({arguments})", dialect=dialect)
        except (SqlglotError, LookupError, AttributeError, TypeError):  # parsers of calls fail, too
            continue


def _prepare(session: Session, call: str) -> None:
    session.prepare(f"SELECT COUNT(*) FROM customers WHERE {call} IS NOT NULL")


def _ask(session: Session, dialect: str, every: Sequence[str], step: int = 1) -> int:
    """How many calls were asked about; each is answered or refused."""
    session.execute(f"SET dpsql.dialect = '{dialect}'")
    names = itertools.islice(_functions(dialect), [*DIALECTS].index(dialect) % step, None, step)
    calls = [f"{name}({arguments})" for name in names for arguments in every]
    for call in calls:
        try:
            _prepare(session, call)
        except Refused:
            continue
        except Exception as error:
            raise AssertionError(f"{dialect}: {call}") from error
    return len(calls)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_of_any_length_is_answered_or_refused(
    session: Session, dialect: str, step: int
) -> None:
    assert _ask(session, dialect, FEW, step) > 400 / step


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_of_other_kinds_is_answered_or_refused(session: Session, dialect: str) -> None:
    assert _ask(session, dialect, MORE) > 400


def test_a_call_that_fails_is_noticed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "_TRIMS", {})
    monkeypatch.setattr(operators, "_side", lambda node: node.args["no such argument"])
    with pytest.raises(AssertionError, match="TRIM"):
        _ask(session, "postgres", ("city, 'z'",))
