"""Numbers of the process: a closed list of names and labels; one that fails hides no other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.diagnostics.operation import footprint
from dpsql.diagnostics.operation.gauges import GAUGES, METRICS, Gauges, page


def test_numbers_are_read_when_somebody_looks() -> None:
    gauges, now = Gauges(), [1.0]
    gauges.add("dpsql_start_time_seconds", lambda: now[0])
    gauges.add("dpsql_lane_busy", lambda: {("light",): 2, ("data",): 8})
    now[0] = 1_700_000_000.25
    text = page(gauges.lines())
    assert "# TYPE dpsql_start_time_seconds gauge\ndpsql_start_time_seconds 1700000000.25\n" in text
    assert 'dpsql_lane_busy{lane="data"} 8' in text
    assert "dpsql_connections" not in text


def test_only_listed_names_and_labels() -> None:
    gauges = Gauges()
    with pytest.raises(KeyError):
        gauges.add("dpsql_private", lambda: 1.0)
    gauges.add("dpsql_lane_busy", lambda: {("zanzibar",): 1, ("light",): 2, (): 3})
    assert [line for line in gauges.lines() if line[0] != "#"] == [
        'dpsql_lane_busy{lane="light"} 2'
    ]


@pytest.mark.parametrize("wrong", [lambda: 1 / 0, lambda: "x", lambda: None])
def test_one_that_fails_hides_no_other(wrong: object) -> None:
    gauges = Gauges()
    gauges.add("dpsql_start_time_seconds", wrong)  # type: ignore[arg-type]
    gauges.add("dpsql_memory_resident_bytes", lambda: 5.0)
    assert [line for line in gauges.lines() if line[0] != "#"] == ["dpsql_memory_resident_bytes 5"]


def test_names_are_as_prometheus_wants_them() -> None:
    for name, metric in METRICS.items():
        assert re.fullmatch(r"dpsql_[a-z_]+", name)
        assert name.endswith("_total") == (metric.kind == "counter")
        assert metric.about.endswith(".")


def test_events_are_counted() -> None:
    assert any(
        line.startswith('dpsql_events_total{event="login_failed"} ') for line in GAUGES.lines()
    )


def test_how_much_memory_a_process_and_its_children_have() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert child.pid in footprint.child_processes()
        assert footprint.resident() > 10**6
        assert footprint.tree() > 10**6
    finally:
        child.communicate(b"\n")
    with pytest.raises(ValueError, match="does not say it"):
        footprint._kilobytes(Path(__file__), re.compile("never there: (\\d+)x"))
