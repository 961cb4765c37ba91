"""The runner of attacks on endpoints: what it does in turn, and what it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adversary import endpoints, shop
from tests.adversary.endpoints import ROUND, Known, attack, explore
from tests.adversary.model import Finding, Step
from tests.adversary.sequences import SCRIPTS


def found(meaning: str, detail: str = "") -> Finding:
    steps = (Step("ask", "SELECT 1"),)
    return Finding("payment", meaning, "http", "same", (), shop.shop(), steps, 0, (detail,))


def test_each_kind_of_attack_has_its_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, Any]] = []

    def noted(name: str, place: int) -> None:
        def attacked(*given: Any) -> list[Finding]:
            asked.append((name, given[place]))
            return []

        monkeypatch.setattr(endpoints, name, attacked)

    kinds = {
        "look_for_marks": 0, "press": 0, "time_answers": 0, "time_conditions": 0, "hold_generated": 0,
        "play_all": 2,
    }  # fmt: skip
    for name, place in kinds.items():
        noted(name, place)
    for number in range(6 * ROUND):
        assert list(attack(number, tmp_path)) == []
    assert {name for name, _ in asked} == set(kinds)
    played = [given[0] for name, given in asked if name == "play_all"]
    assert set(played) == set(SCRIPTS)
    seeds = [given for name, given in asked if name == "hold_generated"]
    assert len(seeds) == len(set(seeds)) == 6 * (ROUND - 7)


def test_a_finding_is_reported_once_and_the_next_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    numbers: list[int] = []

    def attacked(number: int, folder: Path) -> Iterator[Finding]:
        numbers.append(number)
        yield found("paid twice", f"after {number}.5 seconds")
        if number == 1:
            yield found("told epsilon 1, charged 2")

    monkeypatch.setattr(endpoints, "attack", attacked)
    first = explore(tmp_path, 0.3)
    assert [text.partition("\n")[0] for text in first][:1] == ["== payment: paid twice"]
    assert len(first) == min(2, len(numbers))
    before = len(numbers)
    assert explore(tmp_path, 0.2) == [] or before == 1
    assert numbers == list(range(len(numbers)))
    known = Known.load(tmp_path)
    assert known.next == len(numbers)
    assert all((tmp_path / "findings" / name).exists() for name in known.found.values())
