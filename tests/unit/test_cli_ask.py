"""The questions of ``dpsql init --ask``: what the owner answers is what the draft says."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from dpsql.cli import ask, main
from dpsql.forecast.questions import Question
from dpsql.policy.guess import GuessedUnit, possible_units
from dpsql.policy.load import load
from dpsql.policy.source import SourceDescription, TableDescription

Output = pytest.CaptureFixture[str]
CUSTOMERS = "customer_id,country\n" + "".join(f"{i},{('at', 'de')[i % 2]}\n" for i in range(300))
ORDERS = "order_id,customer_id,amount\n" + "".join(f"{i},{i % 300},{i % 50}\n" for i in range(900))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, text in (
        ("customers", CUSTOMERS), ("orders", ORDERS), ("countries", "code,name\nat,Austria\nde,Germany\n"),
        ("staff", "code,room\na,1\n"),
    ):  # fmt: skip
        (tmp_path / f"{name}.csv").write_text(text)
    return [str(tmp_path / f"{n}.csv") for n in ("customers", "orders", "countries", "staff")]


def answered(
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
    answers: list[str],
    *arguments: str,
    code: int = 0,
) -> str:
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in answers)))
    assert main(["init", *arguments, "--ask"]) == code
    return "".join(capsys.readouterr())


def test_what_is_answered_is_drafted(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    output = tmp_path / "p.yaml"
    answers = ["", "x", "0", "12", "yes", "perhaps", "YES", "0.2", "-1", "1/0", ""]
    said = answered(monkeypatch, capsys, answers, *files, "-o", str(output), "--suggest-bounds")
    assert "1. a customer: a row of customers (customer_id), and all rows that lead to it" in said
    assert said.count("That was not understood") == 5
    assert "(Enter for 3, read from the data)" in said
    assert "SELECT COUNT(*) AS n FROM orders" in said
    assert "SELECT SUM(amount) AS total FROM orders" in said
    assert "SELECT country, COUNT(*) AS n FROM customers GROUP BY country" in said
    assert "1 table(s) of values: that a column has no other values" in said
    assert "At epsilon 0.05 for one question:" in said
    assert "At epsilon 0.2 for one question:" in said
    assert "Protects: a customer: " in said
    policy = load(output)
    assert policy.units["customer"].table == "customers"
    assert policy.tables["orders"].max_rows_per_unit == 12
    assert policy.tables["countries"].public
    assert policy.tables["staff"].public
    assert policy.tables["customers"].columns["country"].values_from == ("countries", "code")
    role = policy.roles["analyst"]
    assert (role.query.epsilon, role.session.epsilon, policy.dataset.epsilon) == (
        pytest.approx(0.2), 2, 4,
    )  # fmt: skip
    assert "max_rows_per_unit: 12\n" in output.read_text()
    assert main(["check", str(output)]) == 0


def test_the_errors_follow_from_the_draft_alone(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """Other rows under the same answers have the same errors, and no more rows are read for them."""
    shown = []
    for rows in (ORDERS, ORDERS.replace(",7\n", ",8\n")):
        Path(files[1]).write_text(rows)
        place = tmp_path / str(len(shown))
        place.mkdir()
        said = answered(
            monkeypatch, capsys, ["1", "9", ""], *files[:2], "-o", str(place / "p.yaml")
        )
        shown.append(said[said.index("At epsilon") :].partition("Wrote")[0])
    assert "± " in shown[0]
    assert shown[0] == shown[1]


def test_somebody_else_may_be_protected(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    output = tmp_path / "p.yaml"
    said = answered(monkeypatch, capsys, ["3", ""], files[1], "-o", str(output))
    assert "3. each row of orders by itself" in said
    assert load(output).units["order"].is_row
    assert "# chosen when this was drafted" in output.read_text()


def test_what_was_read_is_marked_also_if_it_is_accepted(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    output = tmp_path / "p.yaml"
    answered(monkeypatch, capsys, ["", "", ""], files[1], "-o", str(output), "--suggest-bounds")
    assert "max_rows_per_unit: 3  # read from the data" in output.read_text()


def test_a_draft_with_gaps_shows_no_errors(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    output = tmp_path / "p.yaml"
    said = answered(monkeypatch, capsys, ["2", "no"], files[0], files[2], "-o", str(output))
    assert "Errors can be shown once the draft is complete:" in said
    assert "countries is neither public nor has a unit" in said
    assert "# public: true" in output.read_text()


def test_without_a_terminal_or_an_end_nothing_is_written(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    output = tmp_path / "p.yaml"
    said = answered(monkeypatch, capsys, [""], files[0], files[1], "-o", str(output), code=2)
    assert "the input ended before all questions were answered" in said
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n"))
    assert main(["init", files[0], "-o", str(output), "--ask"]) == 2
    assert "--ask asks at a terminal" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("p.")] == ["p.duckdb.tmp"]


def test_a_source_that_names_nobody_offers_its_rows() -> None:
    source = SourceDescription({"t": TableDescription({"x": "BIGINT"})})
    assert possible_units(source) == (GuessedUnit("t", "t", ()),)
    assert ask.ask_unit(()) is None


def test_a_question_that_would_be_refused_says_so(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    asked = ("SELECT country FROM customers", "SELECT COUNT(*) AS n FROM customers")
    questions = tuple(map(Question, asked))
    monkeypatch.setattr(ask, "sample_questions", lambda *_: questions)
    said = answered(monkeypatch, capsys, ["2", ""], files[0], "-o", str(tmp_path / "p.yaml"))
    assert "refused (DP101)" in said
    assert "± " in said
