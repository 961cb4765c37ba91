"""The self-test passes here, and notices each of these faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from support.datasets import FIXTURES
from support.services import Seeded

from dpsql import pipeline, selftest
from dpsql.cli import main
from dpsql.engines.guard import Guard
from dpsql.plan import price, statement
from dpsql.plan.grid import clamped
from dpsql.policy.load import load
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.release import choose, noise
from dpsql.selftest.bound import at_least, at_most, lower_bound

POLICY = FIXTURES / "policies" / "shop.yaml"
TWICE, ALONE, BEYOND = "twice the rows allowed", "alone in the group", "values beyond every bound"
Patch = pytest.MonkeyPatch


def found(
    question: str, scenario: str, answers: int = 8, table: str = "orders", policy: str = "shop"
) -> selftest.Finding:
    """The finding of one question after so many answers."""
    ticks = iter(range(10**9))
    findings = selftest.run(
        load(FIXTURES / "policies" / f"{policy}.yaml"), float("inf"),
        watch=lambda: float(next(ticks)) if selftest.LEAST_ANSWERS else 0.0,
        wanted=lambda t, s, q: (t.name, s.name, q.name) == (table, scenario, question),
    )  # fmt: skip
    selftest.MOST_ANSWERS, usual = answers, selftest.MOST_ANSWERS
    try:
        (one,) = findings
    finally:
        selftest.MOST_ANSWERS = usual
    return one


def _scaled(factor: Fraction) -> Callable[[Patch], None]:
    def patch(change: Patch) -> None:
        real = price._noise

        def narrow(*args: Any) -> Any:
            honest = real(*args)
            if isinstance(honest, DiscreteLaplace):
                return DiscreteLaplace(honest.scale * factor)
            return DiscreteGaussian(honest.variance * factor**2)

        change.setattr(price, "_noise", narrow)

    return patch


def _written(pattern: str, new: str) -> Callable[[Patch], None]:
    """A statement that is written wrongly, and that nothing reads a second time."""

    def patch(change: Patch) -> None:
        real = price.statement

        def wrong(*args: Any) -> str:
            text = real(*args)
            changed = re.sub(pattern, new, text)
            assert changed != text, "the fault must change something"
            return changed

        change.setattr(price, "statement", wrong)
        change.setattr(Guard, "check", lambda *_, **__: None)

    return patch


def _threshold(change_by: int) -> Callable[[Patch], None]:
    def patch(change: Patch) -> None:
        real = price._selection

        def lower(*args: Any) -> Any:
            honest = real(*args)
            return replace(honest, threshold=honest.threshold - change_by)

        change.setattr(price, "_selection", lower)

    return patch


def _drawn(change_noise: Callable[[Any], Any]) -> Callable[[Patch], None]:
    def patch(change: Patch) -> None:
        for law in (DiscreteLaplace, DiscreteGaussian):
            real = law.sample
            change.setattr(
                law, "sample", lambda s, e, n, real=real: np.asarray(change_noise(real(s, e, n)))
            )

    return patch


def _uncentred(change: Patch) -> None:
    wrong = lambda text, total, at: clamped(text, total, replace(at, centre=0))  # noqa: E731
    change.setattr(statement, "clamped", wrong)


def _greedy(change: Patch) -> None:
    """Noise for twice the epsilon that the ledger is told of."""
    real, cost = price._shares, price._cost

    def shares(plan: Any, request: Any) -> Any:
        for share in real(plan, request):
            yield replace(share, epsilon=2 * share.epsilon, rho=4 * share.rho)

    honest = lambda p, request, s: replace(cost(p, request, s), epsilon=request.epsilon)  # noqa: E731
    change.setattr(price, "_shares", shares)
    change.setattr(price, "_cost", honest)


def _halves_unnoised(change: Patch) -> None:
    """The total and the count under an average are exact."""
    real = noise.added

    def added(exact: Any, item: Any, entropy: Any) -> Any:
        return exact if item.halves is not None else real(exact, item, entropy)

    change.setattr(noise, "added", added)


def _unpaid(change: Patch) -> None:
    real = pipeline.answer

    def free(*args: Any, **kwargs: Any) -> Any:
        given = real(*args, **kwargs)
        return replace(given, cost=replace(given.cost, epsilon=Fraction(0)))

    change.setattr("dpsql.service.session.answer", free)


def _sure_choice(change: Patch) -> None:
    """Utilities ten times as far apart as priced."""
    real = choose.utilities

    def steep(*args: Any) -> Any:
        ranks, units = real(*args)
        return ranks * 10, units

    change.setattr(choose, "utilities", steep)


def _all_shown(change: Patch) -> None:
    change.setattr(noise, "_selected", lambda table, *_: (table, None))


def _exact_units(change: Patch) -> None:
    """Groups are kept by their true number of units."""

    def selected(table: Any, *_: Any) -> Any:
        units = noise.integers(table.column("units"))
        return table.filter(pa.array(units >= 3)), units[units >= 3]

    change.setattr(noise, "_selected", selected)


def _unsorted(change: Patch) -> None:
    real = noise._noised

    def turned(*args: Any) -> Any:
        rows = real(*args)
        return replace(
            rows, table=rows.table.slice(1).take(list(range(rows.table.num_rows - 1))[::-1])
        )

    change.setattr(noise, "_noised", turned)


HIDDEN = "a group that nobody lists"
FAULTS: dict[str, tuple[Callable[[Patch], None], str, str, int]] = {
    "noise of four fifths the scale": (_scaled(Fraction(4, 5)), "COUNT", TWICE, 60),
    "noise of half the scale": (_scaled(Fraction(1, 2)), "COUNT", TWICE, 8),
    "sums with noise of half the scale": (_scaled(Fraction(1, 2)), 'SUM( "amount")', TWICE, 12),
    "Gaussian noise of a quarter": (_scaled(Fraction(1, 4)), "COUNT, gaussian", TWICE, 40),
    "no noise": (_drawn(lambda drawn: drawn * 0), "COUNT", ALONE, 2),
    "noise of one sign": (_drawn(abs), "COUNT", ALONE, 6),
    "noise that is cut": (_drawn(lambda drawn: np.clip(drawn, -3, 3)), "COUNT", TWICE, 6),
    "heavy units are not found": (_written(r"HAVING count\(\*\) > 10", "HAVING count(*) > 99"), "COUNT", TWICE, 12),
    "weights that forget to divide": (_written(r"// count\(\*\) AS weight", "// 1 AS weight"), "COUNT", TWICE, 12),
    "sums of unclamped values": (_written(r"CASE WHEN .*? END", 'TRY_CAST(t1."age" AS BIGINT)'), 'SUM( "age")', BEYOND, 4),
    "a cast that fails on a row": (_written(r'TRY_CAST\(t1."amount" AS DOUBLE\)', 'CAST(CAST(CAST(t1."amount" AS VARCHAR) AS DECIMAL(18, 2)) AS DOUBLE)'), 'SUM( "amount")', BEYOND, 2),
    "empty groups are left out": (_written(r"LEFT JOIN \(", "JOIN ("), "COUNT", ALONE, 2),
    "empty groups are NULL": (_written(r"coalesce\(a.p0, 0\)", "a.p0"), "COUNT", ALONE, 2),
    "groups of a unit without a limit": (_written(r" WHERE place <= \d+", ""), "COUNT of units in many groups", TWICE, 8),
    "a threshold two too low": (_threshold(2), HIDDEN, ALONE, 12),
    "no threshold": (_all_shown, HIDDEN, ALONE, 4),
    "a threshold of rows instead of units": (_written(r"count\(\*\) AS units", "coalesce(sum(n), 0) AS units"), HIDDEN, TWICE, 6),
    "a threshold without noise": (_exact_units, HIDDEN, TWICE, 6),
    "an average that is not centred, priced as one that is": (_uncentred, 'AVG( "amount")', TWICE, 80),
    "twice the epsilon that is charged": (_greedy, "COUNT", TWICE, 8),
    "exact halves under an average": (_halves_unnoised, 'AVG( "amount")', TWICE, 20),
    "a median that is too sure": (_sure_choice, 'MEDIAN( "amount")', TWICE, 32),
    "an extreme that is too sure": (_sure_choice, 'MAX( "amount")', TWICE, 40),
    "an answer that is not paid": (_unpaid, "COUNT", ALONE, 2),
    "rows in another order": (_unsorted, "COUNT", ALONE, 2),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault: str, monkeypatch: Patch) -> None:
    patch, question, scenario, answers = FAULTS[fault]
    patch(monkeypatch)
    table = (
        "customers"
        if "age" in question or ("threshold" in fault and scenario == ALONE)
        else "orders"
    )
    seen = found(question, scenario, answers, table)
    assert not seen.passed, seen


def test_distinct_that_is_dropped_is_noticed(monkeypatch: Patch) -> None:
    _written(r"CAST\(count\(\*\) > 0 AS BIGINT\)", "count(*)")(monkeypatch)
    assert not found("COUNT of units", TWICE, 6).passed


@pytest.mark.parametrize(
    ("question", "scenario"), sorted({(q, s) for _, q, s, _ in FAULTS.values()})
)
def test_without_the_faults_it_passes(question: str, scenario: str) -> None:
    seen = found(question, scenario, 8, "customers" if "age" in question else "orders")
    assert seen.passed, seen
    assert seen.samples


def test_it_is_sharp() -> None:
    assert found("COUNT", ALONE, 20, table="customers").bound > 0.8


def test_every_question_passes_in_a_short_run() -> None:
    findings = list(selftest.run(load(POLICY), 1))
    assert len(findings) > 200
    assert not [f for f in findings if not f.passed]
    assert sum(f.samples > 0 for f in findings) == len(findings)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["shop", "rows", "far"])
def test_every_question_passes_in_a_long_run(policy: str) -> None:
    findings = list(selftest.run(load(FIXTURES / "policies" / f"{policy}.yaml"), 100))
    assert not [f for f in findings if not f.passed]


def test_the_command_says_what_it_found(
    monkeypatch: Patch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = selftest.Finding("orders", ALONE, "COUNT", 0.91, 2_000)
    for findings, code, words in (
        ([one], 0, "no answer betrays more"),
        ([one, replace(one, bound=1.2)], 1, "1 answers betray more"),
        ([replace(one, shape="the engine failed")], 1, "the engine failed"),
    ):
        monkeypatch.setattr("dpsql.cli.selftest.audit", lambda *_, f=findings: iter(f))
        assert main(["selftest", "--policy", str(POLICY), "--seconds", "1"]) == code
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


def test_its_bound_sees_naive_floating_point_noise() -> None:
    share = Seeded(1).u64(100_000).astype(np.float64) / 2.0**64 - 0.5
    drawn = np.sign(share) * -np.log(1 - 2 * np.abs(share))
    naive = [drawn[:50_000], 1.0 + drawn[50_000:]]
    assert lower_bound(naive[0], naive[1], 0, 1e-3) > 1
