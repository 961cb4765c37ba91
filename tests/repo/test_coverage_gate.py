"""The gate that closes a test run: started as the Makefile starts it, it passes and it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHOLE = {"missing_lines": [], "missing_branches": []}


@pytest.mark.parametrize(
    ("percent", "file", "said"),
    [
        (99.0, WHOLE, []),
        (94.9, WHOLE, ["overall 94.90 % is covered; 95 % must be"]),
        (99.0, {**WHOLE, "missing_lines": [3, 4]}, ["dpsql/plan/a.py: lines 3, 4 are not covered"]),
        (
            99.0,
            {**WHOLE, "missing_branches": [[3, 5]]},
            ["dpsql/plan/a.py: branches 3->5 are not covered"],
        ),
    ],
)
def test_the_gate(tmp_path: Path, percent: float, file: dict[str, object], said: list[str]) -> None:
    report = {"totals": {"percent_covered": percent}, "files": {"dpsql/plan/a.py": file}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    run = subprocess.run(
        [sys.executable, "-m", "tests.repo.coverage_gate", tmp_path / "report.json"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.splitlines()[1:] == said, run.stderr
    assert run.returncode == (1 if said else 0)
