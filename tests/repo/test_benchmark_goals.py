"""Benchmarks say which goals they miss, and fail where one that is no time is missed."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks import large
from benchmarks.turns import Ratio, Report, Spread, Taken


def _spread(median: float) -> Spread:
    return Spread(median, median, median)


def _ratio(wall: float, cpu: float, goal: float = 3.0) -> Ratio:
    return Ratio("count", 10, 1.0, wall, _spread(wall), _spread(cpu), goal)


def test_a_report_names_the_goals_that_both_kinds_of_time_miss(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A busy machine makes one of them worse: that alone says nothing."""
    report = Report("some", None)
    for figure in (
        _ratio(2.0, 2.0), _ratio(9.0, 2.0), _ratio(2.0, 9.0), _ratio(4.0, 3.5), _ratio(9.0, 9.0, 0.0),
        Taken("noise", 10, _spread(7.0), _spread(6.0), 5.0),
    ):  # fmt: skip
        report.add(figure)
    report.close()
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "3 of 5 goals are met",
        "missed: count, 10 rows: 3.50x, goal 3.0x",
        "missed: noise, 10 rows: 6.000ms, goal 5ms",
    ]


@pytest.mark.parametrize(
    ("more", "status"), [(large.LIMIT - 1, 0), (large.LIMIT + 1, 1), (float("nan"), 1)]
)
def test_too_much_memory_ends_with_a_status(
    more: float, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Memory that is not known is no memory within bounds."""
    monkeypatch.setattr(sys, "argv", ["large", "--only", "HAVING", "--data", str(tmp_path)])
    monkeypatch.setattr(large, "opened", lambda *_: nullcontext())
    monkeypatch.setattr(large, "figure", lambda *_: _ratio(9.0, 9.0))
    monkeypatch.setattr(large, "memory", lambda *_: {"plain": 10.0, "dpsql": 10.0 + more})
    assert large.main() == status
