"""Mutations of the corpora, the same each time: none does more than be refused."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.required import leave_out
from support.services import Seeded

from tests.fuzz.__main__ import NAMES, TARGET
from tests.fuzz.targets import TARGETS, seeds

SHARES = [12, pytest.param(1, marks=pytest.mark.slow)]
"""By day a twelfth is tried of what is tried every night."""
TRIES = {"statement": 2_000, "dialect": 1_500, "messages": 400, "strangers": 2_000}
_PIECES = (
    b"(",
    b")",
    b"'",
    b'"',
    b",",
    b" OVER ()",
    b" GROUP BY 1",
    b"-",
    b"\0",
    b"*",
    b" UNION ALL ",
    b"1e99",
    b"\xff",
)


def mutated(data: bytes, other: bytes, dice: Seeded) -> bytes:
    """A seed with a few bytes changed, a piece put in or taken out, or half of another behind it."""
    made = bytearray(data)
    for turn in dice.u64(1 + int(dice.u64(1)[0]) % 3).tolist():
        at, kind = turn % max(1, len(made)), turn >> 60
        piece = _PIECES[(turn >> 40) % len(_PIECES)]
        if kind < 4:
            made[at : at + 1] = piece
        elif kind < 7:
            made[at : at + (turn >> 20) % 12] = b""
        elif kind < 10:
            made[at:at] = made[at : at + 20]
        elif kind < 13:
            made[at:at] = piece
        else:
            made = made[:at] + bytearray(other[turn % max(1, len(other)) :])
    return bytes(made)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", TARGETS)
def test_mutations_are_refused_at_most(name: str, share: int) -> None:
    known, dice = list(seeds(name)), Seeded(20_261_118)
    for data in known:
        TARGETS[name](data)
    for number in range(TRIES[name] // share):
        first, second = (known[int(p) % len(known)] for p in dice.u64(2))
        data = mutated(first, second, dice)
        try:
            TARGETS[name](data)
        except Exception as error:
            raise AssertionError(f"{number}: {data!r}") from error


RUNS = {"statement": 600, "dialect": 900, "messages": 180, "strangers": 4_000}
"""Changed inputs of a target every night; ``make fuzz`` goes on for as long as you like."""
EVERY = {"statement": 10, "dialect": 4, "messages": 6, "strangers": 1}
"""By day it begins with each such seed: all of them were tried above."""
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("share", SHARES)
def test_what_reaches_new_code_is_refused_at_most(share: int) -> None:
    """Coverage-guided, in a process of its own; the same tries each time, on machines of any speed."""
    if importlib.util.find_spec("atheris") is None:
        leave_out("atheris is not installed")
    runs = {name: RUNS[name] // share for name in TARGETS}
    every = {name: EVERY[name] if share > 1 else 1 for name in TARGETS}
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--seconds", "900", "--seed", "1", "--target", *TARGETS,
         "--runs", *map(str, runs.values()), "--every", *map(str, every.values())],
        capture_output=True, text=True, errors="replace", check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    said = dict(part.split("\n", 1) for part in done.stderr.split(TARGET)[1:])
    assert said.keys() == TARGETS.keys()
    for name, text in said.items():
        (executed,) = _EXECUTED.findall(text)
        begun = len(list(seeds(name))[:: every[name]])
        assert int(executed) > begun + runs[name] // 2, f"{name}: it is not seeds alone"


def test_the_fuzzer_tries_every_target() -> None:
    assert tuple(TARGETS) == NAMES
