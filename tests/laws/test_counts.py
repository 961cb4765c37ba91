"""The noise that users get has the law that was priced: counts, sums, averages, thresholds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from support.datasets import folder
from support.services import FreeLedger, Seeded, noon

from dpsql.engines.duckdb.engine import DuckDB
from dpsql.policy.load import load
from dpsql.price import price
from dpsql.price.priced import PricedPlan
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.service import Reply, Service

GROUPS = 20_000
POLICY = """
source: {{engine: duckdb, path: {data}}}
data_version: "1"
units: {{person: {{table: people, key: id}}}}
tables:
  people:
    unit: person
    columns:
      id: {{type: bigint}}
      cell: {{type: integer, range: [1, {groups}]}}
      value: {{type: double, range: [-10, 30]}}
      word: {{type: text}}
accounts:
  dataset: {{epsilon: 1e6, delta: 1e-3}}
roles:
  analyst:
    epsilon: 1e6
    delta: 1e-4
    session: {{epsilon: 1e6, delta: 1e-5}}
    search: off
    query: {{epsilon: 1, delta: 1e-6}}
"""


@functools.cache
def _policy(rows: str, groups: int) -> Path:
    place = folder() / f"people{abs(hash((rows, groups)))}"
    place.mkdir()
    with duckdb.connect(str(place / "people.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS {rows}")
    path = place / "policy.yaml"
    path.write_text(POLICY.format(data="people.duckdb", groups=groups))
    return path


MANY = "SELECT i AS id, 1 + i % 20000 AS cell, (hash(i) % 41)::DOUBLE - 10 AS value, 'w' || i % 50 AS word FROM range(1, 60001) AS r(i)"


def people(rows: str = MANY, groups: int = GROUPS, seed: int = 20) -> Service:
    """People in cells; the same noise each time."""
    policy = load(_policy(rows, groups))
    engine = DuckDB(policy.source.path, policy.limits)
    return Service(policy, engine, FreeLedger(), clock=noon, entropy=Seeded(seed))


def asked(sql: str, *settings: str, opened: Service) -> tuple[PricedPlan, Reply]:
    session = opened.session("analyst")
    for setting in ("fresh = on", *settings):
        session.execute(f"SET dpsql.{setting}")
    return session.prepare(sql), session.execute(sql)


def column(reply: Reply, i: int) -> npt.NDArray[np.float64]:
    return np.asarray(reply.table.column(i).to_numpy(), dtype=np.float64)


COUNTS = "SELECT cell, COUNT(*) AS n FROM people GROUP BY cell"
MECHANISMS = ("laplace", "geometric", "gaussian")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_counts_at_epsilon_one_err_as_the_mechanism_says(mechanism: str) -> None:
    priced, reply = asked(COUNTS, f"mechanism = '{mechanism}'", opened=people())
    assert priced.cost.epsilon == 1
    noise = priced.parts[0].noised[0].noise
    error = np.abs(column(reply, 1) - 3).mean()
    assert reply.table.num_rows == GROUPS
    if isinstance(noise, DiscreteLaplace):
        assert noise.scale == 1
        theory = noise.mean_absolute_error()
    else:
        law = _law(noise, 200)
        theory = float(np.abs(np.arange(-200, 201)) @ law)
    assert error == pytest.approx(theory, rel=0.03)


def _law(noise: object, reach: int) -> npt.NDArray[np.float64]:
    """P(X = x) for x from -reach to reach."""
    x = np.arange(-reach, reach + 1)
    match noise:
        case DiscreteLaplace(scale):
            weights = np.exp(-np.abs(x) / float(scale))
        case DiscreteGaussian(variance):
            weights = np.exp(-(x**2) / (2 * float(variance)))
        case _:
            raise AssertionError(noise)
    return np.asarray(weights / weights.sum())


def p_value(draws: npt.NDArray[np.float64], noise: object, step: float = 1.0) -> float:
    """How well draws fit the law, in about 40 cells of equal weight."""
    steps = np.rint(draws / step).astype(np.int64)
    assert np.allclose(steps * step, draws), "draws are whole numbers of grid steps"
    spread = noise.standard_deviation()  # type: ignore[attr-defined]
    reach = int(40 * spread) + 40
    law = _law(noise, reach)
    edges = np.unique(np.searchsorted(np.cumsum(law), np.linspace(0, 1, 41)[1:-1]))
    cells = np.searchsorted(edges, np.arange(len(law)), side="left")
    expected = np.bincount(cells, law) * len(draws)
    seen = np.bincount(cells[np.clip(steps, -reach, reach) + reach], minlength=len(expected))
    return float(stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue)


STATISTICS: dict[str, tuple[str, Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]]] = {
    "COUNT": (COUNTS, lambda v: v - 3),
    "SUM": ("SELECT cell, SUM(value) FROM people WHERE id < 0 GROUP BY cell", lambda v: v),
}


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noise_through_the_pipeline_has_the_priced_law(statistic: str, mechanism: str) -> None:
    sql, noise_of = STATISTICS[statistic]
    priced, reply = asked(sql, f"mechanism = '{mechanism}'", "epsilon = 0.5", opened=people())
    item = priced.parts[0].noised[0]
    drawn = noise_of(column(reply, 1))
    if statistic == "COUNT":
        assert p_value(drawn, item.noise) > 1e-4
        wider = _scaled(item.noise, Fraction(13, 10))
        assert p_value(drawn, wider) < 1e-20
    else:
        assert _fits(drawn, item, 1.0) > 1e-4
        assert _fits(drawn, item, 1.3) < 1e-20


def _fits(drawn: npt.NDArray[np.float64], item: object, factor: float) -> float:
    """Fine grids: the discrete law is its continuous one to within a step."""
    noise, step = item.noise, float(item.step)  # type: ignore[attr-defined]
    if isinstance(noise, DiscreteLaplace):
        law = stats.laplace(scale=float(noise.scale) * step * factor)
    else:
        law = stats.norm(scale=float(noise.variance) ** 0.5 * step * factor)
    return float(stats.kstest(drawn, law.cdf).pvalue)


def _scaled(noise: object, factor: Fraction) -> object:
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(noise.scale * factor)
    assert isinstance(noise, DiscreteGaussian)
    return DiscreteGaussian(noise.variance * factor**2)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noise_of_the_wrong_scale_is_noticed(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipeline itself with a planted fault, against the law that it claims."""
    honest, _ = asked(COUNTS, f"mechanism = '{mechanism}'", opened=people())
    real = price._noise
    monkeypatch.setattr(
        price, "_noise", lambda moved, share: _scaled(real(moved, share), Fraction(13, 10))
    )
    _, reply = asked(COUNTS, f"mechanism = '{mechanism}'", opened=people())
    assert p_value(column(reply, 1) - 3, honest.parts[0].noised[0].noise) < 1e-20


def test_thresholded_counts_are_the_truncated_law_above_the_threshold() -> None:
    """20,000 words of 15 people: each is shown with the probability of the exact law."""
    rows = "SELECT i AS id, 1 AS cell, 0.0 AS value, 'w' || i % 20000 AS word FROM range(0, 300000) AS r(i)"
    sql = "SELECT word, COUNT(*) FROM people GROUP BY word"
    priced, reply = asked(sql, opened=people(rows, 1))
    selection = priced.parts[0].selection
    assert selection is not None
    cut = selection.units.noise
    bound = cut.bound  # type: ignore[union-attr]
    weights = np.exp(-np.abs(np.arange(-bound, bound + 1)) * float(cut.epsilon))  # type: ignore[union-attr]
    law = weights / weights.sum()
    shown = np.arange(-bound, bound + 1) + 15 >= selection.threshold
    noise = column(reply, 1) - 15
    assert noise.min() + 15 >= selection.threshold
    assert abs(noise).max() <= bound
    expected = 20_000 * law[shown]
    chance = law[shown].sum()
    assert (
        abs(reply.table.num_rows - 20_000 * chance)
        < 5 * np.sqrt(20_000 * chance * (1 - chance)) + 1
    )
    seen = np.bincount((noise + bound).astype(int), minlength=2 * bound + 1)[shown]
    large = expected > 5
    assert (
        stats.chisquare(
            seen[large], expected[large] * seen[large].sum() / expected[large].sum()
        ).pvalue
        > 1e-4
    )


INTERVALS = {
    "SUM": ("SELECT cell, SUM(value) FROM people GROUP BY cell", 2_000),
    "COUNT": ("SELECT cell, COUNT(*) FROM people GROUP BY cell", 2_000),
    "AVG": ("SELECT cell, AVG(value) FROM people GROUP BY cell", 400),
    "ratio": ("SELECT cell, SUM(value) / COUNT(*) AS r FROM people GROUP BY cell", 400),
    "difference": ("SELECT cell, COUNT(*) - COUNT(*) FILTER (WHERE value > 0) AS d FROM people GROUP BY cell", 2_000),
    "STDDEV": ("SELECT cell, STDDEV_POP(value) FROM people GROUP BY cell", 400),
}  # fmt: skip


@pytest.mark.parametrize("what", INTERVALS)
def test_intervals_cover_the_exact_value_19_times_of_20(what: str) -> None:
    sql, groups = INTERVALS[what]
    rows = (
        f"SELECT i AS id, 1 + i % {groups} AS cell, 10 + ((i // {groups}) % 21 - 10)::DOUBLE / 2 AS value,"
        f" '' AS word FROM range(0, {210 * groups}) AS r(i)"
    )
    _, reply = asked(sql, "intervals = on", opened=people(rows, groups))
    truth = {"SUM": 2100.0, "COUNT": 210.0, "AVG": 10.0, "ratio": 10.0, "difference": 0.0, "STDDEV": float(np.std(np.arange(-10, 11) / 2))}[what]  # fmt: skip
    low, high = column(reply, 2), column(reply, 3)
    share = float(((low <= truth) & (truth <= high)).mean())
    assert 0.92 <= share <= 0.98, share
