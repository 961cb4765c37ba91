"""Attacks of fixed seeds: what once reached something new, and some that nobody has looked at.

Every attack is made of its name alone, so a failure is repeated by its name. ``make adversary``
goes on from there with attacks that are new each time.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.adversary import seeds
from tests.adversary.model import Case, Finding
from tests.adversary.oracle import tame
from tests.adversary.report import report
from tests.adversary.run import STEPS, fresh, judge
from tests.adversary.seeds import Seed

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
    answered = [t.error is None for t in new(FRESH[0])[0].left.transcripts]
    assert sum(answered) > len(answered) / 3


def test_there_are_no_more_seeds_than_there_is_time_for() -> None:
    assert 10 <= len(KEPT) <= seeds.MOST
