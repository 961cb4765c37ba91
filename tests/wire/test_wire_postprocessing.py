"""Statements that would run for ever over released tables end by timeout, cancel and leaving; others go on."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from endpoint import Endpoint, endpoint
from support.waiting import wait_until

from dpsql.execution import _RUNNING

GROUPS = "WITH g AS (SELECT placed, COUNT(*) AS n FROM orders GROUP BY placed)"
SMALL = f"{GROUPS} SELECT SUM(n) FROM g"
ENDLESS = f"{GROUPS} SELECT SUM(a.n * b.n * c.n * d.n) FROM g AS a, g AS b, g AS c, g AS d"
KEEP = "SET dpsql.empty_groups = 'keep'"
"""So that groups are as many as the policy lists, whatever their noise."""
ROWS = f"{GROUPS} SELECT a.n, b.n, c.n, d.n FROM g AS a, g AS b, g AS c, g AS d"
LONG = 30.0


def _answered(where: Endpoint) -> bool:
    with psycopg.connect(where.dsn()) as other:
        return other.execute(SMALL).fetchone() is not None


def test_eight_self_joins_of_stored_groups_keep_nobody_waiting() -> None:
    """They are more than there are workers; half of them time out, the others leave or are cancelled."""
    with endpoint() as where:
        assert _answered(where)

        def timed_out(_: int) -> str | None:
            with psycopg.connect(where.dsn(), autocommit=True) as mine:
                mine.execute("SET statement_timeout = '1s'")
                mine.execute(KEEP)
                with pytest.raises(psycopg.errors.QueryCanceled) as told:
                    mine.execute(ENDLESS)
                assert mine.execute(SMALL).fetchone() is not None
                return told.value.diag.message_primary

        with ThreadPoolExecutor(8) as threads:
            said = list(threads.map(timed_out, range(8)))
        assert set(said) == {"canceling statement due to statement timeout"}
        assert wait_until(lambda: not _RUNNING, LONG)

        leaving = [psycopg.connect(where.dsn()) for _ in range(4)]
        for each in leaving:
            each.execute(KEEP)
            each.pgconn.send_query(ENDLESS.encode())
            each.pgconn.flush()
        assert wait_until(lambda: bool(_RUNNING), LONG)
        for each in leaving[:2]:
            each.close()
        for each in leaving[2:]:
            each.cancel_safe()
        assert wait_until(lambda: not _RUNNING, LONG)
        for each in leaving:
            each.close()
        assert _answered(where)


def test_an_answer_of_too_many_rows_ends_and_less_of_it_is_free() -> None:
    with endpoint() as where:
        for part in where.service.tools.postprocessor._parts:
            part.room.most = 5_000_000
        with psycopg.connect(where.dsn(), autocommit=True) as mine:
            mine.execute(KEEP)
            with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="DP905") as told:
                mine.execute(ROWS)
            assert "LIMIT" in (told.value.diag.message_hint or "")
            assert "asking again is free" in (told.value.diag.message_detail or "")
            assert len(mine.execute(f"{ROWS} LIMIT 1000").fetchall()) == 1000
        assert [r.content["state"] for r in where.service.ledger.events() if r.hold] == [
            "started", "committed",
        ]  # fmt: skip


def test_the_server_ends_while_they_run() -> None:
    with endpoint() as where:
        assert _answered(where)
        client = psycopg.connect(where.dsn())
        client.execute(KEEP)
        failed = list[BaseException]()

        def ask() -> None:
            try:
                client.execute(ENDLESS)
            except psycopg.Error as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        assert wait_until(lambda: bool(_RUNNING), LONG)
        begun = time.monotonic()
    assert time.monotonic() - begun < LONG
    thread.join(LONG)
    assert failed
    assert not _RUNNING
    client.close()
