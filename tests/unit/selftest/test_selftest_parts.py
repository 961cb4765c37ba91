"""The parts of the self-test: what it asks, how it bounds, and what it says of refusals and faults."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.selftests import POLICY, find, policy
from support.services import Seeded

from dpsql import selftest
from dpsql.cli import main
from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.selftest.bound import (
    Claim,
    Found,
    _features,
    alpha_of_end,
    at_least,
    at_most,
    lower_bound,
)
from dpsql.selftest.power import Power, describe_powers, least_noticed
from dpsql.selftest.questions import Question
from dpsql.selftest.scenarios import ALONE, EMPTY, SPREAD, Scenario
from dpsql.selftest.side import Side
from dpsql.selftest.unanswered import explain_refusal

Patch = pytest.MonkeyPatch


def test_several_processes_find_the_same() -> None:
    """The same findings in the same order; bounds too, but for what noise makes of them.

    It catches a process that asks of other data, is charged otherwise, or whose samples are lost.
    """

    def findings(jobs: int) -> list[selftest.Finding]:
        return list(selftest.run(policy("rows"), 10_000, jobs=jobs, wanted=_few))

    def without_noise(found: selftest.Finding) -> selftest.Finding:
        assert found.power is not None
        return replace(found, bound=0.0, power=replace(found.power, shown=0.0))

    several, one = findings(2), findings(1)
    assert [without_noise(f) for f in several] == [without_noise(f) for f in one] != []
    assert {f.samples for f in one} == {10_000}
    for found, other in zip(several, one, strict=True):
        assert found.bound == pytest.approx(other.bound, abs=0.35)
    assert max(f.bound for f in several) > 0.5


def _few(scenario: Scenario, question: Question) -> bool:
    return scenario in (ALONE, EMPTY) and question.name in ("COUNT", "COUNT(*)")


def test_when_time_is_up_fewer_are_asked() -> None:
    (one,) = selftest.run(
        policy(), 100_000, seconds=0, wanted=lambda s, q: (s, q.name) == (EMPTY, "semi join")
    )
    assert one.samples == 2 * selftest.FEWEST_CELLS


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
    one = find("COUNT(*)", EMPTY, 100_000)
    assert one.samples > 0
    assert (one.passed, one.said) == (False, "not answered: DP402: nothing is left")


def test_a_policy_may_wish_for_a_refusal() -> None:
    """Under strict timing alone, and never for what it answers."""
    assert [explain_refusal(policy(name), "DP306") for name in ("shop", "unsteady")] == ["", ""]
    assert explain_refusal(policy("strict"), "DP306")
    assert not explain_refusal(policy("strict"), "DP100")
    claim = Claim(1, 0)
    one = selftest.Finding("t", "s", "q", 0.0, claim, 0, "", "DP306: no", "strict")
    assert one.passed
    assert "under this policy (DP306: no): strict" in one.said
    assert not replace(one, shape="errors, columns or types differ").passed
    assert not replace(one, explained="").passed


def test_charges_that_differ_are_a_fault(monkeypatch: Patch) -> None:
    charges = iter(range(10**6))
    monkeypatch.setattr(
        "dpsql.selftest.side.Side.charge", property(lambda _: (float(next(charges)), 0.0, 0.0, 0.0))
    )
    assert "charges" in find("COUNT(*)", EMPTY, 200).shape


def test_columns_that_differ_are_a_fault() -> None:
    """A statement over one side only: the other has no such question."""
    one = _asked("SELECT dpsql_cell, COUNT(*) FROM dpsql_rows GROUP BY dpsql_cell", differ=True)
    assert "differ" in one.shape


def _asked(sql: str, *, differ: bool = False) -> selftest.Finding:
    question = Question("asked", "dpsql_rows", sql)
    work = selftest._Work(policy(), SPREAD, (question,), 20, 10, float("inf"), 1e-3)
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
        ([one], 0, "no answer reveals more"),
        ([one, replace(one, bound=1.2)], 1, "1 answers reveal more"),
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


def _responses(count: int, epsilon: float, seed: int) -> list[np.ndarray]:
    """Answers of two runs that betray this epsilon in one event, and no answers more."""
    share = Seeded(seed).u64(2 * count).astype(np.float64) / 2.0**64
    likely = 1 / (1 + np.exp(-epsilon))
    return [(share[:count] < likely) * 1.0, (share[count:] >= likely) * 1.0]


@pytest.mark.parametrize("samples", [400, 2_000, 40_000])
@pytest.mark.parametrize("claim", [Claim(1.0, 0.0), Claim(0.5, 0.02)])
def test_what_is_said_to_be_noticed_is(samples: int, claim: Claim) -> None:
    """In nine of ten runs; a little less is noticed in fewer, so the figure is not far too high."""
    alpha = selftest.ALPHA / 1_500
    end = alpha_of_end(alpha, 1, 1)
    least = least_noticed(samples, claim.epsilon, claim.delta, end)

    def noticed(epsilon: float) -> float:
        found = [
            lower_bound([one], [other], [claim], alpha).excess > 0
            for one, other in (_responses(samples, epsilon, seed) for seed in range(40))
        ]
        return float(np.mean(found))

    assert noticed(least) >= 0.85
    slight = claim.epsilon + 0.7 * (least - claim.epsilon)
    assert noticed(slight) < noticed(least)


def test_every_question_would_notice_something_in_a_full_run() -> None:
    """Answers without noise at least; twenty samples would show nothing, however wrong they are."""
    pairs = list(selftest.list_questions(policy()))
    least = {}
    for scenario, question in pairs:
        count = selftest.SAMPLES // question.share
        count = min(count, (question.cells or count) * question.askings)
        end = alpha_of_end(selftest.ALPHA / len(pairs), len(question.steps) + 1, 5)
        least[scenario.name, question.name] = least_noticed(count, 1.0, 0.02, end)
    assert max(least.values()) < 6
    assert np.median([*least.values()]) < 1.2
    assert least_noticed(20, 1.0, 0.0, selftest.ALPHA / len(pairs)) == float("inf")


def test_power_is_told_of_both_sorts_of_questions() -> None:
    seen = [Power(1.0, 1 / k, 1.1) for k in (1.25, 1.5, 2.0)]
    blind = [Power(2.0, 0.0, 2.0 * k) for k in (1.5, 3.0, float("inf"))]
    shown, silent, never = describe_powers([*seen, *blind])
    assert shown == (
        "3 of 6 questions show who is missing: half of them would notice noise that is 1.50 times too"
        " narrow, nine of ten 2.00 times"
    )
    assert silent == (
        "3 do not: half of them would notice an answer that reveals 3 times its charge, nine of ten inf times"
    )
    assert never == "1 have too few samples to notice anything but errors"
    assert len(describe_powers(seen)) == len(describe_powers(blind[:1])) == 1
    assert describe_powers([]) == []


def _bound(one: object, other: object, *claims: Claim) -> Found:
    columns = [np.asarray(one, dtype=np.float64)], [np.asarray(other, dtype=np.float64)]
    return lower_bound(*columns, claims or (Claim(1, 0),), 1e-3)


def test_its_bins_end_where_the_first_halves_say() -> None:
    """Whatever the second halves are, the first ones fall into the same bins."""

    def first(second: float) -> list[list[int]]:
        runs = [np.concatenate([x + np.arange(100.0), second * x + np.zeros(100)]) for x in (0, 7)]
        halves = [codes[:100] for pair in _features(*runs) for codes in pair]
        return [(codes - codes.min()).tolist() for codes in halves]

    assert first(1.0) == first(1e6) == first(-1e9)


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
