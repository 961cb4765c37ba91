"""Whatever goes wrong with a ledger, no client is told where it is or what is in it, over both faces."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sqlite3
import typing
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from callers import Caller, caller
from endpoint import PASSWORD, ROLE, generous
from support.services import real_service
from talk import Client, FixedHouse, query

import dpsql
from dpsql.diagnostics.refusal import LedgerFailed, PolicyError
from dpsql.ledger import failures, postgres_failures
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.service import Service, Session

MARK = "7391"
FILE, SERVER = Path(f"/mnt/folder{MARK}/shop{MARK}.db"), f"host{MARK}/base{MARK}/schema{MARK}"
COUNT = "SELECT count(*) FROM orders WHERE amount > {}"


def _sqlite_errors() -> list[sqlite3.Error]:
    found = []
    for code in (*failures._SQLITE, sqlite3.SQLITE_NOLFS):
        error = sqlite3.OperationalError(f"{FILE}: failed")
        error.sqlite_errorcode = code
        found.append(error)
    return found


def _server_errors() -> list[Exception]:
    states = (*postgres_failures._STATES, *(f"{s}000" for s in postgres_failures._CLASSES), "22000")
    kinds = [psycopg.errors.lookup(s) if s in _KNOWN else _with_state(s) for s in states]
    said = f"connection to {SERVER} failed"
    return [
        *(kind(said) for kind in kinds),
        psycopg.OperationalError(said),
        postgres_failures.Hung(said),
    ]


_KNOWN = frozenset(postgres_failures._STATES)


def _with_state(state: str) -> type[psycopg.Error]:
    return type("WithState", (psycopg.OperationalError,), {"sqlstate": state})


VALUES: dict[object, list[Any]] = {
    Path: [FILE],
    failures.Place: [FILE, SERVER],
    str: [f"word{MARK}"],
    int: [int(MARK)],
    float: [float(MARK)],
    datetime: [datetime(int(MARK), 1, 1, tzinfo=UTC)],
    sqlite3.Error: _sqlite_errors(),
    OSError: [PermissionError(13, f"denied {MARK}", str(FILE))],
    Exception: _server_errors(),
}
"""What failures are made of: each value has the mark."""


def _makers() -> dict[str, Callable[..., LedgerFailed]]:
    """All functions that say what is wrong with a ledger."""
    found = {}
    for module in (failures, postgres_failures):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = function.__module__ == module.__name__ and not name.startswith("_")
            if own and typing.get_type_hints(function)["return"] is LedgerFailed:
                found[f"{module.__name__.rpartition('.')[2]}.{name}"] = function
    return found


def _made(maker: Callable[..., LedgerFailed]) -> Iterator[LedgerFailed]:
    hints = typing.get_type_hints(maker)
    del hints["return"]
    for values in itertools.product(*(VALUES[kind] for kind in hints.values())):
        yield maker(*values)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with real_service("shop", "shop", generous) as found:
        yield found


@pytest.fixture(scope="module")
def http(service: Service) -> Caller:
    return caller(service, ROLE)


def _sent(service: Service, http: Caller, number: int) -> list[bytes]:
    """All bytes of a question over each face, and of the budget and readiness."""
    client = Client(FixedHouse(ServiceEndpoint(service, role_catalog)))
    client.login(ROLE, PASSWORD)
    client.send(query(COUNT.format(number)))
    asked = [
        http.post("/v1/query", json={"sql": COUNT.format(number)}),
        http.get("/v1/budget"), http.get("/readyz"), http.get("/healthz"),
    ]  # fmt: skip
    return [client.received, *(f"{one.headers}".encode() + one.content for one in asked)]


@pytest.mark.parametrize("name", _makers())
def test_no_failure_of_a_ledger_tells_a_client_where_it_is(
    name: str, service: Service, http: Caller, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level("INFO", "dpsql.operator")
    for failure in _made(_makers()[name]):

        def failing(*_: object, failure: LedgerFailed = failure, **__: object) -> None:
            raise failure

        with monkeypatch.context() as patch:
            for way in ("reserve", "balances", "probe"):
                patch.setattr(SqliteLedger, way, failing)
            sent = _sent(service, http, 8000)
        wire, answer, budget, _, _ = sent
        for said in (wire, answer, budget):
            assert b"DP902" in said
            assert failure.client_headline.encode() in said
            assert b"tell the operator" in said
        for said in sent:
            assert MARK.encode() not in said, said
        logged = [m for m in caplog.messages if m.startswith("ledger_unusable")]
        caplog.clear()
        assert len(logged) == 3
        for line in logged:
            assert MARK in line, "the operator is told where"
            assert re.search(r' instead="\w', line)


def _put_together(source: str) -> list[int]:
    """The lines on which the words for clients are neither written down nor from a table of such."""
    kinds = {"LedgerFailed", "LedgerDamaged", "kind"}
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in kinds
        and not (node.args and _is_written_down(node.args[0]))
    ]


def _is_written_down(node: ast.expr) -> bool:
    """A literal, ``wrong`` (from a table), or a part of a constant."""
    if isinstance(node, ast.Subscript):
        node = node.value
    named = isinstance(node, ast.Name) and (node.id == "wrong" or node.id.lstrip("_").isupper())
    return named or isinstance(node, ast.Constant)


def test_words_for_clients_are_written_down() -> None:
    calls = 0
    for file in Path(dpsql.__file__).parent.rglob("*.py"):
        source = file.read_text()
        if "LedgerFailed" in source:
            assert not _put_together(source), file
            calls += len(re.findall(r"Ledger(?:Failed|Damaged)\(", source))
    assert calls > 30


@pytest.mark.parametrize(
    "words", ['f"the ledger {path}"', '"the ledger " + path', "str(path)", "path", ""]
)
def test_words_that_are_put_together_are_noticed(words: str) -> None:
    assert _put_together(f"raise LedgerFailed({words})") == [1]


def test_an_error_that_clients_have_no_words_for_is_told_as_a_defect(
    service: Service, http: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Problems of a policy have its path, and those of processes their command."""

    def failing(*_: object, **__: object) -> None:
        raise PolicyError(f"{FILE}:1:1: wrong")

    monkeypatch.setattr(Session, "execute", failing)
    monkeypatch.setattr(Session, "prepare", failing)
    wire, answer, *_ = _sent(service, http, 8001)
    for said in (wire, answer):
        assert b"a defect in dpsql (incident " in said
        assert MARK.encode() not in said
