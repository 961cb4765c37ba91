"""A damaged file is called damaged, whichever of its bytes it is; or the byte meant nothing."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ledger_world import EVENT, NOTE, Clock, make_account, pure

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import rows
from dpsql.ledger.chain import OWNER
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import RecallKey

ACCOUNTS = (make_account("dataset", 100), make_account("role:growth", 100))
TERMS = {"policy": "v1", "limits": {}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """A ledger of many pages, with every kind of record."""
    path = tmp_path_factory.mktemp("whole") / "shop.ledger"
    with SqliteLedger.open(path, Clock()) as ledger:
        ledger.note_terms(TERMS, "first policy")
        for number in range(40):
            hold = ledger.reserve(ACCOUNTS, pure("0.01"), [EVENT], NOTE)
            if number % 3 == 0:
                ledger.cancel(hold)
                continue
            ledger.start(hold)
            key = RecallKey(f"k{number}", "family", (1.0,), "base", "{}")
            ledger.commit(hold, {key: secrets.token_bytes(300)})
        ledger.reserve(ACCOUNTS, pure("0.01"), [EVENT], NOTE)
    return path.read_bytes()


def content(ledger: SqliteLedger) -> object:
    """Everything that a ledger says, and that it can go on."""
    balances = ledger.balances(ACCOUNTS)
    kept = [
        (k.key, k.since, ledger.recall(k.key.key))
        for k in ledger.related_releases(["family"], ["base"])
    ]
    return list(ledger.events()), ledger.latest(5), balances, kept, ledger.terms()


def outcome(path: Path, clock: Clock) -> tuple[str, object]:
    """What an owner is told of the file: damaged, or everything it says."""
    try:
        with SqliteLedger.open(path, clock, settle=False) as ledger:
            verdict = ledger.verify()
            if not verdict.sound:
                return "damaged", None
            return "sound", content(ledger)
    except LedgerFailed as failed:
        return ("damaged" if "damaged" in str(failed) else str(failed)), None


def harm(path: Path, clock: Clock, whole: bytes, places: list[int]) -> dict[str, int]:
    """Flip bits of one byte after the other; how often each outcome came."""
    path.write_bytes(whole)
    _, sound = outcome(path, clock)
    assert sound is not None
    found = {"damaged": 0, "sound": 0}
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        for name in ("-wal", "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)
        path.write_bytes(changed)
        verdict, said = outcome(path, clock)
        found[verdict] += 1
        if verdict == "sound":
            assert said == sound, f"byte {place} changed what the ledger says, and nobody noticed"
    return found


def test_the_header(whole, path, clock):
    found = harm(path, clock, whole, list(range(100)))
    assert found["damaged"] >= 20  # its magic, sizes, encoding, application, tree of tables


def test_every_region_of_every_page(whole, path, clock):
    """A byte of each 601, which meets other parts of each page."""
    places = list(range(100, len(whole), 601))
    found = harm(path, clock, whole, places)
    assert found["damaged"] > len(places) // 3  # the rest of a page is room for more


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_of_bytes(whole, path, clock):
    """Of each run others: a byte of each 17."""
    places = list(range(secrets.randbelow(17), len(whole), 17))
    found = harm(path, clock, whole, places)
    assert found["damaged"] > len(places) // 3


@pytest.mark.parametrize("size", [0, 50, 99, 100, 4096, 4100, 20_000])
def test_a_file_that_was_cut_off(whole, path, clock, size):
    path.write_bytes(whole[:size])
    assert outcome(path, clock)[0] == "damaged"


def test_pages_of_zeros(whole, path, clock):
    for start in range(0, len(whole), 4096):
        for name in ("-wal", "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)
        path.write_bytes(whole[:start] + bytes(4096) + whole[start + 4096 :])
        assert outcome(path, clock)[0] == "damaged", start


def test_a_damaged_balance_is_noticed_before_anything_is_asked(whole, path, clock):
    """The seal: without it, an account whose name lost a bit would be a new one, with all its budget."""
    place = whole.index(b"shop/role:growth")
    harmed = 0
    while place != -1:
        path.write_bytes(whole[:place] + b"S" + whole[place + 1 :])
        try:
            with SqliteLedger.open(path, clock) as ledger:
                assert ledger.balances(ACCOUNTS)[1].spent.epsilon > 0
        except LedgerFailed as failed:
            harmed += "damaged" in str(failed)
        place = whole.index(b"shop/role:growth", place + 1) if harmed == 0 else -1
    assert harmed == 1


def edited(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(change)
        db.commit()


def test_each_reading_calls_damaged_values_damaged(whole, path, clock):
    path.write_bytes(whole)
    with SqliteLedger.open(path, clock) as ledger:
        ledger.reserve(ACCOUNTS, pure("0.01"), [EVENT], NOTE)
        edited(path, "UPDATE hold SET accounts = '{' WHERE state = 'reserved'")
        with pytest.raises(LedgerFailed, match="is damaged"):
            ledger.verify()
        edited(path, "UPDATE release SET noise = '{'")
        with pytest.raises(LedgerFailed, match="is damaged"):
            ledger.related_releases(["family"])
        edited(path, "UPDATE event SET json = '{' WHERE hold = 0")
        with pytest.raises(LedgerFailed, match="is damaged"):
            ledger.terms()
        edited(path, "UPDATE event SET json = '{' WHERE seq = (SELECT max(seq) FROM event)")
        with pytest.raises(LedgerFailed, match="is damaged"):
            ledger.latest(1)
        with pytest.raises(LedgerFailed, match="is damaged"):
            ledger.note_terms(TERMS, "policy changed")  # nothing is written after a damaged record


def test_a_seal_that_is_not_the_balances(whole, path, clock):
    path.write_bytes(whole)
    edited(path, "UPDATE meta SET value = 'f' WHERE key = 'seal'")
    with SqliteLedger.open(path, clock, settle=False) as ledger:
        assert ledger.verify().problems == ("the seal over the balances is not theirs",)
    with pytest.raises(LedgerFailed, match="is damaged"):
        SqliteLedger.open(path, clock)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"owner": "someone"}, "cannot be read"),
        ({"owner": "someone", "terms": 1}, "cannot be read"),
        ({"owner": "restored", "added": {"a": "x"}}, "cannot be read"),
        ({"owner": "restored", "added": []}, "cannot be read"),
        ({"owner": "restored", "added": {"a": [1, 0, 0, 0]}}, "account a: Charge(epsilon=0"),
        ({"owner": "restored", "closed": "2026"}, "the mark closed is not as it was recorded"),
    ],
)
def test_records_of_the_owner_that_are_not_true(whole, path, clock, content, problem):
    path.write_bytes(whole)
    with SqliteLedger.open(path, clock) as ledger:
        ledger.amend(lambda db: rows.append(db, OWNER, content))
        assert problem in "\n".join(ledger.verify().problems)
