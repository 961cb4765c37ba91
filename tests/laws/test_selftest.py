"""The self-test passes here, leaves nothing out, and notices each planted fault."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from support.datasets import FIXTURES
from support.selftests import POLICY, find, policy

from dpsql import selftest
from dpsql.cli import main
from dpsql.selftest.matrix import matrix
from dpsql.selftest.questions import Question
from dpsql.selftest.scenarios import TWICE, Scenario

sys.path.insert(0, str(Path(__file__).parent))
from planted import PLANTED, Planted

Patch = pytest.MonkeyPatch

CRASHES = "the engine failed"
"""What may leave no samples: dpsql itself has stopped."""


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_a_fault_is_noticed(planted: Planted, monkeypatch: Patch) -> None:
    planted.patch(monkeypatch)
    seen = find(planted.question, planted.scenario, planted.samples)
    assert not seen.passed, seen
    assert planted.caught in seen.said, seen
    assert seen.samples > 0 or planted.caught == CRASHES, seen


def test_the_documents_count_the_faults() -> None:
    assert f"{len(PLANTED)} planted faults" in (FIXTURES.parent / "SECURITY.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_a_fault_is_noticed_every_time(planted: Planted, monkeypatch: Patch) -> None:
    """Eight runs vary so little that one in ten thousand would not miss it."""
    planted.patch(monkeypatch)
    seen = [find(planted.question, planted.scenario, planted.samples) for _ in range(8)]
    if not all(one.shape for one in seen):
        excess = np.array([one.bound - one.charged.epsilon for one in seen])
        assert excess.mean() > 4 * excess.std(ddof=1), excess


def _controls() -> list[object]:
    """What faults are shown by; the short run has those of few cells too, as often as there is time for."""
    few = {q.name for q in matrix() if q.cells is not None and q.cells < 100}
    pairs = sorted({(p.question, p.scenario) for p in PLANTED}, key=str)
    return [pytest.param(*pair, marks=pytest.mark.slow if pair[0] in few else ()) for pair in pairs]


@pytest.mark.parametrize(
    ("question", "scenario"), _controls(),
    ids=lambda value: value if isinstance(value, str) else value.name,
)  # fmt: skip
def test_without_the_faults_it_passes(question: str, scenario: Scenario) -> None:
    seen = find(question, scenario, 10_000)
    assert seen.passed, seen
    few = next(q for q in matrix() if q.name == question)
    assert seen.samples == min(10_000, few.askings * (few.cells or 10_000))


def test_it_is_sharp() -> None:
    assert find("semi join", TWICE, 40_000).bound > 0.85


SHORT = 5
"""Seconds of one core for the questions; each is asked twice however long that takes."""
TWELFTH = 12
"""Of so many questions by day one is asked; all of them every night."""


def test_cells_can_be_compared_in_pairs_whatever_time_there_is() -> None:
    every = [
        work.cells
        for seconds in range(5, 95)
        for work in selftest._works(policy(), 100_000, seconds, lambda *_: True)
    ]
    assert {cells % 2 for cells in every} == {0}
    assert len(set(every)) > 5


@pytest.mark.timeout(1_200)  # a busy machine may take long: it is the command that stops itself
@pytest.mark.parametrize("step", [TWELFTH, pytest.param(1, marks=pytest.mark.slow)])
def test_every_question_passes_in_a_short_run(
    step: int, monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command itself. It is wrong in one run of a million, ``ALPHA``, if all is as claimed."""
    by_question: dict[Question, list[tuple[Scenario, Question]]] = {}
    for scenario, question in selftest.list_questions(policy()):
        by_question.setdefault(question, []).append((scenario, question))
    every = list(by_question.values())
    some = every[::step]
    left_out = {s for pairs in every for s, _ in pairs} - {s for pairs in some for s, _ in pairs}
    some += [next(pairs for pairs in every if pairs[-1][0] == s) for s in sorted(left_out, key=str)]
    asked = [pair for pairs in some for pair in pairs]
    assert len(by_question) > 500
    assert {scenario for scenario, _ in asked} == {s for s, _ in selftest.list_questions(policy())}
    monkeypatch.setattr(selftest, "list_questions", lambda _: iter(asked))
    command = ["selftest", "--policy", str(POLICY), "--seconds", str(SHORT), "--jobs", "1"]
    code, said = main(command), capsys.readouterr()
    assert code == 0, said.out[-4_000:] + said.err
    assert said.out.endswith("no answer reveals more than its charge\n")
    assert "questions show who is missing: half of them would notice" in said.out
    assert len(said.out.splitlines()) >= len(by_question) // step


def test_without_time_each_question_is_asked_in_some_scenario() -> None:
    pairs = list(selftest.list_questions(policy()))
    for seconds in (0.0, 30.0, 90.0):
        few = selftest._within(pairs, seconds)
        assert {q for _, q in few} == {q for _, q in pairs}
        assert {s for s, _ in few} == {s for s, _ in pairs}
        assert len(few) * selftest._LEAST <= max(
            seconds, selftest._LEAST * len({q for _, q in few})
        )
    assert selftest._within(pairs, float("inf")) == pairs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shop", "rows", "far", "ratings"])
def test_every_question_passes_in_a_long_run(name: str) -> None:
    findings = list(selftest.run(policy(name), jobs=2))
    assert not [f for f in findings if not f.passed]
