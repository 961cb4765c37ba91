"""Attacks of fixed seeds: what once reached something new, and some that nobody has looked at.

Every attack is made of its name alone, so a failure is repeated by its name. ``make adversary``
goes on from there with attacks that are new each time.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import pytest

from tests.adversary import seeds
from tests.adversary.attack import attack, write_both
from tests.adversary.model import Case, Finding, Row
from tests.adversary.oracle import tame
from tests.adversary.place import COPIES
from tests.adversary.report import report
from tests.adversary.run import STEPS, chosen, fresh, judge
from tests.adversary.seeds import Seed
from tests.adversary.state import State
from tests.adversary.worlds import make

KEPT = sorted(seeds.FOLDER.glob("*.json"))
FRESH = [f"ci {number}" for number in range(6)]
TAME = [f"ci {number}" for number in range(3)]


@functools.cache
def new(name: str) -> tuple[Case, list[Finding]]:
    """A new attack, which is carried out once."""
    return judge(fresh(name))


def found(seed: Seed) -> str:
    return "\n".join(report(finding, seed) for finding in judge(seed)[1])


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_attack_finds_nothing(path: Path) -> None:
    assert found(seeds.from_json(path.read_text(encoding="utf-8"))) == ""


@pytest.mark.parametrize("name", FRESH)
def test_a_new_attack_finds_nothing(name: str) -> None:
    assert "\n".join(report(finding, fresh(name)) for finding in new(name)[1]) == ""


@pytest.mark.parametrize("name", TAME)
def test_answers_are_those_of_plain_duckdb(name: str) -> None:
    assert found(tame(name, STEPS)) == ""


def test_the_attacks_are_answered_enough() -> None:
    """An adversary whose statements are all refused looks at nothing."""
    answered = [t.error is None for seed in FRESH for t in new(seed)[0].left.transcripts]
    assert sum(answered) > len(answered) / 3


def test_seeds_and_new_attacks_take_turns(tmp_path: Path) -> None:
    state = State.load(tmp_path)
    given = state.pool[: state.given]
    drawn = [chosen(state) for _ in range(6)]
    assert drawn[::2] == given[:3]
    assert not any(seed in given for seed in drawn[1::2])
    assert (state.replayed, state.next) == (3, 3)
    state.next = 0
    state.replayed = state.given
    assert chosen(state) not in given


COPIED = seeds.from_json((seeds.FOLDER / "unlisted_on_a_copy.json").read_text(encoding="utf-8"))


def test_worlds_have_copies_that_are_read() -> None:
    explained = [s for s in COPIED.steps if s.act == "explain"]
    for world in (COPIED.world, replace(COPIED.world, prepared=False)):
        case = attack(world, COPIED.relation, COPIED.owners, explained, sampled=False)
        assert ("dpsql_prepared" in case.left.transcripts[0].text) is world.prepared
    assert 10 < sum(make(f"world {number}").world.prepared for number in range(100)) < 50


def test_copies_are_there_in_both_worlds_or_in_neither(tmp_path: Path) -> None:
    """``dpsql prepare`` makes none of a table of one row for each unit in which two rows share a key."""
    policy = COPIED.world.policy.replace("max_rows_per_unit: 5", "max_rows_per_unit: 1")
    rows = tuple(Row("events", (str(u), "'web'", "1", "2"), f"person:{u}") for u in range(5))
    alike = (Row("events", ("7", "'web'", "1", "2"), "person:7"),) * 2
    plain = replace(COPIED.world, policy=policy, rows=rows)
    for right, there in ((plain, True), (replace(plain, rows=rows + alike), False)):
        places = [tmp_path / str(there) / side for side in ("left", "right")]
        write_both(list(zip((plain, right), places, strict=True)))
        assert [(place / COPIES).exists() for place in places] == [there, there]


def test_there_are_no_more_seeds_than_there_is_time_for() -> None:
    assert 10 <= len(KEPT) <= seeds.MOST
