"""Heavy statements end, and nobody else notices; times tell nothing where a policy hides them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.adversary.faces.servers import Servers
from tests.adversary.model import Finding
from tests.adversary.pressure import (
    BOUND,
    CATALOG_DEADLINE,
    DEADLINE,
    GRACE,
    HEAVY,
    INTERPRETER,
    LARGE,
    LARGEST,
    Answer,
    Measurement,
    complaints,
    press,
)
from tests.adversary.timing import (
    ASKED,
    BURDEN,
    FIXED,
    LEAST,
    differ,
    early,
    share,
    tells,
    time_answers,
    time_conditions,
)

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
FINE = Measurement(
    (Answer("SELECT 1", 3.0, LARGEST),),
    (0.01, 0.02, 0.9),
    BOUND,
    alive=True,
)


def words(found: Iterator[Finding]) -> list[str]:
    return [f"{f.judge}: {f.meaning} {f.details}" for f in found]


@LINUX
def test_heavy_statements_end_and_keep_nobody_waiting(tmp_path: Path) -> None:
    with Servers() as servers:
        assert words(press(tmp_path / "pressed", servers)) == []


@LINUX
def test_a_process_takes_memory(tmp_path: Path) -> None:
    with Servers() as servers:
        list(press(tmp_path / "pressed", servers, HEAVY[:1]))
        [server] = servers.running
        assert 50 << 20 < server.resident_bytes() < BOUND + INTERPRETER


@pytest.mark.parametrize(
    "seen",
    [
        replace(FINE, answers=(Answer("SELECT 1", CATALOG_DEADLINE + GRACE + 0.1),)),
        replace(FINE, answers=(Answer(LARGE[0], 1.0, LARGEST + 1),)),
        replace(FINE, latencies=(2.0, 2.0, 2.0)),
        replace(FINE, latencies=(0.01, 0.01, DEADLINE + GRACE + 0.1)),
        replace(FINE, latencies=()),
        replace(FINE, memory=BOUND + INTERPRETER + 1),
        replace(FINE, alive=False),
    ],
)
def test_what_is_out_of_bounds_is_noticed(seen: Measurement) -> None:
    assert list(complaints(FINE)) == []
    assert len(list(complaints(seen))) == 1


def times(start: float, step: float = 0.001) -> tuple[float, ...]:
    return tuple(start + step * number for number in range(ASKED))


def test_a_share_is_a_half_where_nothing_is_told() -> None:
    assert share(times(1), times(1)) == 0.5
    assert share(times(2), times(1)) == 1
    assert share(times(1), times(2)) == 0


def test_times_tell_by_ranks_and_by_seconds() -> None:
    assert tells(times(1 + 2 * LEAST), times(1)) == 1
    assert tells(times(1), times(1 + 2 * LEAST)) == -1
    assert tells(times(1), times(1)) == 0
    assert tells(times(1 + LEAST / 2, 0.00001), times(1, 0.00001)) == 0


def test_one_long_time_tells_nothing() -> None:
    assert tells((*times(1)[:-1], 60.0), times(1)) == 0


def test_a_difference_must_come_again() -> None:
    longer = (times(1 + 2 * LEAST), times(1))
    assert differ(longer, longer)
    assert not differ(longer, longer[::-1])
    assert not differ(longer, (times(1), times(1)))
    assert not differ(longer, (longer[0], times(1)[:2]))


def test_an_answer_before_its_time_is_noticed() -> None:
    assert early([FIXED, FIXED + 1]) == []
    assert early([FIXED, FIXED / 2]) == [FIXED / 2]


@pytest.mark.slow
def test_a_fixed_time_does_not_tell_whether_a_person_is_there(tmp_path: Path) -> None:
    assert words(time_answers(tmp_path, Servers())) == []


@pytest.mark.slow
def test_strict_timing_does_not_tell_whom_a_condition_finds(tmp_path: Path) -> None:
    assert words(time_conditions(tmp_path, Servers())) == []


@pytest.mark.slow
def test_without_protection_times_tell(tmp_path: Path) -> None:
    assert len(words(time_answers(tmp_path / "answers", Servers(), "", 5 * BURDEN))) == 1
    assert len(words(time_conditions(tmp_path / "conditions", Servers(), "", 5 * BURDEN))) == 1
