"""The runner: what it does in turn, what it keeps, and what it tells at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adversary import endpoints, run, seeds, shop
from tests.adversary.endpoints import ALONE, ROUND, Known, attack, attack_next
from tests.adversary.faces.cli import CommandFace
from tests.adversary.model import Finding, Step
from tests.adversary.report import Voice

LAPS = 12


def found(meaning: str, detail: str = "") -> Finding:
    steps = (Step("ask", "SELECT 1"),)
    return Finding("payment", meaning, "http", "same", (), shop.shop(), steps, 0, (detail,))


def no_attack(_: object) -> Any:
    raise ValueError("no attack")


def test_each_kind_of_attack_has_its_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, Any]] = []

    def noted(name: str, place: int) -> Any:
        def attacked(*given: Any) -> list[Finding]:
            asked.append((name, given[place]))
            return []

        return attacked

    for name, place in {"look_for_marks": 2, "hold_generated": 0, "play_all": 0}.items():
        monkeypatch.setattr(endpoints, name, noted(name, place))
    monkeypatch.setattr(endpoints, "ALONE", {kind: noted(kind, 0) for kind in ALONE})
    for number in range(LAPS * len(ROUND)):
        assert list(attack(number, tmp_path, "x-")) == []
    assert {name for name, _ in asked} == {*ALONE, "look_for_marks", "hold_generated", "play_all"}
    assert set(ROUND) == {*ALONE, "marks", "generated", "scripts"}
    through = {kind: {f.name for name, fs in asked if name == kind for f in fs}
               for kind in ("play_all", "look_for_marks")}  # fmt: skip
    assert len(through["play_all"]) == 7
    assert through["look_for_marks"] - through["play_all"] == {CommandFace.name}
    names = [given for name, given in asked if name == "hold_generated"]
    assert len(names) == len(set(names)) == LAPS * ROUND.count("generated")
    assert all(name.startswith("endpoint x-") for name in names)


def test_a_finding_is_reported_once_and_the_next_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers: list[int] = []

    def attacked(number: int, _: Path, __: str) -> Iterator[Finding]:
        numbers.append(number)
        yield found("paid twice", f"after {number}.5 seconds")
        if number == 1:
            yield found("told epsilon 1, charged 2")

    monkeypatch.setattr(endpoints, "attack", attacked)
    known = Known.load(tmp_path)
    assert [attack_next(known, Voice()) for _ in range(3)] == [1, 1, 0]
    assert capsys.readouterr().out.splitlines()[0] == "== payment: paid twice"
    known = Known.load(tmp_path)
    assert attack_next(known, Voice()) == 0
    assert numbers == list(range(known.next)) == [0, 1, 2, 3]
    assert all((tmp_path / "findings" / name).exists() for name in known.found.values())


def test_the_first_finding_is_told_at_once_as_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is made smaller before, or after."""
    monkeypatch.setattr(run, "JUDGES", ())
    monkeypatch.setattr(seeds, "FOLDER", tmp_path / "none")
    monkeypatch.setattr(run, "fresh", lambda name: names.append(name))
    monkeypatch.setattr(run, "tame", lambda name, _: names.append(name))
    monkeypatch.setattr(run, "judge", no_attack)
    names: list[str] = []

    def attacked(*_: object) -> Iterator[Finding]:
        yield found("paid twice")
        yield pytest.fail("one is enough")

    monkeypatch.setattr(endpoints, "attack", attacked)
    state = str(tmp_path / "state")
    assert run.main(["--seconds", "60", "--state", state, "--seed", "7", "--json", "--first"]) == 1
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["finding"], line["judge"]) for line in told] == [("paid twice", "payment")]
    assert names == ["7-0"]
    assert not (tmp_path / "state" / "findings").exists()


def test_both_kinds_have_their_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now, turns = [0.0], list[str]()

    def took(kind: str, seconds: float) -> Any:
        def turn(*_: object) -> int:
            turns.append(kind)
            now[0] += seconds
            return 0

        return turn

    monkeypatch.setattr(run.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(run, "attack_inside", took("inside", 1.0))
    monkeypatch.setattr(endpoints, "attack_next", took("endpoints", 4.0))
    assert run.explore(tmp_path, 120.0, "", ["inside", "endpoints"], Voice()) == 0
    assert turns[:2] == ["inside", "endpoints"]
    assert 7 <= turns.count("inside") / turns.count("endpoints") <= 9


def test_the_seeds_of_the_repository_come_first_in_turn_with_others(tmp_path: Path) -> None:
    state = run.State.load(tmp_path)
    drawn = [run.chosen(state) for _ in range(2 * state.given)]
    assert drawn[::2] == list(seeds.load(seeds.FOLDER))
    assert state.next == state.given
    assert run.chosen(state) not in drawn[::2]
