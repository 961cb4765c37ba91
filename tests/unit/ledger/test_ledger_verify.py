"""The chain and the balances, after someone edited the file behind the ledger's back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from ledger_world import EVENT, NOTE, make_account, pure

from dpsql.ledger.chain import START, Record, faults, next_record
from dpsql.ledger.charge import Charge
from dpsql.ledger.replay import Replay
from dpsql.ledger.store import RecallKey

ACCOUNTS = (make_account("dataset", 20), make_account("role:growth", 5))


@pytest.fixture
def history(ledger):
    """One hold of each kind; records 1 to 8."""

    def ask(**more):
        return ledger.reserve(ACCOUNTS, pure("0.5"), [EVENT], NOTE, **more)

    ledger.commit(ask(start=True), {RecallKey("key"): b"answer"})  # hold 1
    ledger.cancel(ask())  # hold 2
    ledger.forfeit(ask())  # hold 3
    ask(start=True)  # hold 4
    ask()  # hold 5
    return ledger


def test_an_untouched_ledger_is_sound(history):
    found = history.verify()
    assert found.sound
    assert found.records == 8
    assert found.head == list(history.events())[-1].hash


EDITS = {
    "UPDATE account SET epsilon = 0": "account shop/dataset",
    "UPDATE account SET rho = rho + 1": "account shop/role:growth",
    "DELETE FROM account": "account shop/dataset",
    "INSERT INTO account VALUES ('shop/x', 1, 0, 0, 0)": "account shop/x",
    "UPDATE hold SET epsilon = 1 WHERE id = 1": "hold 1 is not stored",
    "UPDATE hold SET role = 'x' WHERE id = 3": "hold 3 is not stored",
    "UPDATE hold SET state = 'cancelled' WHERE id = 4": "hold 4: it is not as",
    "UPDATE hold SET accounts = '[]' WHERE id = 5": "hold 5: it is not as",
    "DELETE FROM hold WHERE id = 2": "hold 2 is not stored",
    "DELETE FROM hold WHERE id = 5": "4 holds are stored, 5 were recorded",
    "INSERT INTO hold SELECT 99, state, 0, 0, 0, 0, accounts, policy_version, role, session,"
    " created, owner, answer FROM hold WHERE id = 1": "6 holds are stored, 5 were recorded",
    "DELETE FROM event WHERE seq = 1": "record 1 is missing",
    "DELETE FROM event WHERE seq = 5": "record 5 is missing",
    "DELETE FROM event WHERE seq = 8": "5 holds are stored, 4 were recorded",
    "DELETE FROM event": "5 holds are stored, 0 were recorded",
    "UPDATE event SET json = replace(json, '500000000', '1') WHERE seq = 1": "record 1: it was ed",
    "UPDATE event SET json = '{' WHERE seq = 3": "record 3: it cannot be read",
    "UPDATE event SET json = '[]' WHERE seq = 3": "record 3: it cannot be read",
    "UPDATE event SET hold = 2 WHERE seq = 1": "record 1: it was edited",
    "UPDATE event SET prev_hash = hash WHERE seq = 4": "record 4: it does not follow record 3",
    "UPDATE event SET hash = prev_hash WHERE seq = 4": "record 5: it does not follow record 4",
    "UPDATE release SET body = x'00'": "release key: it is not the answer",
    "UPDATE release SET noise = '{'": "release key: it is not the answer",
    "UPDATE release SET recall_key = 'k2'": "release k2: it is not the answer",
    "UPDATE release SET about = 'x'": "release key: it is not the answer",
    "UPDATE release SET hold = 3": "release key: it is not the answer",
    "UPDATE release SET hold = 33": "release key: it is not the answer",
    "UPDATE hold SET answer = NULL": "hold 1 is not stored",
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_found(history, path, edit):
    with closing(sqlite3.connect(path)) as other:
        other.execute(edit)
        other.commit()
    found = history.verify()
    assert not found.sound
    assert EDITS[edit] in "\n".join(found.problems)


def test_a_rewritten_chain_is_found_by_a_hash_noted_before(history, path):
    """Whoever rewrites all hashes fools the chain, but not a hash that was kept elsewhere."""
    noted = history.verify().head
    with closing(sqlite3.connect(path)) as other:
        last = START
        for record in list(history.events()):
            content = dict(record.content)
            if record.seq == 1:
                content["statement"] = "SELECT 1"
            last = next_record(last, record.hold, content)
            other.execute(
                "UPDATE event SET json = ?, prev_hash = ?, hash = ? WHERE seq = ?",
                (last.json, last.prev_hash, last.hash, last.seq),
            )
        other.commit()
    assert history.verify().sound
    assert "noted hash" in history.verify(noted).problems[0]


def test_a_hole_in_the_file_itself_is_found(history, path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA writable_schema = ON")
        other.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'rho >= 0', 'rho < 0')"
            " WHERE name = 'account'"
        )
        other.commit()
    assert any("CHECK" in problem for problem in history.verify().problems)


def records(*steps):
    last, made = START, []
    for hold, content in steps:
        last = next_record(last, hold, content)
        made.append(last)
    return made


NEW = {
    "charge": [1, 0, 0, 0],
    "accounts": ["a"],
    "policy": "p",
    "role": "r",
    "session": "s",
    "time": "t",
}


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([(1, NEW | {"state": "committed"})], "hold 1 cannot become committed"),
        ([(1, {"state": "reserved"})], "cannot be read"),
        ([(1, NEW | {"state": "lost"})], "cannot be read"),
        (
            [(1, NEW | {"state": "started"}), (1, {"state": "cancelled"})],
            "hold 1 cannot become cancelled",
        ),
        (
            [(1, NEW | {"state": "reserved"}), (1, NEW | {"state": "reserved"})],
            "hold 1 cannot become reserved",
        ),
    ],
)
def test_a_chain_that_tells_an_impossible_story_is_found(steps, says):
    replay = Replay(lambda hold: None)
    found = [fault for record in records(*steps) for fault in replay.take(record)]
    assert says in "\n".join(found)


def test_a_replay_remembers_only_what_is_open():
    rows = {1: ("committed", 1, 0, 0, 0, ["a"], "p", "r", "s", "t", None)}
    replay = Replay(rows.get)
    for record in records((1, NEW | {"state": "started"}), (1, {"state": "committed"})):
        assert list(replay.take(record)) == []
    assert replay.open == {}
    assert list(replay.finish({"a": Charge(epsilon=1)}, 1, {})) == []


def test_each_part_of_a_record_is_under_its_hash():
    one, two = records((1, {"a": 1}), (2, {"b": 2}))
    assert list(faults(one, two)) == []
    for change in ({"hold": 3}, {"json": "{}"}, {"prev_hash": "x"}, {"seq": 3}, {"hash": "x"}):
        assert list(faults(one, replace(two, **change)))
    assert list(faults(START, Record(1, 0, "{}", START.hash, "")))
