"""Answers that serve again: for how long, and which never do."""

from __future__ import annotations

import pyarrow as pa
from support.services import SpyEngine

from dpsql.engines.repeated import Repeated


def _spy() -> SpyEngine:
    return SpyEngine(lambda _: pa.table({"p0": [1]}), public=lambda _: pa.table({"v": [2]}))


def test_an_answer_serves_so_many_times() -> None:
    spy = _spy()
    engine = Repeated(spy, 3)
    first = [engine.measure("SELECT 1", {}) for _ in range(3)]
    assert first[0] is first[1] is first[2]
    assert engine.measure("SELECT 1", {}) is not first[0]
    assert spy.calls == ["measure", "measure"]


def test_another_statement_or_another_salt_is_run() -> None:
    spy = _spy()
    engine = Repeated(spy, 10)
    for sql, salt in (("SELECT 1", 1), ("SELECT 1", 2), ("SELECT 2", 2), ("SELECT 1", 1)):
        engine.measure(sql, {"salt": salt})
    assert spy.statements == ["SELECT 1", "SELECT 1", "SELECT 2", "SELECT 1"]


def test_all_else_is_the_engines() -> None:
    spy = _spy()
    engine = Repeated(spy, 10)
    assert engine.describe().tables == {}
    assert engine.read_public("SELECT 2").to_pydict() == {"v": [2]}
    engine.close()
    assert spy.calls == ["describe", "read public", "close"]
