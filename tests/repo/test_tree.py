"""The shape of the repository: small documented modules, and nothing of the machine it was made on."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import coverage_gate
import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "dpsql").rglob("*.py"))
LONGEST = 400
_MACHINE = re.compile(
    r"/(?:home|root|Users|work|opt|private)/\w|\b(?:\d{1,3}\.){3}\d{1,3}:\d|--(?:extra-)?index-url [^$]|"
    r"--find-links|--trusted-host"
)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_is_short_and_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LONGEST
    assert ast.get_docstring(ast.parse(text))


def _files() -> list[Path]:
    """What is under version control; everything that looks like it when there is none."""
    found = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if found.returncode == 0 and found.stdout:
        return [ROOT / name for name in found.stdout.split("\0") if name]
    folders = ("dpsql", "tests", "grammar", "fixtures", "benchmarks")
    return [p for folder in folders for p in (ROOT / folder).rglob("*") if p.is_file()]


def test_no_file_names_a_machine() -> None:
    for path in _files():
        if path.is_file() and path != Path(__file__):
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not _MACHINE.search(text), f"{path}: {_MACHINE.search(text)}"


def test_the_lock_pins_every_dependency_by_hash() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert "==" in entry
        assert "--hash=sha256:" in entry


def test_the_lock_has_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(entry for extra in extras for entry in extra)]
    names = {re.split(r"[^\w.-]", entry)[0].lower().replace("_", "-") for entry in wanted}
    locked = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert names <= set(locked), "run: make lock"


def test_a_licence_is_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def _report(percent: float, missing: list[int], branches: list[list[int]]) -> dict[str, object]:
    file = {"missing_lines": missing, "missing_branches": branches}
    return {
        "totals": {"percent_covered": percent},
        "files": {"dpsql/price/price.py": file, "dpsql/cli/query.py": file},
    }


def test_the_coverage_gate_sees_what_is_missing() -> None:
    assert list(coverage_gate.shortfalls(_report(95.0, [], []))) == []
    found = list(coverage_gate.shortfalls(_report(94.9, [7], [[3, 5]])))
    assert found == [
        "overall 94.90 % is covered; 95 % must be",
        "dpsql/price/price.py: lines 7 are not covered",
        "dpsql/price/price.py: branches 3->5 are not covered",
    ]


def test_bits_that_anybody_can_repeat_are_for_intervals_alone() -> None:
    """They follow from what is released: noise that is made of them would be none."""
    package = ROOT / "dpsql"
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "Repeatable" in path.read_text(encoding="utf-8")
    }
    assert users == {"privacy/entropy.py", "release/intervals.py"}
