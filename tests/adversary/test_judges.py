"""Each judge is silent on what is right, and speaks when one thing of it is made wrong."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.adversary import seeds
from tests.adversary.attack import attack
from tests.adversary.dice import Dice
from tests.adversary.judges.noise import distance
from tests.adversary.judges.oracle import FIRST, NAME
from tests.adversary.learn import words
from tests.adversary.model import (
    Case,
    Draw,
    Failure,
    Finding,
    Measured,
    Row,
    Step,
    Transcript,
    World,
)
from tests.adversary.oracle import tame
from tests.adversary.ratings import RATINGS, VICTIM
from tests.adversary.run import fresh
from tests.adversary.seams import same
from tests.adversary.shrink import shrink
from tests.adversary.types import KINDS
from tests.adversary.wrong import (
    CHOSEN,
    EXPLAINED,
    HIDDEN,
    LISTED,
    REFUSED,
    STEPS,
    TOTAL,
    changed,
    drawn,
    in_right,
    measured,
    said,
)

TAME = seeds.Seed(
    World(
        f"{NAME} of one table",
        "source: {engine: duckdb, path: data.duckdb}\ndata_version: '1'\nunits: {person: {key: u}}\n"
        "accounts: {dataset: {epsilon: 1e9, delta: 1e-2}}\n"
        "roles: {analyst: {session: {epsilon: 1e9}, query: {epsilon: 1e7, delta: 1e-6}}}\n"
        "tables:\n  t:\n    unit: person\n    max_rows_per_unit: 2\n    columns:\n"
        "      u: {type: bigint}\n      x: {type: double, range: [0, 8]}\n",
        ("CREATE TABLE t (u BIGINT, x DOUBLE)",),
        tuple(Row("t", (str(unit), f"{unit % 8}.5"), f"person:{unit}") for unit in range(40)),
    ),
    "same", (), (FIRST, Step("ask", "SELECT SUM(x) AS n FROM t")),
)  # fmt: skip
FALLEN = [21, 89, 86, 77, 16]


@pytest.fixture(scope="module")
def case() -> Case:
    """A pair of which nothing is wrong."""
    return attack(RATINGS, "without", (VICTIM,), STEPS)


def test_nothing_is_found_where_nothing_is_wrong(case: Case) -> None:
    answered = [t for t in case.left.transcripts if t.error is None]
    assert len(answered) == len(STEPS) - 1
    assert said(case) == {}


SEEN: dict[str, tuple[int, Callable[[Transcript], dict[str, Any]]]] = {
    "a row is missing": (LISTED, lambda t: {"rows": t.rows[1:]}),
    "rows in another order": (LISTED, lambda t: {"rows": t.rows[::-1]}),
    "the sign of a zero": (TOTAL, lambda t: {"rows": ((-0.0,),)}),
    "another type": (TOTAL, lambda t: {"columns": (replace(t.columns[0], type="double"),)}),
    "another note": (LISTED, lambda t: {"notes": (*t.notes, "some rows were cut")}),
    "another notice": (LISTED, lambda _: {"notices": ("slow",)}),
    "another cost": (TOTAL, lambda _: {"cost": ("0.9", "0.0")}),
    "another rest": (TOTAL, lambda _: {"remaining": "{}"}),
    "recalled": (TOTAL, lambda _: {"recalled": True}),
    "another plan": (EXPLAINED, lambda t: {"text": t.text + " "}),
    "another place": (REFUSED, lambda t: {"error": replace(t.error, position=9)}),  # type: ignore[type-var]
    "another code": (TOTAL, lambda _: {"error": Failure("DP901", "it failed")}),
}


@pytest.mark.parametrize("what", SEEN)
def test_what_a_client_sees_is_compared(case: Case, what: str) -> None:
    step, change = SEEN[what]
    before = case.right.transcripts[step]
    if what == "the sign of a zero":
        case = replace(case, left=changed(case.left, step, rows=((0.0,),)))
    assert "sameness" in said(in_right(case, step, **change(before)))


def test_a_world_that_is_not_opened_is_noticed_but_for_the_one_bit(case: Case) -> None:
    one, bit = (
        replace(case.right, opened=Failure(c, c), transcripts=()) for c in ("DP901", "DP604")
    )
    assert "sameness" in said(replace(case, right=one))
    assert said(replace(case, right=bit)) == {}


def test_labels_are_compared_as_bytes(case: Case) -> None:
    plus, minus = (("double", b"\0" * 8),), (("double", b"\0" * 7 + b"\x80"),)

    def signed(m: Measured) -> Measured:
        """The group of zero, or else the first one: an engine lists them in any order."""
        keys = list(m.keys)
        at = next((i for i, key in enumerate(keys) if tuple(map(same, key)) == plus), 0)
        keys[at] = plus
        return replace(m, keys=tuple(keys))

    other = replace(case, left=case.right, relation="order", owners=())
    assert "labels" not in said(other)
    one = measured(other, HIDDEN, signed)
    two = one.left.transcripts[HIDDEN].measured[0]
    two = replace(two, keys=tuple(minus if key == plus else key for key in two.keys))
    right = changed(one.right, HIDDEN, measured=(two,))
    assert "is written as" in said(replace(one, right=right))["labels"]


def test_a_group_of_many_is_in_both_worlds(case: Case) -> None:
    def more(m: Measured) -> Measured:
        columns = [(n, k, (5,) * len(v)) if n == "units" else (n, k, v) for n, k, v in m.columns]
        new = ((("double", b"12345678"),),)
        return replace(m, keys=new + m.keys[1:], columns=tuple(columns))

    assert "of 5 units" in said(measured(case, HIDDEN, more))["labels"]


@pytest.mark.parametrize("step", [TOTAL, LISTED, CHOSEN])
def test_exact_numbers_that_move_too_far_are_noticed(case: Case, step: int) -> None:
    def farther(draw: Draw) -> Draw:
        if draw.kind == "histogram":
            bins = tuple(tuple((b, 9 * w) for b, w in pairs) for pairs in draw.exact)
            return replace(draw, exact=bins)
        return replace(draw, exact=tuple(v + (1 << 50) for v in draw.exact))

    assert "was paid for" in said(drawn(case, step, farther))["movement"]


def test_whatever_moves_without_a_unit_is_noticed(case: Case) -> None:
    assert "must not matter" in said(replace(case, relation="order"))["movement"]


def test_noise_that_no_event_names_is_noticed(case: Case) -> None:
    other = drawn(case, TOTAL, lambda d: replace(d, law=("laplace", (("scale", "1/9"),))))
    assert "no event names" in said(other)["movement"]


def test_a_charge_that_is_missing_or_too_small_is_noticed(case: Case) -> None:
    left = case.left
    gone = replace(left, charges=tuple(c for c in left.charges if c.step != TOTAL))
    assert "nothing charged" in said(replace(case, left=gone))["movement"]
    for name in ("epsilon", "rho", "threshold"):
        fewer = tuple(replace(c, **{name: getattr(c, name) // 2}) for c in left.charges)
        assert "was charged" in said(replace(case, left=replace(left, charges=fewer)))["noise"]


def test_narrow_noise_is_noticed(case: Case) -> None:
    half = drawn(case, LISTED, lambda d: replace(d, sample=tuple(v * 4 // 5 for v in d.sample)))
    assert "spreads" in said(half)["noise"]
    twice = drawn(case, LISTED, lambda d: replace(d, sample=d.sample[: len(d.sample) // 2] * 2))
    assert "the same in two draws" in said(twice)["noise"]
    even = drawn(case, LISTED, lambda d: replace(d, sample=tuple(v // 2 * 2 for v in d.sample)))
    assert "even than odd" in said(even)["noise"]


def test_noise_that_is_cut_is_as_wide_as_its_law(case: Case) -> None:
    """A law that a bound cuts spreads less than the same law without a bound."""
    law = ("truncated geometric", (("epsilon", "1/40"), ("bound", "105")))
    weights = {x: math.exp(-abs(x) / 40) for x in range(-105, 106)}
    times = {x: round(4_000 * w / sum(weights.values())) for x, w in weights.items()}
    drawn_so = Dice("cut").mixed([x for x, count in times.items() for _ in range(count)])
    right = drawn(case, TOTAL, lambda d: replace(d, law=law, sample=tuple(drawn_so)))
    assert "noise" not in said(right)
    narrow = tuple(value * 5 // 6 for value in drawn_so)
    wrong = drawn(case, TOTAL, lambda d: replace(d, law=law, sample=narrow))
    assert "truncated geometric noise" in said(wrong)["noise"]


@pytest.mark.parametrize(
    ("rate", "bound"),
    [(1 / 40, 105), (0.001, 20), (2.0, 3), (1e-9, 10_000), (0.5, 1_000), (1.0, 0)],
)
def test_how_far_a_cut_law_reaches_is_the_sum_over_its_numbers(rate: float, bound: int) -> None:
    weights = {x: math.exp(-rate * abs(x)) for x in range(-bound, bound + 1)}
    mean = sum(abs(x) * w for x, w in weights.items()) / sum(weights.values())
    assert distance(rate, bound) == pytest.approx(mean)


def test_noise_that_leans_is_noticed(case: Case) -> None:
    up = drawn(case, LISTED, lambda d: replace(d, sample=tuple(map(abs, d.sample))))
    assert "leans to one side" in said(up)["noise"]


def test_a_narrow_interval_is_noticed(case: Case) -> None:
    text = case.left.transcripts[TOTAL].text
    [(name, [(low, high)])] = ast.literal_eval(text)
    quarter = (high - low) / 4
    narrow = repr([(name, [(low + quarter, high - quarter)])])
    wrong = replace(case, left=changed(case.left, TOTAL, text=narrow))
    assert "an interval" in said(wrong)["released"]


@pytest.mark.parametrize(("by", "means"), [(-1, "rounded"), (40, "not the noised")])
def test_a_count_that_is_not_the_noised_one_is_noticed(case: Case, by: int, means: str) -> None:
    [(count,)] = case.left.transcripts[TOTAL].rows
    wrong = replace(case, left=changed(case.left, TOTAL, rows=((count + by,),)))
    assert means in said(wrong)["released"]


def test_what_leaves_beside_the_noise_is_noticed(case: Case) -> None:
    leak = measured(case, TOTAL, lambda m: replace(m, leak="exact integers"))
    assert "exact integers" in said(leak)["noise"]
    bare = measured(case, TOTAL, lambda m: replace(m, draws=()))
    assert "with 0 noises" in said(bare)["noise"]


def test_a_low_threshold_is_noticed(case: Case) -> None:
    def lower(m: Measured) -> Measured:
        assert m.shown is not None
        return replace(m, shown=(m.shown[0] - 1, m.shown[1]))

    assert "and delta" in said(measured(case, HIDDEN, lower))["selection"]


def test_a_group_below_the_threshold_is_noticed(case: Case) -> None:
    def more(m: Measured) -> Measured:
        assert m.shown is not None
        return replace(m, shown=(m.shown[0], m.shown[1] + 1))

    assert "pass the threshold" in said(measured(case, HIDDEN, more))["selection"]


def test_a_choice_that_tells_is_noticed(case: Case) -> None:
    exact = [
        t.measured[0].draws[0].exact[0]
        for t in (case.left.transcripts[3], case.right.transcripts[3])
    ]
    assert exact[0] != exact[1]

    def told(bins: Any, times: int) -> list[str]:
        return [str(7 if bins == exact[0] else i % 9) for i in range(times)]

    assert (
        "a choice tells" in said(drawn(case, CHOSEN, lambda d: replace(d, again=told)))["choices"]
    )


@pytest.mark.parametrize("code", ["DP901", "DP903", "XX000", "KeyError"])
def test_a_defect_is_noticed(case: Case, code: str) -> None:
    error = Failure(code, "it failed")
    both = replace(case, left=changed(case.left, REFUSED, error=error))
    assert code in said(in_right(both, REFUSED, error=error))["defects"]


def test_a_note_that_is_no_text_is_noticed(case: Case) -> None:
    """Of both worlds, so that nothing tells them apart; and what is learned of it is no error."""
    notes: Any = (None,)
    both = in_right(replace(case, left=changed(case.left, TOTAL, notes=notes)), TOTAL, notes=notes)
    assert said(both)["defects"] == "a note is no text"
    assert words(both.left.transcripts[TOTAL])


@pytest.mark.parametrize(("code", "noticed"), [
    ("DP901", True), ("XX000", True), ("AttributeError", True),
    ("PolicyError", False), ("SourceMismatch", False), ("DP604", False), ("DP902", False),
])  # fmt: skip
def test_a_policy_that_no_world_can_open_is_a_defect_unless_it_is_refused(
    case: Case, code: str, noticed: bool
) -> None:
    """Neither of two neighbours is opened, so nothing tells them apart."""
    left, right = (
        replace(run, opened=Failure(code, code), transcripts=()) for run in (case.left, case.right)
    )
    assert ("defects" in said(replace(case, left=left, right=right))) is noticed


def test_a_crash_while_a_policy_is_opened_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: what is looked up of the data cannot be asked."""

    def crash(*_: object) -> object:
        raise AttributeError("a text has no columns")

    monkeypatch.setattr("dpsql.declarations.queries.values_out_of_range", crash)
    world = TAME.world
    assert "AttributeError" in said(attack(world, "same", (), TAME.steps, sampled=False))["defects"]


def test_an_answer_that_is_not_duckdbs_is_noticed() -> None:
    seed = tame("judged", 0)
    table = re.search(r"CREATE TABLE (\w+)", seed.world.ddl[0])
    assert table is not None
    steps = (*seed.steps, Step("ask", f"SELECT COUNT(*) AS n FROM {table[1]}"))
    case = attack(seed.world, "same", (), steps, sampled=False)
    assert case.left.world.name.startswith(NAME)
    assert said(case) == {}
    wrong = changed(case.left, 1, rows=((case.left.transcripts[1].rows[0][0] + 1,),))
    assert "oracle" in said(replace(case, left=wrong))


def test_labels_of_every_type_are_those_of_duckdb() -> None:
    """A type is compared by what it says, whatever classes two clients have for it."""
    columns = [f"c{number} {kind.sql}" for number, kind in enumerate(KINDS)]
    said_of = [f"      c{number}: {{type: '{kind.policy}'}}\n" for number, kind in enumerate(KINDS)]
    policy = TAME.world.policy.replace("columns:\n", "columns:\n" + "".join(said_of), 1)
    rows = [
        Row("t", (str(unit), *(kind.plain[unit % 2] for kind in KINDS)), f"person:{unit}")
        for unit in range(60)
    ]
    asked = [
        f"SELECT c{number} AS g, COUNT(*) AS n FROM t GROUP BY 1" for number in range(len(KINDS))
    ]
    world = replace(
        TAME.world, policy=policy.replace("x: {type: double, range: [0, 8]}", ""),
        ddl=(f"CREATE TABLE t (u BIGINT, {', '.join(columns)})",), rows=tuple(rows),
    )  # fmt: skip
    case = attack(world, "same", (), (FIRST, *(Step("ask", text) for text in asked)), sampled=False)
    assert said(case) == {}
    assert [len(t.rows) for t in case.left.transcripts[1:]] == [2] * len(KINDS)
    for number, kind in enumerate(KINDS, 1):
        (_, count), *others = case.left.transcripts[number].rows
        wrong = changed(case.left, number, rows=(("another", count), *others))
        assert "oracle" in said(replace(case, left=wrong)), kind.sql


@pytest.mark.parametrize(
    "value", ["'NaN'::DOUBLE", "'-NaN'::DOUBLE", "'inf'::DOUBLE", "8.01", "-0.01"]
)
def test_what_is_beyond_a_range_counts_as_its_end(value: str) -> None:
    world = replace(TAME.world, rows=(Row("t", ("0", value), "person:0"), *TAME.world.rows[1:]))
    case = attack(world, "same", (), TAME.steps, sampled=False)
    assert said(case) == {}
    [(total,)] = case.left.transcripts[1].rows
    wrong = changed(case.left, 1, rows=((total + 4,),))
    assert "oracle" in said(replace(case, left=wrong))


def test_answers_are_compared_under_one_setting_only() -> None:
    steps = (FIRST, Step("set", "SET dpsql.epsilon = 1"), *TAME.steps[1:])
    case = attack(TAME.world, "same", (), steps, sampled=False)
    assert said(case) == {}
    assert answers(case) != answers(attack(TAME.world, "same", (), TAME.steps, sampled=False))


def answers(case: Case) -> list[Any]:
    return [t.rows for t in case.left.transcripts if t.step.act == "ask"]


def test_an_attack_is_made_small() -> None:
    seed = fresh("small")
    wanted = seed.steps[4]

    def still(smaller: seeds.Seed) -> Any:
        found = next((i for i, s in enumerate(smaller.steps) if wanted.text[:6] in s.text), None)
        owned = {row.owner for row in smaller.world.rows}
        if found is None or not owned & set(seed.owners):
            return None
        return Finding(
            "none", "is there", "inside", "without", seed.owners, smaller.world, smaller.steps, found
        )  # fmt: skip

    first = still(seed)
    small = shrink(seed, first, still)
    assert len(small.steps) == 1
    assert len(small.world.rows) == 1
    assert small.steps[0].text == wanted.text[:6]
    assert small.world.policy.strip() == ""


def test_a_seed_is_read_as_it_was_written() -> None:
    seed = fresh("written")
    assert seeds.from_json(seeds.to_json(seed)) == seed


def test_the_dice_fall_as_they_did() -> None:
    dice = Dice("again")
    assert [dice.number(100) for _ in range(5)] == FALLEN
    assert sorted(dice.mixed(range(9))) == list(range(9))
