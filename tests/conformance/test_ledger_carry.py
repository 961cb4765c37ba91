"""An edit of windows or of the time zone gives nothing back that was spent within the present window."""

from __future__ import annotations

import random  # noqa: TID251 (which edits are tried needs no good randomness)
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from support.services import policy
from test_ledger_store import NOTE, STORES, Clock, Open

from dpsql.diagnostics.refusal import PolicyError
from dpsql.ledger import carry, rows, tables
from dpsql.ledger.accounts import accounts_for, begin_of
from dpsql.ledger.chain import OWNER
from dpsql.ledger.charge import NANO
from dpsql.ledger.store import Hold, Ledger
from dpsql.ledger.tables import TableLedger
from dpsql.ledger.terms import adopt, below_spent
from dpsql.policy.model import Policy
from dpsql.privacy.accounting import rho_of_pure
from dpsql.privacy.cost import Cost

WINDOWS = ("day", "week", "month", "year", None)
_POLICIES: dict[tuple[str | None, str, str], Policy] = {}


def windowed(per: str | None, zone: str = "UTC", epsilon: str = "5") -> Policy:
    """The shop, whose analyst has such windows, and one session without any."""

    def change(text: str) -> str:
        every = "" if per is None else f"    per: {per}\n"
        text = text.replace("    epsilon: 5\n    delta: 1e-6\n    per: month\n",
                            f"    epsilon: {epsilon}\n    delta: 1e-6\n{every}", 1)  # fmt: skip
        text = text.replace("{epsilon: 20,", "{epsilon: 2000,")
        text = text.replace("session: {epsilon: 1}", f"session: {{epsilon: {epsilon}}}")
        return text.replace("roles:\n", f"time_zone: {zone}\nroles:\n", 1)

    key = per, zone, epsilon
    if key not in _POLICIES:
        _POLICIES[key] = policy("shop", "shop", change)
    return _POLICIES[key]


@pytest.fixture
def clock() -> Clock:
    found = Clock()
    found.now = datetime(2026, 11, 18, 14, tzinfo=UTC)  # a Wednesday
    return found


@pytest.fixture(params=STORES)
def opened(request, tmp_path, clock) -> Iterator[Open]:
    ledgers: list[Ledger] = []

    def opener() -> Ledger:
        ledgers.append(STORES[request.param](tmp_path, clock))
        return ledgers[-1]

    yield opener
    for ledger in ledgers:
        ledger.close()


def ask(ledger: Ledger, under: Policy, clock: Clock, epsilon: str = "0.1") -> Hold:
    accounts = accounts_for(under, "analyst", now=clock())
    cost = Cost(epsilon=Fraction(epsilon), rho=rho_of_pure(Fraction(epsilon)))
    return ledger.reserve(accounts, cost, ['{"event": "threshold"}'], NOTE)


def spent(ledger: Ledger, under: Policy, clock: Clock) -> float:
    [role] = [a for a in accounts_for(under, "analyst", now=clock()) if a.holder == "role"]
    return ledger.balances([role])[0].spent.epsilon / NANO


def spend(ledger: Ledger, clock: Clock) -> None:
    """Under monthly windows, at five moments up to now: 0.1 in October, then 0.2, 0.4, 0.8 and 1.6."""
    now, monthly = clock(), windowed("month")
    adopt(monthly, ledger, now)
    for back, epsilon in ((20, "0.1"), (10, "0.2"), (2, "0.4"), (0.5, "0.8"), (0, "1.6")):
        clock.now = now - timedelta(days=back)
        ask(ledger, monthly, clock, epsilon)
    clock.now = now


@pytest.mark.parametrize(
    ("per", "expected"),
    [("day", 2.4), ("week", 2.8), ("month", 3.0), ("year", 3.1), (None, 3.1)],
)
def test_another_window_has_spent_what_was_spent_since_it_began(opened, clock, per, expected):
    ledger = opened()
    spend(ledger, clock)
    adopt(windowed(per), ledger, clock())
    assert spent(ledger, windowed(per), clock) == expected
    assert ledger.verify().sound
    assert spent(opened(), windowed(per), clock) == expected
    clock.now += timedelta(days=400)
    assert spent(ledger, windowed(per), clock) == (0.0 if per else expected), "it ends as ever"


def test_without_it_a_budget_is_had_twice(opened, clock, monkeypatch):
    """The planted fault."""
    monkeypatch.setattr(tables, "carry", lambda *_: {})
    ledger = opened()
    spend(ledger, clock)
    adopt(windowed("week"), ledger, clock())
    assert spent(ledger, windowed("week"), clock) == 0.0


def test_a_month_that_begins_elsewhere_earlier(opened, clock):
    """Half past eleven at night in October, in UTC, is November in Tokyo."""
    ledger, monthly, there = opened(), windowed("month"), windowed("month", "Asia/Tokyo")
    clock.now = datetime(2026, 10, 31, 14, tzinfo=UTC)
    adopt(monthly, ledger, clock())
    ask(ledger, monthly, clock, "0.1")
    clock.now = datetime(2026, 10, 31, 23, 30, tzinfo=UTC)
    ask(ledger, monthly, clock, "0.2")
    clock.now = datetime(2026, 11, 2, tzinfo=UTC)
    ask(ledger, monthly, clock, "0.4")
    adopt(there, ledger, clock())
    assert spent(ledger, there, clock) == 0.6
    adopt(windowed(None, "Asia/Tokyo"), ledger, clock())
    adopt(windowed("month", "America/New_York"), ledger, clock())
    adopt(there, ledger, clock())
    assert spent(ledger, there, clock) >= 0.6, "never less"
    assert ledger.verify().sound


def test_edits_to_and_fro_count_nothing_twice(opened, clock):
    ledger = opened()
    spend(ledger, clock)
    for per in (None, "month", None, "week", "month", None):
        adopt(windowed(per), ledger, clock())
        ask(ledger, windowed(per), clock, "0.01")
    assert spent(ledger, windowed(None), clock) == pytest.approx(3.16)
    assert spent(ledger, windowed("month"), clock) < 3.06, "what came since is in others"
    adopt(windowed("month"), ledger, clock())
    assert spent(ledger, windowed("month"), clock) == pytest.approx(3.06)


def test_what_is_refunded_is_given_back_by_nobody_twice(opened, clock):
    ledger, monthly = opened(), windowed("month")
    adopt(monthly, ledger, clock())
    early, late = ask(ledger, monthly, clock, "0.1"), ask(ledger, monthly, clock, "0.2")
    ledger.cancel(early)
    adopt(windowed(None), ledger, clock())
    assert spent(ledger, windowed(None), clock) == 0.2
    ledger.cancel(late)
    assert spent(ledger, windowed(None), clock) == 0.2, "it stays where it was carried"
    for per in ("week", None):
        adopt(windowed(per), ledger, clock())
    assert spent(ledger, windowed(None), clock) == 0.2
    assert ledger.verify().sound


def test_a_limit_below_what_would_be_carried_is_refused(opened, clock):
    ledger = opened()
    spend(ledger, clock)
    records = len(list(ledger.events()))
    small = windowed("year", epsilon="3.05")
    assert len(below_spent(small, ledger, clock())) == 2, "`dpsql check --against-ledger` says so"
    with pytest.raises(PolicyError, match=r"limit of role .analyst. is below what is spent"):
        adopt(small, ledger, clock())
    assert len(list(ledger.events())) == records
    same = below_spent(windowed("month", epsilon="3.05"), ledger, clock())
    assert ["session" in problem for problem in same] == [True], "of the role 3.0 is spent so far"


def test_what_a_restore_added_counts_too(opened, clock):
    """Of it only the time of the restore is known."""
    ledger = opened()
    assert isinstance(ledger, TableLedger)
    spend(ledger, clock)
    account = "shop/role:analyst@2026-10"

    def restored(db: rows.Database) -> None:
        more = [NANO, 0, 0, 0]
        before = rows.spent_by(db, [account])[0]
        rows.set_spent(db, {account: (before, before + carry.Charge(*more))})
        content = {"owner": "restored", "time": rows.utc(clock()), "added": {account: more},
                   "merged": {"records": 0, "head": ""}, "because": ""}  # fmt: skip
        rows.append(db, OWNER, content)

    prefix = accounts_for(windowed("month"), "analyst", now=clock())[0].dataset
    account = account.replace("shop", prefix, 1)
    ledger.amend(restored)
    adopt(windowed("week"), ledger, clock())
    assert spent(ledger, windowed("week"), clock) == 3.8
    assert ledger.verify().sound


def test_a_role_that_comes_back_has_spent_what_it_had(opened, clock):
    """What is not in the policy is left alone meanwhile."""
    ledger = opened()
    spend(ledger, clock)
    without = policy(
        "shop",
        "shop",
        lambda text: text[: text.index("  analyst:")] + text[text.index("  pure:") :],
    )
    adopt(without, ledger, clock())
    adopt(windowed("week"), ledger, clock())
    assert spent(ledger, windowed("week"), clock) == 2.8
    assert ledger.verify().sound


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_edited_when(opened, clock, seed):
    """Each present window has spent exactly what was asked since it began."""
    luck, ledger, asked = random.Random(seed), opened(), list[tuple[datetime, Fraction]]()
    for _ in range(6):
        under = windowed(luck.choice(WINDOWS), epsilon="1000")
        adopt(under, ledger, clock())
        for _ in range(luck.randrange(4)):
            epsilon = Fraction(luck.randrange(1, 9), 100)
            ask(ledger, under, clock, str(epsilon))
            asked.append((clock(), epsilon))
            clock.now += timedelta(hours=luck.choice((1, 20, 100, 500)))
        adopt(under := windowed(luck.choice(WINDOWS), epsilon="1000"), ledger, clock())
        begins = begin_of(under.roles["analyst"].allowance.per, clock())
        since = sum(e for when, e in asked if begins is None or when >= begins)
        assert spent(ledger, under, clock) == pytest.approx(float(since))
    assert ledger.verify().sound
