"""The self-test leaves nothing out: every pair that can be has a question, and what cannot has a reason.

What a question is about is read from its plan, not from its name.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.datasets import FIXTURES

from dpsql import selftest
from dpsql.bound import STRATEGIES
from dpsql.catalog.aggregates import is_private, names_where
from dpsql.diagnostics.refusal import Refused
from dpsql.ir.relations import Aggregate, Join, walk_relations
from dpsql.policy.load import load
from dpsql.policy.model import MECHANISMS, Policy
from dpsql.price.priced import PricedPlan
from dpsql.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    TruncatedGeometric,
)
from dpsql.selftest.matrix import matrix
from dpsql.selftest.products import AGGREGATES as TEXTS
from dpsql.selftest.questions import Question
from dpsql.selftest.scenarios import BESIDE, SCENARIOS, TWICE
from dpsql.selftest.unanswered import explain_refusal
from dpsql.service import Service
from dpsql.sql.bind import bind
from dpsql.sql.parse import Source, parse

Pair = tuple[str, str]
RULES = {DiscreteLaplace: "Laplace", DiscreteGaussian: "Gaussian", TruncatedGeometric: "truncated"}
LAWS = (*MECHANISMS, "auto")


@functools.cache
def policy(name: str) -> Policy:
    return load(FIXTURES / "policies" / f"{name}.yaml")


_KEPT: list[object] = []


@functools.cache
def _service(name: str) -> Service:
    """A service over copies of ten cells, as long as the process lasts."""
    work = selftest._Work(policy(name), TWICE, tuple(matrix()), 20, 10, 0, 1)
    place = tempfile.TemporaryDirectory(prefix="dpsql-selftest-")
    _KEPT.append(place)
    return selftest._pair(work, 10, Path(place.name), ExitStack(), selftest._Days())[0]


@dataclass(frozen=True)
class About:
    """What a question is about, as its plan has it."""

    plan: PricedPlan
    aggregates: frozenset[str]
    joins: frozenset[str]

    @property
    def ways(self) -> frozenset[str]:
        return frozenset(part.bounding.name for part in self.plan.parts)

    @property
    def rules(self) -> frozenset[str]:
        found = (part.selection for part in self.plan.parts)
        return frozenset(RULES[type(s.units.noise)] for s in found if s is not None)


@functools.cache
def about(question: Question, name: str = "shop") -> About:
    """The plan of a question about the probes, and the aggregates and joins that its text has."""
    service = _service(name)
    session = service.session(question.role)
    session.settings = replace(
        session.settings, bounding=question.bounding, mechanism=question.mechanism,
        search="on" if question.search else "off", consistent=question.consistent,
    )  # fmt: skip
    sql = question.text(question.steps[-1], 1)
    below = list(walk_relations(bind(parse(Source(sql)), service.catalog(question.role)).relation))
    calls = {c.function for r in below if isinstance(r, Aggregate) for c in r.calls}
    joins = {r.kind for r in below if isinstance(r, Join)}
    return About(session.prepare(sql), frozenset(calls), frozenset(joins))


UNITS_ALONE = "a number of units has no rows to weigh, to rank or to take a norm of"
NO_TOTAL = "who is in each group must be known where groups are chosen by their units"
ONE_OF_A_UNIT = "where a unit has one group, a cap on its rows there says as much as weights"
ONE_GROUP = "everybody is one group, which nobody need choose"

NO_VECTOR = "what is chosen by value, or counts a value once, has no vector of sums"
BY_VALUE = (
    "MEDIAN",
    "QUANTILE",
    "PERCENTILE",
    "MODE",
    "MIN(",
    "MAX(",
    "BOOL_",
    "COUNT(DISTINCT n)",
    "COUNT(DISTINCT (n, kind))",
)

IMPOSSIBLE: Mapping[str, Mapping[Pair, str]] = {
    "aggregate by way": {
        ("COUNT(DISTINCT dpsql_person)", way): UNITS_ALONE
        for way in ("row weights", "norm clip", "prepared rows")
    }
    | {(text, "vector clip"): NO_VECTOR for text in TEXTS if text.startswith(BY_VALUE)},
    "way by rule": {
        (way, rule): ONE_GROUP if way == "unit totals" else NO_TOTAL
        for way in ("row weights", "norm clip", "vector clip", "prepared rows", "unit totals")
        for rule in RULES.values()
    }
    | {("weights and groups", "truncated"): ONE_OF_A_UNIT},
}
"""Every pair that no question can be about, and why."""


def _text(question: Question) -> str:
    """The aggregate of a question about an aggregate, as it is written."""
    return next((t for t in sorted(TEXTS, key=len)[::-1] if _names(question, t)), "")


def _names(question: Question, text: str) -> bool:
    return any(f"{before}{text} FROM" in question.sql for before in (", ", "SELECT "))


def _pairs(kind: str) -> Iterator[Pair]:
    for question in matrix():
        if question.scenarios == (BESIDE,):
            continue
        known, text = about(question), _text(question)
        scenarios = [s.name for s in question.scenarios]
        law = question.mechanism
        first: Iterable[str]
        second: Iterable[str]
        if kind.startswith("scenario"):
            first = scenarios
        elif kind.startswith("aggregate"):
            first = [text] if text else []
        else:
            first = known.ways
        if kind.endswith("aggregate"):
            second = known.aggregates
        elif kind.endswith("mechanism"):
            second = [law]
        elif kind.endswith("rule"):
            second = known.rules
        elif kind.endswith("join"):
            second = known.joins
        else:
            second = known.ways
        yield from itertools.product(first, second)


AGGREGATES = names_where(is_private)
WAYS = tuple(strategy.name for strategy in STRATEGIES)
SIDES: Mapping[str, tuple[Iterable[str], Iterable[str]]] = {
    "scenario by aggregate": ([s.name for s in SCENARIOS], AGGREGATES),
    "scenario by mechanism": ([s.name for s in SCENARIOS], LAWS),
    "scenario by way": ([s.name for s in SCENARIOS], WAYS),
    "scenario by rule": ([s.name for s in SCENARIOS], RULES.values()),
    "scenario by join": ([s.name for s in SCENARIOS], ("inner", "left", "semi", "anti")),
    "aggregate by mechanism": (TEXTS, MECHANISMS),
    "aggregate by way": (TEXTS, WAYS),
    "aggregate by rule": (TEXTS, RULES.values()),
    "way by mechanism": (WAYS, MECHANISMS),
    "way by rule": (WAYS, RULES.values()),
}


@pytest.mark.parametrize("kind", SIDES)
def test_every_pair_that_can_be_is_asked_about(kind: str) -> None:
    wanted, impossible = set(itertools.product(*SIDES[kind])), IMPOSSIBLE.get(kind, {})
    asked = set(_pairs(kind))
    assert wanted - asked == set(impossible), "neither more nor fewer than have a reason"
    assert all(impossible.values())


def test_every_way_to_write_an_aggregate_is_known() -> None:
    assert {about(q).aggregates for q in matrix() if _text(q)} >= {
        frozenset({name}) for name in AGGREGATES
    }


def test_every_sort_of_statement_is_asked() -> None:
    for wanted in (
        "nested twice", "rank", "distinct", "ROLLUP of units", "GROUPING SETS", "two phases",
        "asked again", "refined", "after a search", "of each of many groups",
        "of each of many hidden groups", "of homes", "less another", "key",
        "with enough units",
    ):  # fmt: skip
        assert any(wanted in q.name for q in matrix()), wanted
    searched = [q for q in matrix() if q.search]
    assert all(about(q).plan.searches for q in searched)


def test_names_tell_questions_apart() -> None:
    names = [(q.name, q.table) for q in matrix()]
    assert len(set(names)) == len(names)


def test_noises_are_of_every_law() -> None:
    noises = {type(n.noise) for q in matrix() for p in about(q).plan.parts for n in p.noised}
    assert noises >= {DiscreteLaplace, DiscreteGaussian, Exponential}


def test_an_aggregate_has_noise_of_each_law_where_it_can() -> None:
    for question in matrix():
        if question.mechanism in ("laplace", "gaussian"):
            assert about(question).plan.family == question.mechanism, question


def test_a_question_about_the_policy_is_about_its_tables() -> None:
    own = [q for _, q in selftest.list_questions(policy("far")) if not q.table.startswith("dpsql_")]
    assert {q.table for q in own} == {"customer", "orders", "lineitem", "returns", "refunds"}
    assert any("reason" in q.sql or "priority" in q.sql for q in own)


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
        about(question, "strict")
    except Refused as refused:
        return bool(explain_refusal(policy("strict"), refused.code))
    return False
