"""Statements over tables without rows: bound once, and again where the columns differ."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.corpus import SHOP
from support.services import service

from dpsql.diagnostics.refusal import EngineFailed
from dpsql.release import postprocess
from dpsql.release.dry_run import dry_run
from dpsql.release.finish import finish
from dpsql.release.postprocess import PostProcessor

NUMBERS = {"m0": pa.schema([("a", pa.int64())]).empty_table()}
TEXTS = {"m0": pa.schema([("a", pa.string())]).empty_table()}
HALVES = "SELECT a // 2 AS half FROM m0"


def test_what_was_bound_is_not_bound_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postprocess, "MOST_BOUND", 2)
    here, ran = PostProcessor(), list[str]()
    run = here.run
    monkeypatch.setattr(here, "run", lambda sql, *more: ran.append(sql) or run(sql, *more))
    assert here.bind(HALVES, NUMBERS).schema == here.bind(HALVES, NUMBERS).schema
    assert ran == [HALVES]
    with pytest.raises(EngineFailed):
        here.bind(HALVES, TEXTS)
    for sql in ("SELECT a FROM m0", "SELECT a AS b FROM m0", HALVES):
        here.bind(sql, NUMBERS)
    assert ran[2:] == ["SELECT a FROM m0", "SELECT a AS b FROM m0", HALVES]


QUESTIONS = (
    "SELECT country, AVG(age), DP_INTERVAL_LOW(COUNT(*)) FROM customers GROUP BY country",
    "SELECT MEDIAN(amount), MIN(channel) FROM orders",
    "SELECT channel, placed, COUNT(*) FROM orders GROUP BY CUBE (channel, placed)",
    "SELECT COUNT(*) FROM orders WHERE channel IN (SELECT channel FROM orders GROUP BY channel HAVING COUNT(*) > 5)",
    "SELECT country FROM countries ORDER BY population LIMIT 3",
    "SELECT COUNT(*) FROM countries WHERE EXISTS (SELECT 1 FROM (SELECT COUNT(*) AS n FROM customers) AS t WHERE n > 0)",
)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_dry_run_reads_and_draws_nothing(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = service(SHOP.policy, SHOP.data, SHOP.change)
    session = here.session()
    session.execute("SET dpsql.consistent = on")
    plan = session.prepare(sql)
    for name in ("read_public", "measure"):
        monkeypatch.setattr(here.tools.engine, name, lambda *_: pytest.fail("the engine was asked"))
    dry_run(plan, PostProcessor(), finish)
