"""The laws of every ledger store. A new store adds one line to ``STORES``."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from postgres_server import shared_server

from dpsql.diagnostics.refusal import LedgerFailed, OutOfBudget
from dpsql.ledger import rows
from dpsql.ledger.accounts import Account
from dpsql.ledger.charge import ATTO, NANO, Charge
from dpsql.ledger.postgres import PostgresLedger
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Hold, Ledger, Note, RecallKey
from dpsql.ledger.tables import TableLedger
from dpsql.privacy.accounting import rho_of_pure
from dpsql.privacy.cost import Cost

NOTE = Note("v1", "growth", "daily", "SELECT COUNT(*) FROM orders")
EVENTS = ['{"event": "laplace", "l1": "1", "scale": "2"}', '{"event": "threshold"}']
Open = Callable[[], Ledger]


class Clock:
    now = datetime(2026, 11, 18, 14, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def sqlite_store(directory: Path, clock: Clock) -> Ledger:
    return SqliteLedger.open(directory / "shop.ledger", clock)


def postgres_store(directory: Path, clock: Clock) -> Ledger:
    return PostgresLedger.open(shared_server().dsn, clock, schema=directory.name)


STORES = {"sqlite": sqlite_store, "postgres": postgres_store}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=STORES)
def opened(request, tmp_path, clock) -> Iterator[Open]:
    """Opens the same store again and again, as several processes or restarts would."""
    ledgers: list[Ledger] = []

    def opener() -> Ledger:
        ledgers.append(STORES[request.param](tmp_path, clock))
        return ledgers[-1]

    yield opener
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def ledger(opened: Open) -> Ledger:
    return opened()


def account(key: str = "dataset", epsilon: int = 1, delta: int = 0) -> Account:
    return Account(f"shop/{key}", "dataset", "", "", epsilon * NANO, delta, zcdp=delta > 0)


DATASET, ROLE, SESSION = account("dataset", 20), account("role:growth", 3), account("session:g/d")
ALL = (DATASET, ROLE, SESSION)
HALF = Cost(epsilon=Fraction(1, 2), rho=rho_of_pure(Fraction(1, 2)))


def spent(ledger: Ledger, *accounts: Account) -> list[Fraction]:
    return [Fraction(b.spent.epsilon, NANO) for b in ledger.balances(accounts or ALL)]


def states(ledger: Ledger) -> list[str]:
    return [record.content["state"] for record in ledger.events()]


def reserve(ledger: Ledger, cost: Cost = HALF, *, start: bool = False) -> Hold:
    return ledger.reserve(ALL, cost, EVENTS, NOTE, start=start)


def test_a_fresh_ledger_has_spent_nothing(ledger):
    assert spent(ledger) == [0, 0, 0]
    assert list(ledger.events()) == []
    assert ledger.recall("k") is None
    assert ledger.verify().sound
    assert ledger.affordable(ALL) == 1
    assert ledger.balances(()) == ()


def test_a_reservation_debits_every_account(ledger):
    hold = reserve(ledger)
    assert spent(ledger) == [Fraction(1, 2)] * 3
    assert hold.accounts == tuple(a.id for a in ALL)
    assert hold.charge == Charge.of(HALF)
    assert ledger.affordable(ALL) == Fraction(1, 2)


def test_a_refused_reservation_debits_none(ledger):
    for _ in range(2):
        reserve(ledger)
    before = list(ledger.events())
    with pytest.raises(OutOfBudget, match="DP402") as caught:
        reserve(ledger)
    assert caught.value.sqlstate == "53400"
    assert spent(ledger) == [1, 1, 1]
    assert list(ledger.events()) == before
    assert ledger.affordable(ALL) == 0


def test_the_life_of_an_answered_query(ledger):
    hold = reserve(ledger)
    ledger.start(hold)
    ledger.commit(hold, {RecallKey("key"): b"answer"})
    assert states(ledger) == ["reserved", "started", "committed"]
    assert ledger.recall("key") == b"answer"
    assert ledger.recall("other") is None
    assert spent(ledger) == [Fraction(1, 2)] * 3
    assert ledger.verify().sound


def test_reserve_and_start_at_once(ledger):
    hold = reserve(ledger, start=True)
    assert states(ledger) == ["started"]
    with pytest.raises(LedgerFailed):
        ledger.cancel(hold)
    ledger.commit(hold)
    assert states(ledger) == ["started", "committed"]


def test_a_cancelled_hold_is_refunded_and_a_forfeited_one_is_not(ledger):
    cancelled, forfeited, failed = reserve(ledger, Cost()), reserve(ledger), reserve(ledger)
    ledger.cancel(cancelled)
    ledger.cancel(forfeited)
    assert spent(ledger) == [Fraction(1, 2)] * 3
    ledger.start(failed)
    ledger.forfeit(failed)
    assert spent(ledger) == [Fraction(1, 2)] * 3
    never_started = reserve(ledger)
    ledger.forfeit(never_started)
    assert spent(ledger) == [1, 1, 1]
    assert ledger.verify().sound


@pytest.mark.parametrize(
    ("path", "move"),
    [
        ("", "commit"),
        ("start", "start"),
        ("start", "cancel"),
        ("start commit", "commit"),
        ("start commit", "cancel"),
        ("start forfeit", "commit"),
        ("start forfeit", "cancel"),
        ("cancel", "start"),
        ("cancel", "cancel"),
        ("cancel", "forfeit"),
        ("forfeit", "start"),
    ],
)
def test_moves_outside_the_table_change_nothing(ledger, path, move):
    hold = reserve(ledger)
    for step in path.split():
        getattr(ledger, step)(hold)
    before, balance = list(ledger.events()), spent(ledger)
    with pytest.raises(LedgerFailed, match="cannot become"):
        getattr(ledger, move)(hold)
    assert (list(ledger.events()), spent(ledger)) == (before, balance)
    assert ledger.verify().sound


def test_an_unknown_hold_goes_nowhere(ledger):
    with pytest.raises(LedgerFailed, match="unknown"):
        ledger.start(Hold(77, (DATASET.id,), Charge()))


def test_a_refund_is_what_was_charged_whatever_the_caller_says(ledger):
    hold = reserve(ledger)
    forged = Hold(hold.id, (DATASET.id,), Charge(epsilon=20 * NANO))
    ledger.cancel(forged)
    assert spent(ledger) == [0, 0, 0]
    assert ledger.verify().sound


def test_the_newest_release_of_a_key_is_recalled(ledger):
    for body in (b"one", b"two", b""):
        ledger.commit(reserve(ledger, Cost(), start=True), {RecallKey("key"): body})
        assert ledger.recall("key") == body
    assert ledger.verify().sound


def test_releases_of_a_family_are_found_with_their_noise_and_their_time(ledger, clock):
    for noise in (3.0, 1.5):
        key = RecallKey(f"k{noise}", "family", (noise, 2.0))
        ledger.commit(reserve(ledger, Cost(), start=True), {key: b"answer"})
        clock.now += timedelta(hours=1)
    ledger.commit(reserve(ledger, Cost(), start=True), {RecallKey("other", "others"): b"answer"})
    found = ledger.related_releases(["family"])
    assert [kept.key.noise for kept in found] == [(1.5, 2.0), (3.0, 2.0)]
    assert [kept.key.key for kept in found] == ["k1.5", "k3.0"]
    assert found[1].since == datetime(2026, 11, 18, 14, tzinfo=UTC)
    assert ledger.related_releases(["none"]) == ()


def test_the_pieces_of_one_answer_are_kept_together_and_replaced_apart(ledger):
    one, two = RecallKey("one", "f", (1.0,), "rows", "by day"), RecallKey("two", "g", (2.0,))
    ledger.commit(reserve(ledger, Cost(), start=True), {one: b"1", two: b"2"})
    other = RecallKey("two", "g", (3.0,), "rows", "by week")
    ledger.commit(reserve(ledger, Cost(), start=True), {other: b"3"})
    assert (ledger.recall("one"), ledger.recall("two")) == (b"1", b"3")
    assert ledger.verify().sound
    assert [kept.key for kept in ledger.related_releases(["f", "g"])] == [other, one]
    assert [kept.key for kept in ledger.related_releases(["f"], ["rows"])] == [one, other, one]
    assert ledger.related_releases([], [""]) == ()


def test_an_answer_may_be_kept_nowhere(ledger):
    ledger.commit(reserve(ledger, start=True))
    assert ledger.related_releases([""]) == ()
    assert ledger.verify().sound


def test_misuse_is_noticed_before_anything_is_written(ledger):
    with pytest.raises(ValueError, match="several different ones"):
        ledger.reserve((DATASET, DATASET), HALF, EVENTS, NOTE)
    with pytest.raises(ValueError, match="debits one account"):
        ledger.reserve((), HALF, EVENTS, NOTE)
    with pytest.raises(json.JSONDecodeError):
        ledger.reserve(ALL, HALF, ["{"], NOTE)
    assert spent(ledger) == [0, 0, 0]


def test_everything_survives_a_restart(opened):
    ledger = opened()
    ledger.commit(reserve(ledger, start=True), {RecallKey("key"): b"answer"})
    before = list(ledger.events())
    ledger.close()
    again = opened()
    assert again.recall("key") == b"answer"
    assert spent(again) == [Fraction(1, 2)] * 3
    assert list(again.events()) == before
    assert again.verify().sound


def test_a_restart_settles_what_was_open_as_spent(opened):
    ledger = opened()
    reserve(ledger)
    reserve(ledger, start=True)
    ledger.close()
    again = opened()
    assert states(again) == ["reserved", "started", "forfeited", "forfeited"]
    assert spent(again) == [1, 1, 1]
    assert again.verify().sound


def test_a_second_store_on_the_same_data_leaves_living_holds_alone(opened):
    one = opened()
    hold = reserve(one, start=True)
    two = opened()
    assert spent(two) == [Fraction(1, 2)] * 3
    one.commit(hold, {RecallKey("key"): b"answer"})
    assert two.recall("key") == b"answer"
    two.cancel(reserve(two))
    assert one.verify() == two.verify()


def test_a_new_window_is_a_new_account_and_the_old_one_remains(ledger):
    november, december = account("role:growth@2026-11"), account("role:growth@2026-12")
    ledger.reserve((november,), HALF, EVENTS, NOTE)
    assert spent(ledger, november, december) == [Fraction(1, 2), 0]


def test_new_limits_apply_to_what_was_spent_before(ledger):
    for _ in range(2):
        reserve(ledger)
    wider = (DATASET, ROLE, account("session:g/d", 2))
    assert ledger.affordable(wider) == 1
    ledger.reserve(wider, HALF, EVENTS, NOTE)
    narrower = (account("dataset", 1), ROLE)
    assert ledger.affordable(narrower) == 0
    with pytest.raises(OutOfBudget):
        ledger.reserve(narrower, Cost(epsilon=Fraction(1, NANO)), EVENTS, NOTE)


def test_many_small_charges_compose_in_rho(ledger):
    zcdp = account("dataset", 1, ATTO // 10**6)
    tenth = Fraction(1, 10)
    small = Cost(epsilon=tenth / 10, rho=rho_of_pure(tenth / 10))
    for _ in range(420):  # a hundred would be basic composition's limit
        ledger.reserve((zcdp,), small, [], NOTE)
    with pytest.raises(OutOfBudget):
        ledger.reserve((zcdp,), Cost(small.epsilon * 20, rho=small.rho * 20), [], NOTE)
    [balance] = ledger.balances((zcdp,))
    assert balance.guarantee[0] <= 1 < Fraction(balance.spent.epsilon, NANO)


def test_records_say_who_asked_what_under_which_policy(ledger):
    reserve(ledger)
    [record] = ledger.events()
    content = record.content
    assert content["charge"] == list(Charge.of(HALF).numbers)
    assert content["accounts"] == [a.id for a in ALL]
    assert content["events"] == [json.loads(event) for event in EVENTS]
    assert (content["policy"], content["role"], content["session"]) == ("v1", "growth", "daily")
    assert content["statement"] == NOTE.statement
    assert content["time"] == "2026-11-18T14:00:00.000000+00:00"


def test_records_are_read_from_where_one_stopped(ledger):
    for _ in range(3):
        ledger.cancel(reserve(ledger))
    assert [record.seq for record in ledger.events(after=4)] == [5, 6]
    assert [record.seq for record in ledger.latest(2)] == [5, 6]


def test_a_noted_hash_stays_in_the_chain(ledger):
    reserve(ledger)
    noted = ledger.verify().head
    reserve(ledger)
    assert ledger.verify(noted).sound
    assert not ledger.verify("0" * 63 + "1").sound


def test_a_clock_set_back_stops_everything_and_loses_nothing(opened, clock):
    ledger = opened()
    clock.now -= timedelta(days=30)
    ledger.reserve((DATASET,), Cost(), EVENTS, NOTE)
    clock.now += timedelta(days=30)
    reserve(ledger)
    clock.now -= timedelta(seconds=59)
    reserve(ledger)  # everyday corrections pass
    clock.now -= timedelta(seconds=2)
    with pytest.raises(LedgerFailed, match="clock"):
        ledger.reserve((DATASET,), HALF, EVENTS, NOTE)
    with pytest.raises(LedgerFailed, match="clock"):
        opened()
    clock.now += timedelta(days=1)
    assert spent(opened()) == [1, 1, 1]
    times = [record.content["time"] for record in ledger.events()]
    assert times == sorted(times)


def test_a_ledger_belongs_to_one_dataset(ledger):
    other = Account("clinic/dataset", "dataset", "", "", NANO, 0, zcdp=False)
    with pytest.raises(OutOfBudget):  # what is refused leaves no trace
        ledger.reserve((other,), Cost(epsilon=Fraction(2)), EVENTS, NOTE)
    with pytest.raises(LedgerFailed, match="belongs to"):
        ledger.reserve((DATASET, other), HALF, EVENTS, NOTE)
    reserve(ledger)
    with pytest.raises(LedgerFailed, match='belongs to another policy file: to "shop"'):
        ledger.reserve((other,), HALF, EVENTS, NOTE)
    assert spent(ledger, DATASET, other) == [Fraction(1, 2), 0]


def test_a_closed_ledger_answers_nothing(ledger):
    hold = reserve(ledger)
    ledger.close()
    ledger.close()
    for call in (lambda: reserve(ledger), lambda: ledger.start(hold), lambda: spent(ledger)):
        with pytest.raises(LedgerFailed, match="is closed"):
            call()


def test_threads_together_get_what_there_is_and_no_more(opened):
    ledgers = [opened(), opened()]
    one = Cost(epsilon=Fraction(1, 100))
    granted: list[int] = []

    def ask(ledger: Ledger) -> None:
        for _ in range(20):
            try:
                hold = ledger.reserve(ALL, one, EVENTS, NOTE, start=True)
            except OutOfBudget:
                continue
            granted.append(hold.id)
            ledger.commit(hold, {RecallKey(str(hold.id)): b"x"})

    threads = [threading.Thread(target=ask, args=(ledgers[i % 2],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(granted)) == len(granted) == 100
    assert spent(ledgers[0]) == [1, 1, 1]
    assert ledgers[0].verify().sound
    assert states(ledgers[0]).count("committed") == 100


def test_the_secret_stays_and_a_damaged_one_is_noticed(opened: Open) -> None:
    """It is made once, whoever asks first, and no record or balance knows of it."""
    first, second = opened(), opened()
    found = first.secret()
    assert len(found) == 32
    assert second.secret() == found == opened().secret()
    assert first.verify().sound
    assert not first.verify().records
    assert isinstance(first, TableLedger)
    assert first.amend(rows.make_secret) == found, "whoever comes second takes the first one's"
    first.amend(lambda db: rows.put_meta(db, "secret", f"{bytes(32).hex()}:{found.hex()}"))
    with pytest.raises(LedgerFailed, match="damaged"):
        first.secret()
    with pytest.raises(LedgerFailed, match="damaged"):
        first.verify()


def test_a_ledger_says_how_large_it_is(ledger):
    before = ledger.size()
    reserve(ledger)
    assert ledger.size().records == before.records + 1
    assert 1_000 < before.bytes <= ledger.size().bytes
