"""What the README shows is run against the demo: commands, Python, SQL, the policy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.cli import main
from dpsql.service import Service

TEXT = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which ``make demo`` was run."""
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "demo", "--ask"]) == 0
    return tmp_path / "demo"


def _commands() -> Iterator[tuple[str, list[str]]]:
    for block in _blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = part.splitlines()
            yield command, output


def _shape(line: str) -> str:
    """A line without what noise changes: numbers, and the spaces and rules that follow from them."""
    return re.sub(r"[\s─]+", " ", re.sub(r"-?\d[\d,.]*", "#", line)).strip()


@pytest.mark.usefixtures("demo")
def test_commands_answer_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown = list(_commands())
    assert len(shown) >= 4
    capsys.readouterr()
    for command, output in shown:
        program, *arguments = shlex.split(command)
        assert program == "dpsql"
        main(arguments)
        said = "".join(capsys.readouterr())
        assert [_shape(line) for line in said.splitlines()] == [_shape(line) for line in output]


@pytest.mark.usefixtures("demo")
def test_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = _blocks("python")
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "DP101 8" in capsys.readouterr().out


def test_sql_is_answered(demo: Path) -> None:
    statements = [s.strip() for block in _blocks("sql") for s in block.split(";") if s.strip()]
    assert len(statements) >= 7
    with Service.open(demo / "policy.yaml") as service:
        session = service.session()
        for statement in statements:
            assert session.prepare(statement).parts


def test_the_policy_is_the_demos(demo: Path) -> None:
    assert _blocks("yaml") == [(demo / "policy.yaml").read_text(encoding="utf-8")]
