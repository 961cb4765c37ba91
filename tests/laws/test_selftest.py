"""The self-test passes here, leaves nothing out, and notices each planted fault."""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.datasets import FIXTURES
from support.services import Seeded

from dpsql import selftest
from dpsql.aggregates.registry import AGGREGATES
from dpsql.cli import main
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.plan.bounding import STRATEGIES
from dpsql.plan.priced import PricedPlan
from dpsql.policy.load import load
from dpsql.policy.model import MECHANISMS, Policy
from dpsql.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    TruncatedGeometric,
)
from dpsql.selftest.bound import Claim, Found, at_least, at_most, lower_bound
from dpsql.selftest.matrix import matrix
from dpsql.selftest.questions import Question
from dpsql.selftest.scenarios import ALONE, EMPTY, SCENARIOS, SPREAD, TWICE, Scenario
from dpsql.selftest.side import Side
from dpsql.selftest.unanswered import explained
from dpsql.service import Service
from dpsql.sql.bind import bind
from dpsql.sql.parse import Source, parse
from dpsql.sql.relations import Aggregate, walk

sys.path.insert(0, str(Path(__file__).parent))
from planted import PLANTED, Planted

POLICY = FIXTURES / "policies" / "shop.yaml"
Patch = pytest.MonkeyPatch


@functools.cache
def policy(name: str = "shop") -> Policy:
    return load(FIXTURES / "policies" / f"{name}.yaml")


def found(question: str, scenario: Scenario, samples: int) -> selftest.Finding:
    """The finding of one question about the probes."""
    (one,) = selftest.run(
        policy(), samples, wanted=lambda s, q: (s, q.name) == (scenario, question)
    )
    return one


CRASHES = "the engine failed"
"""What may leave no samples: dpsql itself has stopped."""


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_a_fault_is_noticed(planted: Planted, monkeypatch: Patch) -> None:
    planted.patch(monkeypatch)
    seen = found(planted.question, planted.scenario, planted.samples)
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
    seen = [found(planted.question, planted.scenario, planted.samples) for _ in range(8)]
    if not all(one.shape for one in seen):
        excess = np.array([one.bound - one.charged.epsilon for one in seen])
        assert excess.mean() > 4 * excess.std(ddof=1), excess


@pytest.mark.parametrize(
    ("question", "scenario"),
    sorted({(p.question, p.scenario) for p in PLANTED}, key=str),
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_without_the_faults_it_passes(question: str, scenario: Scenario) -> None:
    seen = found(question, scenario, 10_000)
    assert seen.passed, seen
    few = next(q.cells for q in matrix() if q.name == question)
    assert seen.samples == min(10_000, selftest.MOST_OF_FEW * (few or 10_000))


def test_it_is_sharp() -> None:
    assert found("semi join", TWICE, 40_000).bound > 0.85


def _third(number: int) -> selftest.Wanted:
    """A third of the questions, each in one of its scenarios."""
    turns = {q: i for i, (_, q) in enumerate(dict.fromkeys(_pairs()))}
    assert len(turns) > 150

    def wanted(scenario: Scenario, question: Question) -> bool:
        turn = turns[question]
        mine = question.scenarios[turn % len(question.scenarios)]
        return turn % 3 == number and scenario == mine and question.cells is None

    return wanted


def _pairs() -> list[tuple[None, Question]]:
    return [(None, question) for _, question in selftest.asked(policy())]


@pytest.mark.parametrize("third", range(3))
def test_every_question_passes_in_a_short_run(third: int) -> None:
    findings = list(selftest.run(policy(), 2_000, wanted=_third(third)))
    assert len(findings) > 50
    assert not [f for f in findings if not f.passed]
    assert not [f for f in findings if f.samples < 2_000]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shop", "rows", "far"])
def test_every_question_passes_in_a_long_run(name: str) -> None:
    findings = list(selftest.run(policy(name), jobs=2))
    assert not [f for f in findings if not f.passed]


# --- nothing is left out: what is new has a question, or a test fails


@functools.cache
def planned(question: Question, name: str = "shop") -> tuple[PricedPlan, frozenset[str]]:
    """The plan of a question about the probes, and the aggregates that its text has."""
    service = _service(name)
    session = service.session(question.role)
    session.settings = replace(
        session.settings, bounding=question.bounding, mechanism=question.mechanism
    )
    sql = question.text(question.steps[-1], 1)
    relation = bind(parse(Source(sql)), service.catalog(question.role)).relation
    calls = {c.function for r in walk(relation) if isinstance(r, Aggregate) for c in r.calls}
    return session.prepare(sql), frozenset(calls)


@functools.cache
def _service(name: str) -> Service:
    """A service over copies of ten cells, as long as the process lasts."""
    work = selftest._Work(policy(name), TWICE, tuple(matrix()), 20, 0, 1)
    place = tempfile.TemporaryDirectory(prefix="dpsql-selftest-")
    _KEPT.append(place)
    return selftest._pair(work, 10, Path(place.name), ExitStack(), selftest._Days())[0]


_KEPT: list[object] = []


def asked_in(scenario: Scenario) -> Iterator[Question]:
    return (q for q in matrix() if scenario in q.scenarios)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_every_aggregate_is_asked_about_in_every_scenario(scenario: Scenario) -> None:
    assert {c for q in asked_in(scenario) for c in planned(q)[1]} >= AGGREGATES.keys()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_every_way_to_bound_is_used_in_every_scenario(scenario: Scenario) -> None:
    used = {p.bounding.name for q in asked_in(scenario) for p in planned(q)[0].parts}
    # one cell is one sample, so everybody's total is audited where it says most
    assert used >= set(STRATEGIES) - (set() if scenario == TWICE else {"unit totals"})


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_every_mechanism_and_rule_is_used_in_every_scenario(scenario: Scenario) -> None:
    questions = list(asked_in(scenario))
    assert {q.mechanism for q in questions} >= {*MECHANISMS, "auto"}
    parts = [p for q in questions for p in planned(q)[0].parts]
    noises = {type(n.noise) for p in parts for n in p.noised}
    assert noises >= {DiscreteLaplace, DiscreteGaussian, Exponential}
    rules = {type(p.selection.units.noise) for p in parts if p.selection is not None}
    assert rules == {DiscreteLaplace, DiscreteGaussian, TruncatedGeometric}


def test_an_aggregate_has_noise_of_each_law_where_it_can() -> None:
    for question in matrix():
        if question.mechanism in ("laplace", "gaussian"):
            assert planned(question)[0].family == question.mechanism, question


def test_a_question_about_the_policy_is_about_its_tables() -> None:
    own = [q for _, q in selftest.asked(policy("far")) if not q.table.startswith("dpsql_")]
    assert {q.table for q in own} == {"customer", "orders", "lineitem", "returns"}
    assert any("reason" in q.sql or "priority" in q.sql for q in own)


# --- the machinery


def test_several_processes_find_the_same() -> None:
    def count(jobs: int) -> list[tuple[str, str, int]]:
        findings = selftest.run(policy("rows"), 200, jobs=jobs, wanted=_few)
        return [(f.scenario, f.question, f.samples) for f in findings]

    assert count(2) == count(1) != []


def _few(scenario: Scenario, question: Question) -> bool:
    return scenario in (ALONE, EMPTY) and question.name in ("COUNT", "COUNT(*)")


def test_when_time_is_up_fewer_are_asked() -> None:
    (one,) = selftest.run(
        policy(), 100_000, seconds=0, wanted=lambda s, q: (s, q.name) == (EMPTY, "semi join")
    )
    assert one.samples == 2 * selftest.MOST_CELLS


def test_what_is_refused_fails_and_says_so() -> None:
    one = _asked("SELECT dpsql_cell, nobody FROM dpsql_rows GROUP BY dpsql_cell")
    assert (one.samples, one.shape, one.passed) == (0, "", False)
    assert one.said.startswith("not answered: DP105: ")


def test_what_is_refused_after_an_answer_fails_too(monkeypatch: Patch) -> None:
    real, asked = Side.ask, []

    def broke(side: Side) -> bool:
        asked.append(side)
        if len(asked) > 2:
            side.refused = Refused(Refusal("DP402", "nothing is left", "spent"))
            return False
        return real(side)

    monkeypatch.setattr(Side, "ask", broke)
    one = found("COUNT(*)", EMPTY, 100_000)
    assert one.samples > 0
    assert (one.passed, one.said) == (False, "not answered: DP402: nothing is left")


def test_a_policy_may_wish_for_a_refusal() -> None:
    """Under strict timing alone, and never for what it answers."""
    assert [explained(policy(name), "DP306") for name in ("shop", "unsteady")] == ["", ""]
    assert explained(policy("strict"), "DP306")
    assert not explained(policy("strict"), "DP100")
    claim = Claim(1, 0)
    one = selftest.Finding("t", "s", "q", 0.0, claim, 0, "", "DP306: no", "strict")
    assert one.passed
    assert "under this policy (DP306: no): strict" in one.said
    assert not replace(one, shape="errors, columns or types differ").passed
    assert not replace(one, explained="").passed


UNSTEADY = "left join of those without"


def test_a_strict_policy_answers_all_questions_but_one() -> None:
    """It is known by name, so that a rule that refuses more is noticed."""
    assert {q.name for q in matrix() if _refused(q)} == {UNSTEADY}
    (one,) = selftest.run(
        policy("strict"), 20, wanted=lambda s, q: (s, q.name) == (TWICE, UNSTEADY)
    )
    assert (one.passed, one.samples) == (True, 0)
    assert one.said.startswith("not answered under this policy (DP306: ")


def _refused(question: Question) -> bool:
    try:
        planned(question, "strict")
    except Refused as refused:
        return bool(explained(policy("strict"), refused.code))
    return False


def test_charges_that_differ_are_a_fault(monkeypatch: Patch) -> None:
    charges = iter(range(10**6))
    monkeypatch.setattr(
        "dpsql.selftest.side.Side.charge", property(lambda _: (float(next(charges)), 0.0, 0.0, 0.0))
    )
    assert "charges" in found("COUNT(*)", EMPTY, 200).shape


def test_columns_that_differ_are_a_fault() -> None:
    """A statement over one side only: the other has no such question."""
    one = _asked("SELECT dpsql_cell, COUNT(*) FROM dpsql_rows GROUP BY dpsql_cell", differ=True)
    assert "differ" in one.shape


def _asked(sql: str, *, differ: bool = False) -> selftest.Finding:
    question = Question("asked", "dpsql_rows", sql)
    work = selftest._Work(policy(), SPREAD, (question,), 20, float("inf"), 1e-3)
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        pair = selftest._pair(work, 10, Path(place), stack, selftest._Days())
        if differ:
            tables = {n: t for n, t in pair[1].policy.tables.items() if n != "dpsql_rows"}
            pair[1].policy = replace(pair[1].policy, tables=tables)
        return selftest._found(work, question, pair, 10, float("inf"))


def test_the_command_says_what_it_found(
    monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = selftest.Finding("orders", "alone", "COUNT", 0.91, Claim(1, 0), 2_000)
    for findings, code, words in (
        ([one], 0, "no answer betrays more"),
        ([one, replace(one, bound=1.2)], 1, "1 answers betray more"),
        ([replace(one, shape="the engine failed")], 1, "the engine failed"),
        ([replace(one, samples=0, unanswered="DP107: f")], 1, "1 questions were not answered"),
        (
            [replace(one, samples=0, unanswered="DP306: f", explained="so")],
            0,
            "1 were not answered",
        ),
        ([], 1, "nothing was asked"),
    ):
        monkeypatch.setattr("dpsql.cli.selftest.audit", lambda *_, f=findings, **__: iter(f))
        assert main(["selftest", "--policy", str(POLICY), "--samples", "100"]) == code
        assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("hits", "n"), [(0, 50), (1, 50), (25, 50), (49, 50), (50, 50), (37, 9_000), (8_999, 9_000)]
)
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 0.3])
def test_its_bounds_are_those_of_clopper_and_pearson(hits: int, n: int, alpha: float) -> None:
    low = stats.beta.ppf(alpha, hits, n - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - alpha, hits + 1, n - hits) if hits < n else 1.0
    assert at_least(hits, n, alpha) == pytest.approx(low, rel=1e-6)
    assert at_most(hits, n, alpha) == pytest.approx(high, rel=1e-6)
    assert at_least(hits, n, alpha) <= low * (1 + 1e-12)


def _bound(one: object, other: object, *claims: Claim) -> Found:
    columns = [np.asarray(one, dtype=np.float64)], [np.asarray(other, dtype=np.float64)]
    return lower_bound(*columns, claims or (Claim(1, 0),), 1e-3)


def test_its_bound_sees_naive_floating_point_noise() -> None:
    share = Seeded(1).u64(100_000).astype(np.float64) / 2.0**64 - 0.5
    drawn = np.sign(share) * -np.log(1 - 2 * np.abs(share))
    assert _bound(drawn[:50_000], 1.0 + drawn[50_000:]).excess > 0


def test_its_bound_sees_what_is_missing_or_no_number() -> None:
    plain = np.zeros(2_000)
    for other in (selftest.bound.ABSENT, selftest.bound.NULL, np.nan, np.inf, -np.inf, 1e300):
        assert _bound(plain, np.where(np.arange(2_000) % 2, other, 0.0)).excess > 0
        assert _bound(np.full(2_000, other), np.full(2_000, other)).excess < 0


def test_its_bound_allows_what_delta_allows() -> None:
    rare = (np.arange(10_000) % 100 == 0).astype(np.float64)
    assert _bound(np.zeros(10_000), rare, Claim(0.1, 0.02)).excess < 0
    assert _bound(np.zeros(10_000), rare, Claim(0.1, 0.0)).excess > 0
    assert _bound(np.zeros(10_000), rare, Claim(0.1, 0.02), Claim(0.5, 0)).claim == Claim(0.5, 0)
