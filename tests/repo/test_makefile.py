"""What ``make check`` runs: everything that lint runs, and tests that are fast."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commands(target: str) -> list[str]:
    """What make would run for a target, without running it."""
    done = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv/.ready", target],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if line.startswith(".venv/bin/")]


def test_check_lints_and_runs_the_fast_tests() -> None:
    *linted, tested = commands("check")
    assert linted == commands("lint")
    assert [line.removeprefix(".venv/bin/") for line in linted] == [
        "ruff format --check .", "ruff check .", "mypy", "lint-imports",
    ]  # fmt: skip
    start, _, chosen = tested.partition('-m "not slow" ')
    assert "-m pytest -n 3" in start
    assert "--cov" not in tested
    assert len(chosen.split()) >= 5
    for place in chosen.split():
        files = [ROOT / place] if place.endswith(".py") else list((ROOT / place).glob("test_*.py"))
        assert files, place
        assert all(file.is_file() for file in files), place


def test_all_tests_are_run_for_a_change() -> None:
    """No folder is left out by ``make test``, and the coverage that must hold is judged at its end."""
    tested, gate = commands("test")
    assert " tests/" not in tested
    assert '-m "not slow" --cov --cov-branch' in tested
    assert "coverage_gate" in gate
