"""Judges of counts, of copies, and of several kinds of units speak when something is made wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.adversary.attack import attack
from tests.adversary.model import Case, Measured, Row, Step
from tests.adversary.ratings import RATINGS, VICTIM
from tests.adversary.wrong import (
    CHOSEN,
    EXPLAINED,
    HIDDEN,
    LISTED,
    STEPS,
    TOTAL,
    changed,
    in_right,
    measured,
    said,
)


@pytest.fixture(scope="module")
def case() -> Case:
    """A pair of which nothing is wrong."""
    return attack(RATINGS, "without", (VICTIM,), STEPS)


STOCK = replace(
    RATINGS,
    policy=RATINGS.policy.replace("{key: u}", "{key: u, group_size: 3}, item: {table: stock, key: row}")
    .replace("tables:\n", "tables:\n  stock: {unit: item, columns: {n: {type: bigint}}}\n"),
    ddl=(*RATINGS.ddl, "CREATE TABLE stock (n BIGINT)"),
    rows=(*RATINGS.rows, *(Row("stock", (str(i % 3),), f"item:{i}") for i in range(90))),
    group_size=3,
)  # fmt: skip
"""Three people are protected together, and each item by itself."""


@pytest.mark.parametrize("relation", ["order", "without"])
def test_as_many_units_count_together_as_the_policy_says_of_their_kind(relation: Any) -> None:
    owners = ("item:4",) if relation == "without" else ()
    asked = ("stock GROUP BY 1", "(SELECT x AS n FROM t) AS t GROUP BY 1")
    steps = [Step("ask", f"SELECT n AS g, COUNT(*) AS m FROM {text}") for text in asked]
    found = attack(STOCK, relation, owners, steps)
    assert [t.error for t in found.left.transcripts] == [None, None]
    assert said(found) == {}
    for number, least in enumerate((2, 4)):
        low = measured(found, number, lambda m, n=least: replace(m, shown=(n, 0)))  # type: ignore[misc]
        assert "and delta" in said(low)["selection"]


@pytest.mark.parametrize("step", [TOTAL, HIDDEN])
def test_a_count_that_grows_without_a_unit_is_noticed(case: Case, step: int) -> None:
    def grown(m: Measured) -> Measured:
        draws = (replace(m.draws[0], exact=(*m.draws[0].exact[:-1], 99)), *m.draws[1:])
        return replace(m, draws=draws)

    found = tuple(map(grown, case.right.transcripts[step].measured))
    wrong = in_right(case, step, measured=found)
    assert "grows" in said(wrong)["alone"]
    assert "alone" not in said(replace(wrong, relation="same"))


def test_a_count_of_a_group_that_only_others_are_in_is_noticed(case: Case) -> None:
    def one_more(m: Measured) -> Measured:
        draws = tuple(replace(d, exact=(*d.exact, 1)) for d in m.draws)
        columns = tuple((n, kind, (*values, 1)) for n, kind, values in m.columns)
        return replace(m, keys=(*m.keys, (("double", b"12345678"),)), draws=draws, columns=columns)

    found = tuple(map(one_more, case.right.transcripts[HIDDEN].measured))
    assert "grows" in said(in_right(case, HIDDEN, measured=found))["alone"]


def test_sums_and_choices_may_grow_without_a_unit(case: Case) -> None:
    for step in (LISTED, CHOSEN):
        left, right = (run.transcripts[step].measured for run in (case.left, case.right))
        turned = replace(case, left=changed(case.left, step, measured=right))
        assert "alone" not in said(in_right(turned, step, measured=left))


def test_copies_of_a_database_that_is_gone_are_noticed(case: Case) -> None:
    def copied(m: Measured) -> Measured:
        return replace(m, statement='SELECT count(*) FROM "dpsql_prepared"."t"')

    def beside(case: Case, rows: tuple[Row, ...]) -> Case:
        return replace(case, left=replace(case.left, world=replace(case.left.world, earlier=rows)))

    read = measured(case, TOTAL, copied)
    plan = replace(case, left=changed(case.left, EXPLAINED, text="reads dpsql_prepared"))
    other, alike = case.left.world.rows[1:], case.left.world.rows
    for wrong in (read, plan):
        assert "another database" in said(beside(wrong, other))["replaced"]
        assert "replaced" not in said(beside(wrong, alike))
        assert "replaced" not in said(wrong)
    assert "replaced" not in said(beside(case, other))
