"""Strict timing: the same answers, and a time that does not tell who is there.

Processor time is compared, never a clock; each law has a control that shows the difference which
is there without strict timing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import duckdb
import pytest
from support.corpus import CORPUS, Entry, World
from support.daily import some
from support.datasets import database
from support.measured import Exact, constants, every_way, exact, plan_of, request, text_of
from support.services import FreeLedger, noon

from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.duckdb.parameters import parameters
from dpsql.ir.statements import SALT
from dpsql.policy.load import load
from dpsql.policy.model import Latency
from dpsql.service import Service
from dpsql.service.pace import Pace

REFUSED = (
    "b.part_id <> a.part_id", "o.customer_number AND o.priority = 'low'",
    "c.country = k.country AND k.population > 50", "a.continent = b.continent AND b.population > 80",
    "k.continent = 'europe' LEFT JOIN", "a.continent <> 'asia' LEFT JOIN",
)  # fmt: skip
"""The queries of the corpus without a steady form: EXISTS and LEFT JOINs that compare more than keys."""


def _strictly(world: World) -> World:
    return replace(world, change=lambda text: f"{world.change(text)}\nstrict_timing: on\n")


CONDITIONED = [
    e for e in CORPUS if any(w in e.sql.upper() for w in ("WHERE", "JOIN", "HAVING", "DISTINCT"))
]
WORLDS = {id(e.world): _strictly(e.world) for e in CONDITIONED}


@pytest.mark.parametrize("half", range(2))
def test_what_is_measured_is_the_same_with_every_bounding(half: int) -> None:
    """Before noise, number by number, by every way to bound: so the answers are the same too.

    By day a third of the queries.
    """
    asked = [e for e in CONDITIONED if not any(part in e.sql for part in REFUSED)][half::2]
    assert len(asked) > 75
    wrong = {e.sql: told for e in some(asked, half, 3) if (told := _differs(e))}
    assert wrong == {}, "\n".join(f"{k}: {v}" for k, v in wrong.items())


def _differs(entry: Entry) -> str:
    strict, given = WORLDS[id(entry.world)], constants(entry.sql, entry.world)
    plans = [plan_of(entry.sql, world) for world in (entry.world, strict)]
    ways = [list(every_way(plan, request(2, 1), ("laplace",))) for plan in plans]
    with duckdb.connect(str(database(entry.world.data)), read_only=True) as connection:
        usual, steady = (
            [_ordered(found) for found in exact(connection, parts, given)] for parts in ways
        )
    for one, other, part in zip(usual, steady, ways[1], strict=True):
        if one != other:
            return f"{part.bounding.name}: {text_of(part)}"
    return ""


def _ordered(found: Exact) -> dict[object, list[object]]:
    """The numbers of each group; bins have no order, and weigh what they weigh in all."""
    return {
        key: [_bins(v) if isinstance(v, list) else v for v in values]
        for key, values in found.items()
    }


def _bins(listed: list[Mapping[str, int]]) -> Mapping[int, int]:
    weights: dict[int, int] = {}
    for each in listed:
        weights[each["b"]] = weights.get(each["b"], 0) + each["n"]
    return weights


PERSONS, VISITS, FAR = 100_000, 700_000, 10**12
POLICY = """
source: {{engine: duckdb, path: {path}}}
data_version: "1"
units: {{person: {{table: person, key: id}}}}
tables:
  person:
    unit: person
    columns:
      id: {{type: bigint}}
      name: {{type: text}}
      age: {{type: integer, range: [0, 99]}}
  visit:
    unit: person
    foreign_keys: [{{columns: [pid], references: person}}]
    max_rows_per_unit: 40
    columns:
      pid: {{type: bigint}}
      amount: {{type: double, range: [0, 500]}}
accounts: {{dataset: {{epsilon: 10, delta: 1e-5}}}}
roles: {{analyst: {{epsilon: 10, query: {{epsilon: 1}}}}}}
limits: {{threads: 1}}
strict_timing: {timing}
"""
JOIN = "FROM visit v JOIN person p ON v.pid = p.id"
QUESTIONS = {
    "a count": f"SELECT COUNT(*) {JOIN} WHERE {{}}",
    "sums by group": f"SELECT p.age, SUM(v.amount), COUNT(*) {JOIN} WHERE {{}} GROUP BY p.age",
    "EXISTS": "SELECT COUNT(*) FROM visit v WHERE EXISTS (SELECT 1 FROM person p"
    " WHERE v.pid = p.id AND {})",
    "people": f"SELECT COUNT(DISTINCT v.pid) {JOIN} WHERE {{}}",
}
WHOM = {"one": "p.name = 'n42'", "nobody": "p.name = 'zz'", "everybody": "p.name <> 'zz'"}
ONE, ALL = 1.35, 1.8
"""Bounds on how many times longer one runs than another, for the noise of a shared machine too."""


class Timed:
    """The statements of queries, and the processor time that the engine takes for them."""

    def __init__(self, folder: Path, timing: str, *, far: bool = False) -> None:
        data = folder / f"{timing}{'far' * far}.duckdb"
        _fill(data, far=far)
        file = folder / f"{timing}{'far' * far}.yaml"
        file.write_text(POLICY.format(path=data, timing=timing))
        policy = load(file)
        self.engine = DuckDB(data, policy.limits)
        self.service = Service(policy, self.engine, FreeLedger(), clock=noon)
        self.session = self.service.session("analyst")

    def seconds(self, sql: str) -> float:
        """How long the engine works on a query's statements."""
        (part,) = self.session.prepare(sql).parts
        given = dict.fromkeys(parameters(text_of(part)) & {SALT}, 7)
        begun = time.process_time()
        self.engine.measure(text_of(part), given)
        return time.process_time() - begun


def _fill(path: Path, *, far: bool) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE person AS SELECT range AS id, 'n' || range AS name,"
            f" CAST(hash(range) % 100 AS INTEGER) AS age FROM range({PERSONS})"
        )
        connection.execute(
            f"CREATE TABLE visit AS SELECT CAST(hash(range * 7) % {PERSONS} AS BIGINT) AS pid,"
            f" CAST(hash(range) % 500 AS DOUBLE) AS amount FROM range({VISITS})"
        )
        who = FAR if far else PERSONS - 1
        connection.execute(f"INSERT INTO person VALUES ({who}, 'far', 3)" if far else "SELECT 1")
        connection.execute(f"INSERT INTO visit VALUES ({who}, 3)")


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Timed]]:
    folder = tmp_path_factory.mktemp("timing")
    found = {
        "off": Timed(folder, "off"), "on": Timed(folder, "on"),
        "off far": Timed(folder, "off", far=True), "on far": Timed(folder, "on", far=True),
    }  # fmt: skip
    yield found
    for each in found.values():
        each.service.close()


def _usual(runs: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """The median of some runs, which take turns."""
    found = {name: [run()] for name, run in runs.items()}
    for _ in range(8):
        for name, run in runs.items():
            found[name].append(run())
    return {name: median(times) for name, times in found.items()}


def _asked(timed: Timed, questions: dict[str, str]) -> dict[str, float]:
    return _usual({name: partial(timed.seconds, sql) for name, sql in questions.items()})


@pytest.mark.parametrize("what", QUESTIONS)
def test_the_time_does_not_tell_whom_a_condition_finds(timed: dict[str, Timed], what: str) -> None:
    asked = {name: QUESTIONS[what].format(condition) for name, condition in WHOM.items()}
    strict, usual = _asked(timed["on"], asked), _asked(timed["off"], asked)
    assert 1 / ONE < strict["one"] / strict["nobody"] < ONE
    assert 1 / ALL < strict["everybody"] / strict["one"] < ALL
    assert usual["one"] > 1.15 * usual["nobody"], "the control: one person's row is seen"
    assert usual["everybody"] > 2.5 * usual["nobody"], "the control: and so is everybody's"


def test_the_time_does_not_tell_that_one_key_is_far_from_the_others(
    timed: dict[str, Timed],
) -> None:
    """Engines use an array instead of a hash table where keys are close together."""
    sql = QUESTIONS["a count"].format("v.amount >= 0")
    found = _usual({name: partial(each.seconds, sql) for name, each in timed.items()})
    assert 1 / ONE < found["on far"] / found["on"] < ONE
    assert found["off far"] > 1.5 * found["off"], "the control"


def _told(present: list[float], absent: list[float]) -> float:
    """How often the longer of two times is the one with the row: 1/2 tells nothing, 1 everything."""
    pairs = [(p > a) + (p == a) / 2 for p in present for a in absent]
    return sum(pairs) / len(pairs)


def _attack(seconds: Callable[[str], float]) -> float:
    """Whether somebody is in the data, told from how long it takes to filter on them."""
    sides: tuple[list[float], list[float]] = [], []
    for number in range(25):
        for side, letter in zip(sides, "nz", strict=True):
            condition = f"p.name = '{letter}{number * 1000}'"
            side.append(seconds(QUESTIONS["a count"].format(condition)))
    return _told(*sides)


def test_who_is_there_is_not_told_by_time(timed: dict[str, Timed]) -> None:
    assert _attack(timed["off"].seconds) > 0.9, "the control: without protection it is told"
    assert 0.2 < _attack(timed["on"].seconds) < 0.8


def test_who_is_there_is_not_told_by_when_an_answer_leaves(timed: dict[str, Timed]) -> None:
    """Under ``latency: fixed``. The clock is the work that is done, and what is slept."""
    slept = [0.0]

    def watch() -> float:
        return time.process_time() + slept[0]

    def sleep(seconds: float) -> None:
        slept[0] += seconds

    def seen(sql: str) -> float:
        begun = watch()
        timed["off"].session.execute(sql)
        return round(watch() - begun, 1)

    timed["off"].service.pace = Pace(Latency(2, fixed=True), watch, sleep)
    assert _attack(seen) == 0.5
    timed["off"].service.pace = Pace(None)
    assert _attack(timed["off"].seconds) > 0.9, "the control: without protection it is told"
