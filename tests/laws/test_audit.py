"""End to end: a query over replicas of neighbouring tables betrays no more than it was charged.

Every public group holds its own copy of one scenario, so one answer is thousands of samples. In
the other run the unit that matters is removed from every group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from audit import ABSENT, Samples, lower_bound
from support.datasets import folder
from support.services import FreeLedger, noon

from dpsql.engines.duckdb import statements
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.policy.load import load
from dpsql.price import halves, price
from dpsql.price.priced import Noise
from dpsql.privacy.entropy import Entropy
from dpsql.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.rewrite import shortcut
from dpsql.service import Service

CELLS = 5_000
POLICY = """
source: {{engine: duckdb, path: data.duckdb}}
data_version: "1"
units: {{person: {{table: people, key: id}}}}
tables:
  people: {{unit: person, columns: {{id: {{type: bigint}}}}}}
  facts:
    unit: person
    foreign_keys: [{{columns: [id], references: people}}]
    max_rows_per_unit: {rows}
    columns:
      id: {{type: bigint}}
      cell: {{type: integer, range: [1, 5000]}}
      value: {{type: double, range: [0, 10], nullable: true}}
      word: {{type: text}}
accounts: {{dataset: {{epsilon: 1e6, delta: 0.5}}}}
roles:
  analyst:
    epsilon: 1e6
    delta: 0.4
    session: {{epsilon: 1e6, delta: 0.3}}
    query: {{epsilon: 1e6, delta: {delta}}}
    max_groups_per_unit: {groups}
    search: off  # what it finds stays the same in all samples, and differs between the two runs
"""


@dataclass(frozen=True)
class Scenario:
    """``others`` and ``victim`` are rows of one cell: VALUES of (person of the cell, value)."""

    sql: str
    victim: str
    others: str = "(1, 5), (2, 6)"
    rows: int = 1
    delta: float = 1e-6
    thresholded: bool = False
    groups: int = 3


SCENARIOS: dict[str, Scenario] = {
    "COUNT": Scenario("SELECT cell, COUNT(*) FROM facts GROUP BY cell", "(9, 1)"),
    "a difference": Scenario(
        "SELECT cell, COUNT(*) - COUNT(*) FILTER (WHERE id % 1000 <> 9) FROM facts GROUP BY cell",
        "(9, 1)",
    ),
    "COUNT, ten times the rows": Scenario(
        "SELECT cell, COUNT(*) FROM facts GROUP BY cell", ", ".join(["(9, 1)"] * 20), rows=2
    ),
    "COUNT of units": Scenario(
        "SELECT cell, COUNT(DISTINCT id) FROM facts GROUP BY cell", "(9, 1), (9, 2)", rows=2
    ),
    "COUNT, empty or one": Scenario(
        "SELECT cell, COUNT(*) FROM facts GROUP BY cell", "(9, 1)", others="(1, NULL)"
    ),
    "SUM": Scenario("SELECT cell, SUM(value) FROM facts GROUP BY cell", "(9, 10)"),
    "SUM, out of bounds": Scenario(
        "SELECT cell, SUM(value) FROM facts GROUP BY cell",
        "(9, 'inf'), (9, 1e300), (9, 77), (9, 'nan')", rows=2,
    ),
    "SUM beside COUNT": Scenario(
        "SELECT cell, SUM(value), COUNT(value) FROM facts GROUP BY cell", "(9, 10), (9, 10)", rows=2
    ),
    "AVG": Scenario("SELECT cell, AVG(value) FROM facts GROUP BY cell", "(9, 10)"),
    "AVG, alone": Scenario(
        "SELECT cell, AVG(value) FROM facts GROUP BY cell", "(9, 0)", others="(1, NULL)"
    ),
    "STDDEV": Scenario("SELECT cell, VAR_POP(value) FROM facts GROUP BY cell", "(9, 0)"),
    "a thresholded key": Scenario(
        "SELECT word, COUNT(DISTINCT id) FROM facts GROUP BY word", "(9, 1)",
        others=", ".join(f"({i}, 1)" for i in range(100, 112)), delta=1e-3, thresholded=True,
    ),
    "a key of one unit": Scenario(
        "SELECT word, COUNT(*) FROM facts GROUP BY word", "(9, 1)", others="(1, NULL)",
        delta=0.02, thresholded=True,
    ),
    "thresholded sums, several groups": Scenario(
        "SELECT word, SUM(value) FROM facts GROUP BY word", "(9, 10)",
        others=", ".join(f"({i}, 1)" for i in range(100, 115)), rows=2, delta=1e-3,
        thresholded=True, groups=2,
    ),
}  # fmt: skip


@functools.cache
def _place(scenario: Scenario) -> Path:
    place = folder() / f"audit{list(SCENARIOS.values()).index(scenario)}"
    place.mkdir(exist_ok=True)
    for name, rows in (
        ("with", f"{scenario.others}, {scenario.victim}"),
        ("without", scenario.others),
    ):
        (place / name).mkdir()
        with duckdb.connect(str(place / name / "data.duckdb")) as connection:
            connection.execute(
                "CREATE TABLE facts AS SELECT 1000 * c + p AS id, c::INTEGER AS cell,"
                f" v::DOUBLE AS value, 'w' || c AS word FROM range(1, {CELLS + 1}) AS r(c),"
                f" (SELECT p, CAST(v AS DOUBLE) AS v FROM (VALUES {_texts(rows)}) AS x(p, v)) AS x"
            )
            if "(1, NULL)" in scenario.others:
                connection.execute("DELETE FROM facts WHERE value IS NULL")
            connection.execute("CREATE TABLE people AS SELECT DISTINCT id FROM facts")
        text = POLICY.format(rows=scenario.rows, delta=scenario.delta, groups=scenario.groups)
        (place / name / "policy.yaml").write_text(text)
    return place


def _texts(rows: str) -> str:
    """Every value as text, so that a column of them has one type."""
    pairs = [pair.strip("( )").split(", ") for pair in rows.split("), (")]
    return ", ".join(
        f"({p}, {v if v.startswith(chr(39)) or v == 'NULL' else repr(v)})" for p, v in pairs
    )


def samples(
    scenario: Scenario, side: str, answers: int, epsilon: Fraction = Fraction(1)
) -> Samples:
    """What all cells show in several answers at this epsilon each."""
    policy = load(_place(scenario) / side / "policy.yaml")
    engine = DuckDB(policy.source.path, policy.limits)
    with Service(policy, engine, FreeLedger(), clock=noon, entropy=Entropy()) as opened:
        session = opened.session("analyst")
        session.execute("SET dpsql.fresh = on")
        session.execute("SET dpsql.show = 'always'")
        session.settings = replace(session.settings, epsilon=epsilon)
        found = []
        for _ in range(answers):
            table = session.execute(scenario.sql).table
            values = np.full(CELLS, ABSENT)
            keys = table.column(0).to_pylist()
            places = [int(str(k).lstrip("w")) - 1 for k in keys]
            values[places] = table.column(1).to_numpy()
            found.append(values)
    return np.concatenate(found)


def audited(scenario: Scenario, answers: int) -> float:
    one, other = (samples(scenario, side, answers) for side in ("with", "without"))
    return lower_bound(one, other, scenario.delta if scenario.thresholded else 0.0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_answer_betrays_no_more_than_it_costs(name: str) -> None:
    assert audited(SCENARIOS[name], 10) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_many_answers_betray_no_more_than_they_cost(name: str) -> None:
    assert audited(SCENARIOS[name], 200) <= 1


def test_the_audit_is_sharp() -> None:
    """Laplace noise on a count reaches its epsilon, so the bound must come close."""
    assert audited(SCENARIOS["COUNT"], 20) > 0.9


def _narrower(real: Callable[..., Noise], factor: Fraction) -> Callable[..., Noise]:
    def noise(*args: object) -> Noise:
        honest = real(*args)
        if isinstance(honest, DiscreteLaplace):
            return DiscreteLaplace(honest.scale * factor)
        assert isinstance(honest, DiscreteGaussian)
        return DiscreteGaussian(honest.variance * factor**2)

    return noise


@pytest.mark.parametrize("name", ["COUNT", "SUM"])
def test_noise_of_half_the_scale_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "_noise", _narrower(price._noise, Fraction(1, 2)))
    assert audited(SCENARIOS[name], 20) > 1.3


def test_halves_that_each_cost_half_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = halves.laplace_for
    monkeypatch.setattr(halves, "laplace_for", lambda l1, epsilon: real(l1, 2 * epsilon))
    assert audited(SCENARIOS["SUM beside COUNT"], 20) > 1.3


def test_a_forgotten_bound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty rows of a unit, counted as the two that were declared."""
    real = statements.write
    monkeypatch.setattr(
        statements,
        "write",
        lambda query: real(query).replace("HAVING count(*) > 2", "HAVING count(*) > 2000").replace("least(s0, 2)", "s0"),
    )  # fmt: skip
    monkeypatch.setattr(shortcut, "_summed", lambda _: False)  # no other statement stands in for it
    assert audited(SCENARIOS["COUNT, ten times the rows"], 10) > 3


def test_a_forgotten_threshold_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.release.noise._selected", lambda table, part, entropy: (table, None))
    assert audited(SCENARIOS["a key of one unit"], 10) > 3
