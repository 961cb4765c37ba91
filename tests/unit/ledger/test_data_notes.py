"""Notes of the data in a ledger: what they compare, and what they do not reveal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.services import policy

from dpsql.diagnostics.refusal import DataChanged
from dpsql.ledger import data_notes
from dpsql.ledger.data_notes import (
    DataState,
    compare_with_note,
    find_change,
    new_note,
    note_of,
)
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import DataNote
from dpsql.ledger.terms import adopt

SHOP = policy("shop", "shop")
A, B = "a" * 64, "b" * 64


def noted(ledger: SqliteLedger, clock: Callable[[], object], content: str, version: str) -> None:
    here = replace(SHOP, data_version=version)
    adopt(here, ledger, clock(), new_note(here, ledger, content))


def test_each_version_has_the_data_that_was_noted_last(ledger, clock):
    assert compare_with_note(ledger, "1", A) is DataState.NEW
    noted(ledger, clock, A, "1")
    noted(ledger, clock, B, "2")
    noted(ledger, clock, B, "1")  # there is a note already
    assert compare_with_note(ledger, "1", A) is DataState.SAME
    assert compare_with_note(ledger, "1", B) is DataState.CHANGED
    assert compare_with_note(ledger, "2", B) is DataState.SAME
    ledger.note_terms(ledger.terms(), "data noted", data=note_of(ledger, "1", B))
    assert compare_with_note(ledger, "1", B) is DataState.SAME
    assert ledger.verify().sound


def test_a_ledger_of_before_gets_its_note_without_new_terms(ledger, clock):
    adopt(SHOP, ledger, clock())
    assert adopt(SHOP, ledger, clock(), new_note(SHOP, ledger, A)) == ()
    assert adopt(SHOP, ledger, clock(), new_note(SHOP, ledger, A)) == ()
    found = [record.content for record in ledger.events()]
    assert [content["owner"] for content in found] == ["first policy", "data noted"]
    assert "data" not in found[0]
    assert found[1]["terms"] == found[0]["terms"]


def test_what_a_policy_says_of_changed_data(ledger, clock):
    adopt(SHOP, ledger, clock(), new_note(SHOP, ledger, A))
    strict = replace(SHOP, stale="refuse")
    assert find_change(SHOP, ledger, A) is None
    assert find_change(strict, ledger, A) is None
    said = find_change(SHOP, ledger, B)
    assert said is not None
    assert 'data_version stayed "2026-11-01"' in said
    with pytest.raises(DataChanged, match="stale: refuse"):
        find_change(strict, ledger, B)


def written(opened, clock, tmp_path: Path, name: str) -> str:
    """What a reader of the records sees of a note of data A."""
    ledger = opened(tmp_path / name)
    adopt(SHOP, ledger, clock(), new_note(SHOP, ledger, A))
    [record] = ledger.events()
    return json.loads(record.json)["data"]["content"]


def test_a_record_does_not_tell_which_data_it_is_about(opened, clock, tmp_path):
    """A reader who guesses the data rightly cannot see that from the records of any ledger."""
    one, other = (written(opened, clock, tmp_path, name) for name in ("one", "other"))
    assert one != other
    assert A not in one + other


def test_a_note_without_a_key_would_tell(opened, clock, tmp_path, monkeypatch):
    """The planted fault: the digest itself is noted."""
    monkeypatch.setattr(
        data_notes, "note_of", lambda _, version, content: DataNote(version, content)
    )
    one, other = (written(opened, clock, tmp_path, name) for name in ("one", "other"))
    assert one == other == A
