"""Attacks on running endpoints find nothing, and would find what they look for."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from tests.adversary import shop
from tests.adversary.faces.cli import CommandFace
from tests.adversary.faces.dbapi import ModuleFace
from tests.adversary.faces.servers import Servers
from tests.adversary.faces.values import decode_binary, decode_text, form, type_name
from tests.adversary.judges.agreement import BESIDE, Agreement
from tests.adversary.judges.defects import Defects
from tests.adversary.judges.payment import Payment
from tests.adversary.judges.recall import Recall
from tests.adversary.live import case_of, faces, hold_faces_together, hold_generated, play_all
from tests.adversary.model import (
    Charge,
    Column,
    Failure,
    Finding,
    Judge,
    Run,
    Step,
    Transcript,
    Unopened,
)
from tests.adversary.sequences import SCRIPTS, TOTAL

GENERATED = ("3",)
"""Worlds whose statements all faces answer alike."""
PLAYERS = ("dbapi", "simple", "extended binary", "http")
TYPED = ("SELECT * FROM pages", shop.ASKED[1], shop.REFUSED[2], shop.REFUSED[3])
"""What the command line is asked: a process for each takes a second."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with Servers() as running:
        yield running


def words(found: Iterator[Finding]) -> list[str]:
    return [f"{f.face}, {f.judge}: {f.meaning} {f.steps[f.step].text} {f.details}" for f in found]


@pytest.mark.parametrize(
    ("oid", "text", "binary", "told"),
    [
        (16, b"t", b"\1", "TRUE"),
        (20, b"-7", struct.pack("!q", -7), "-7"),
        (701, b"-0", struct.pack("!d", -0.0), "-0x0.0p+0"),
        (701, b"NaN", struct.pack("!d", float("nan")), "NaN"),
        (700, b"0.1", struct.pack("!f", 0.1), "0x1.99999a0000000p-4"),
        (1082, b"2000-03-01", struct.pack("!i", 60), "2000-03-01"),
        (1184, b"2000-01-01 00:00:01.5+00", struct.pack("!q", 1_500_000), "2000-01-01T00:00:01.500000"),
        (1009, b'{"a,b",NULL,"q\\"x"}', bytes.fromhex(
            "00000001000000010000001900000003000000010000000361 2c62ffffffff00000003712278".replace(" ", "")
        ), '[a,b, NULL, q"x]'),
    ],
)  # fmt: skip
def test_a_value_is_one_value_in_both_formats(
    oid: int, text: bytes, binary: bytes, told: str
) -> None:
    name = type_name(oid, -1)
    assert form(decode_text(oid, text), name) == form(decode_binary(oid, binary), name) == told


def test_decimals_keep_their_places_on_every_face() -> None:
    binary = struct.pack("!hhHhhh", 2, 0, 0x4000, 2, 12, 3000)
    assert decode_binary(1700, binary) == Decimal("-12.30")
    told = {form(v, "decimal(6, 2)") for v in (Decimal("-12.30"), Decimal("-12.3"), -12.3)}
    assert told == {"-12.30"}
    assert type_name(1700, (6 << 16 | 2) + 4) == "decimal(6, 2)"


def test_every_face_says_the_same(servers: Servers, tmp_path: Path) -> None:
    chosen = [face for face in faces(servers) if face.name != CommandFace.name]
    assert (
        words(hold_faces_together(shop.shop(), shop.questions(), tmp_path / "shop", chosen)) == []
    )


def test_the_command_says_the_same(tmp_path: Path) -> None:
    steps = [Step("ask", sql) for sql in TYPED] + [Step("explain", shop.ASKED[1])]
    both = (ModuleFace(), CommandFace())
    assert words(hold_faces_together(shop.shop(), steps, tmp_path / "shop", both)) == []


@pytest.mark.parametrize("seed", GENERATED)
def test_every_face_says_the_same_of_generated_worlds(
    seed: str, servers: Servers, tmp_path: Path
) -> None:
    chosen = [face for face in faces(servers) if face.name != CommandFace.name]
    assert words(hold_generated(seed, tmp_path / "world", chosen)) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.name)
def test_a_script_ends_as_it_should(
    script: object, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "scripts"
    folder.mkdir(exist_ok=True)
    chosen = [face for face in faces(servers) if face.name in PLAYERS]
    assert words(play_all(chosen, folder, [s for s in SCRIPTS if s is script])) == []


ANSWER = Transcript(
    Step("ask", TOTAL), (Column("count", "bigint"),), ((240,),), ("a note",), cost=("1", "0"),
    recalled=False,
)  # fmt: skip
AGAIN = replace(ANSWER, cost=("0", "0"), recalled=True)
REFUSAL = Transcript(Step("ask", "SELECT id"), error=Failure("DP101", "no", 8))
PAID = Charge(0, "committed", 10**9, 0, 0, 0, ())


def runs(*told: Transcript, charges: tuple[Charge, ...] = ()) -> Run:
    return Run(shop.shop(), told, charges)


@pytest.mark.parametrize(
    "other",
    [
        replace(AGAIN, rows=((241,),)),
        replace(AGAIN, columns=(Column("count", "integer"),)),
        replace(AGAIN, notes=()),
        replace(AGAIN, cost=("1", "0")),
        replace(AGAIN, error=Failure("DP101", "no")),
        replace(AGAIN, text="another plan"),
    ],
)
def test_faces_that_differ_are_noticed(other: Transcript) -> None:
    def found(told: Transcript) -> Finding | None:
        return Agreement().judge(case_of(f"http{BESIDE}dbapi", runs(AGAIN), runs(told)))

    assert found(AGAIN) is None
    assert found(other) is not None


def test_another_position_is_noticed() -> None:
    other = replace(REFUSAL, error=Failure("DP101", "no", 9))
    case = case_of(f"http{BESIDE}dbapi", runs(REFUSAL), runs(other))
    assert Agreement().judge(case) is not None


@pytest.mark.parametrize(
    ("told", "charges"),
    [
        (ANSWER, ()),
        (ANSWER, (PAID, PAID)),
        (ANSWER, (replace(PAID, epsilon=9 * 10**8),)),
        (ANSWER, (replace(PAID, delta=10**12),)),
        (AGAIN, (PAID,)),
        (REFUSAL, (PAID,)),
        (Transcript(Step("explain", TOTAL)), (PAID,)),
        (replace(ANSWER, cost=None), (PAID,)),
    ],
)
def test_a_price_that_is_not_the_ledgers_is_noticed(
    told: Transcript, charges: tuple[Charge, ...]
) -> None:
    right = runs(ANSWER, charges=(PAID,))
    assert Payment().judge(case_of("http", right, right)) is None
    wrong = runs(told, charges=charges)
    assert Payment().judge(case_of("http", wrong, wrong)) is not None


FRESH = Transcript(Step("set", "SET dpsql.fresh = on"))


@pytest.mark.parametrize(
    "told",
    [
        (ANSWER, ANSWER),
        (ANSWER, replace(AGAIN, rows=((239,),))),
        (FRESH, ANSWER, replace(AGAIN, rows=((239,),))),
    ],
)
def test_noise_for_nothing_is_noticed(told: tuple[Transcript, ...]) -> None:
    right = runs(ANSWER, AGAIN, FRESH, ANSWER, replace(ANSWER, rows=((239,),)))
    assert Recall().judge(case_of("http", right, right)) is None
    wrong = runs(*told)
    assert Recall().judge(case_of("http", wrong, wrong)) is not None


@pytest.mark.parametrize("code", ["DP903", "DP901", "KeyError", "XX000", "HTTP 500", "CONNECTION"])
def test_a_defect_is_noticed(code: str) -> None:
    wrong = runs(replace(REFUSAL, error=Failure(code, "words")))
    assert Defects().judge(case_of("http", runs(REFUSAL), wrong)) is not None


def test_a_script_whose_end_is_wrong_is_noticed() -> None:
    script = next(s for s in SCRIPTS if s.name == "fresh")
    told = [ANSWER, FRESH, ANSWER, ANSWER]
    assert script.expects(told)
    assert not script.expects([ANSWER, FRESH, AGAIN, ANSWER])


def test_a_broken_policy_is_not_opened(servers: Servers, tmp_path: Path) -> None:
    world = replace(shop.shop(), policy="units: [")
    for face in faces(servers)[:2]:
        with pytest.raises(Unopened):
            words(hold_faces_together(world, (), tmp_path / face.name, [face]))


def test_judges_look_at_both_runs() -> None:
    judges: tuple[Judge, ...] = (Defects(), Payment(), Recall())
    wrong = runs(replace(REFUSAL, error=Failure("DP903", "words")), ANSWER, ANSWER)
    for judge in judges:
        assert judge.judge(case_of("http", runs(), wrong)) is not None


def test_dates_and_moments_have_one_form() -> None:
    moment = dt.datetime(2024, 1, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert form(moment, "timestamptz") == form("2024-01-01T12:00:00+00:00", "timestamptz")
    assert form(dt.date(2024, 1, 1), "date") == form("2024-01-01", "date")
