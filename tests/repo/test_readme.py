"""What the README shows is run against the demo: commands, Python, SQL, the policy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import duckdb
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
    """A line without what noise changes: hashes, numbers, and the spaces and rules that follow.

    An interval that happens to be as wide on both sides is shown in another form.
    """
    plain = re.sub(r"\b[0-9a-f]{64}\b", "#", line)
    plain = re.sub(r"-?\d[\d,.]*", "#", plain).replace("# … #", "± #")
    return re.sub(r"[\s─]+", " ", plain).strip()


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
    assert _blocks("yaml")[0] == (demo / "policy.yaml").read_text(encoding="utf-8")


def test_the_policy_of_a_flat_table_is_checked_and_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = _blocks("yaml")[1:]
    with duckdb.connect(str(tmp_path / "ratings.duckdb")) as db:
        db.execute(
            "CREATE TABLE ratings AS SELECT CASE WHEN i < 900 THEN i % 90 END AS s, 'c' || i % 4 AS"
            " course, 1 + i % 5 AS stars FROM range(1000) AS r(i)"
        )
        db.execute(
            "CREATE TABLE logins AS SELECT (i % 95)::INTEGER AS user_id, i AS minutes FROM range(240) AS r(i)"
        )
    policy = tmp_path / "policy.yaml"
    policy.write_text(text, encoding="utf-8")
    assert main(["check", str(policy)]) == 0
    assert "student (ratings.s; logins.user_id)" in capsys.readouterr().out
    with Service.open(policy) as service:
        session = service.session()
        for sql, exact in (
            ("SELECT COUNT(DISTINCT s) FROM ratings", 90),
            (
                "SELECT COUNT(DISTINCT r.s) FROM ratings AS r JOIN logins AS l ON l.user_id = r.s",
                90,
            ),
        ):
            answer = session.execute(sql).table.column(0)[0].as_py()
            assert abs(answer - exact) < 30
