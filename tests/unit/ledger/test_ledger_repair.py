"""A ledger that a wrong clock dated into the future goes on, and nobody gains by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from ledger_world import EVENT, NOTE, make_account, pure

from dpsql.diagnostics.refusal import LedgerFailed, OutOfBudget
from dpsql.ledger import rows
from dpsql.ledger.accounts import begin_of, window_now
from dpsql.ledger.repair import put_clock_right

NOW = datetime(2026, 11, 18, 14, tzinfo=UTC)
DATASET = make_account("dataset", 10)


def role(window: str):
    return make_account(f"role:growth@{window}", 1)


def ask(ledger, *accounts, epsilon="0.5"):
    return ledger.reserve(accounts, pure(epsilon), [EVENT], NOTE, start=True)


def spent(ledger, account) -> float:
    return float(ledger.balances((account,))[0].spent.epsilon / 10**9)


def repair(ledger, now=NOW):
    return ledger.amend(lambda db: put_clock_right(db, now))


def test_what_was_charged_in_the_future_counts_in_the_present_window(opened, clock):
    ledger = opened()
    ledger.commit(ask(ledger, DATASET, role("2026-11"), epsilon="0.25"))
    clock.turn(days=1500)
    future = role("2030-12")
    ledger.commit(ask(ledger, DATASET, future))
    cancelled = ledger.reserve((DATASET, future), pure("0.5"), [EVENT], NOTE)
    ledger.cancel(cancelled)
    ledger.close()
    clock.now = NOW
    with pytest.raises(LedgerFailed, match="run dpsql ledger repair"):
        opened()
    ledger = opened(settle=False)
    found = repair(ledger)
    assert found is not None
    assert found.was == NOW + timedelta(days=1500)
    assert list(found.added) == [role("2026-11").id]
    assert (spent(ledger, role("2026-11")), spent(ledger, future)) == (0.75, 0.5)
    assert spent(ledger, DATASET) == 0.75
    ledger.close()
    ledger = opened()
    with pytest.raises(OutOfBudget):
        ask(ledger, DATASET, role("2026-11"))
    ledger.commit(ask(ledger, DATASET, role("2026-11"), epsilon="0.25"))
    assert ledger.verify().sound
    [record] = [r.content for r in ledger.events() if r.content.get("owner") == "clock put right"]
    assert record["was"] == "2030-12-27T14:00:00.000000+00:00"


def test_a_repaired_ledger_again_does_not_run_backwards(opened, clock):
    ledger = opened()
    clock.turn(days=400)
    ledger.commit(ask(ledger, DATASET))
    clock.now = NOW
    repair(ledger)
    clock.turn(hours=-2)
    with pytest.raises(LedgerFailed, match="clock"):
        ask(ledger, DATASET)
    clock.turn(hours=3)
    ask(ledger, DATASET)
    clock.turn(hours=-1)
    with pytest.raises(LedgerFailed, match="clock"):
        ask(ledger, DATASET)


def test_charges_are_not_moved_twice(opened, clock):
    ledger = opened()
    clock.turn(days=400)
    ledger.commit(ask(ledger, role("2027-12"), epsilon="0.25"))
    clock.now = NOW
    assert repair(ledger).added
    clock.turn(days=300)
    ledger.commit(ask(ledger, role("2027-09"), epsilon="0.25"))
    clock.now = NOW
    assert list(repair(ledger).added) == [role("2026-11").id]
    assert spent(ledger, role("2026-11")) == 0.5
    assert ledger.verify().sound


def test_the_first_charge_after_a_repair_without_charges_is_moved(opened, clock):
    """It catches a first repair that takes the first charge to come for one that it has moved."""
    ledger = opened()
    ledger.amend(lambda db: rows.put_meta(db, rows.CLOSED, rows.stamp(NOW + timedelta(days=99))))
    assert repair(ledger).added == {}
    clock.turn(days=400)
    begins = NOW + timedelta(days=370)
    later = make_account("role:growth@2027-12", 1, begins=begins)
    ledger.commit(ask(ledger, later, epsilon="0.25"))
    clock.now = NOW
    assert list(repair(ledger).added) == [role("2026-11").id]
    assert spent(ledger, role("2026-11")) == 0.25


def test_there_is_nothing_to_repair(opened):
    ledger = opened()
    assert repair(ledger) is None
    ask(ledger, DATASET)
    assert repair(ledger) is None
    assert [record.content.get("owner") for record in ledger.events()] == [None]


def test_accounts_that_were_closed_in_the_future_are_closed_now(opened, clock):
    ledger = opened()
    ledger.amend(lambda db: rows.put_meta(db, rows.CLOSED, rows.stamp(NOW + timedelta(days=99))))
    assert repair(ledger) is not None
    tomorrow = make_account("role:growth@2026-11-19", begins=NOW + timedelta(hours=10))
    assert [b.closed for b in ledger.balances((DATASET, tomorrow))] == [True, False]
    assert repair(ledger) is None


def test_the_present_window_of_an_account():
    now = datetime(2026, 12, 31, 23, 30, tzinfo=UTC).astimezone(ZoneInfo("Europe/Vienna"))
    windows = [window_now(f"s/a@{w}", now) for w in ("2031-01-01", "2031-W05", "2031-02", "2031")]
    assert windows == ["s/a@2027-01-01", "s/a@2026-W53", "s/a@2027-01", "s/a@2027"]
    assert window_now("s/a", now) == "s/a"
    assert [begin_of(per, now).date().isoformat() for per in ("day", "week", "month", "year")] == [
        "2027-01-01", "2026-12-28", "2027-01-01", "2027-01-01",
    ]  # fmt: skip
    assert begin_of(None, now) is None


def test_a_repair_that_fails_changes_nothing(opened, clock, monkeypatch):
    ledger = opened()
    clock.turn(days=400)
    ledger.commit(ask(ledger, role("2027-12")))
    clock.now = NOW

    def killed(*_):
        raise KeyboardInterrupt

    before = list(ledger.events())
    with monkeypatch.context() as patch:
        patch.setattr(rows, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            repair(ledger)
    assert list(ledger.events()) == before
    assert spent(ledger, role("2026-11")) == 0
    assert ledger.verify().sound
    assert repair(ledger).added
