"""``dpsql forecast`` and what ``dpsql check`` says of answers: what is printed, drawn and refused."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.forecasts import GREEDY, POLICY, TRANSCRIPT, write_rides

from dpsql.cli import main
from dpsql.cli.forecast import LOOKED, PREDICTED
from dpsql.cli.forecast_tables import needs_text, percent

Output = pytest.CaptureFixture[str]
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
DRAWN = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return write_rides(tmp_path)


def forecast(policy: Path, *arguments: str, code: int = 0) -> None:
    assert main(["forecast", "--policy", str(policy), *arguments]) == code


def shape(line: str) -> str:
    """A line without its numbers, and the spaces and rules that follow from their widths."""
    return re.sub(r"[\s─]+", " ", re.sub(r"\d[\d,.]*\d|\d", "#", line)).strip()


def asked(policy: Path, text: str) -> str:
    path = policy.with_name("questions.sql")
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_whole_transcript(policy: Path, capsys: Output) -> None:
    script = asked(
        policy,
        "SELECT COUNT(*) AS n FROM rides; SELECT kind, AVG(minutes) AS mean FROM rides GROUP BY kind;"
        " SELECT line, COUNT(*) AS n FROM rides GROUP BY line; SELECT rider FROM rides;"
        " SELECT station FROM stations; SELECT MEDIAN(minutes) AS m FROM rides;"
        " SELECT AVG(n) FROM (SELECT kind, COUNT(*) AS n FROM rides GROUP BY kind)",
    )
    forecast(
        policy,
        script,
        "--rows",
        "5,10",
        "--epsilon",
        "0.5,1",
        "--groups",
        "4",
        "--ranges",
        "1,2",
        code=3,
    )
    out, err = capsys.readouterr()
    assert err == ""
    assert [shape(line) for line in out.splitlines()] == [
        shape(line) for line in TRANSCRIPT.splitlines()
    ]


def test_without_a_look_it_says_so_first(policy: Path, capsys: Output) -> None:
    forecast(policy)
    out = capsys.readouterr().out
    assert out.startswith(PREDICTED)
    assert LOOKED not in out
    assert "cut" not in out


def test_with_a_look_it_says_first_that_figures_are_private(policy: Path, capsys: Output) -> None:
    forecast(policy, "--look", "--rows", "10,100")
    out = capsys.readouterr().out
    assert out.startswith(f"{LOOKED}\n")
    assert PREDICTED not in out
    assert "rides: max_rows_per_unit: noise, and what is cut, in percent of the median group" in out
    rows = out[out.index("rides: max_rows_per_unit") :].splitlines()
    row = next(line for line in rows if line.startswith("1   rides: number of rows"))
    assert re.search(r"\+ 2\.2 % cut", row)
    assert row.count("cut") == 1  # with 100 rows nothing is cut
    assert "4,100" in out


def test_programs_read_the_same_as_people(policy: Path, capsys: Output, tmp_path: Path) -> None:
    forecast(policy, "--format", "json", "--size", "5000", "--within", "10%")
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert (found["role"], found["looked"], found["notice"]) == ("analyst", False, PREDICTED)
    assert (found["size"], found["within"]) == (5000, 0.1)
    first = found["forecasts"][0]
    assert first["sql"] == "SELECT COUNT(*) AS n FROM rides"
    assert (first["key"], first["value"], first["column"], first["errs"]) == (
        None,
        None,
        "n",
        "value",
    )
    assert first["share"] == pytest.approx(first["width"] / 5000)
    assert first["needs"] == pytest.approx(first["width"] / 0.1, rel=0.1)
    assert not any(name.startswith("exact_") for name in first)
    assert {f["key"] for f in found["forecasts"]} == {
        None, "query.epsilon", "rides: max_rows_per_unit", "rides.minutes: range",
    } | {f["key"] for f in found["forecasts"] if f["key"] == "max_groups_per_unit"}  # fmt: skip
    target = tmp_path / "found.csv"
    forecast(policy, "--format", "csv", "--look", "-o", str(target))
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{LOOKED}\n")
    rows = list(csv.DictReader(target.read_text(encoding="utf-8").splitlines()))
    assert rows[0]["exact_typical"] == "4100.0"
    assert float(rows[0]["exact_rows"]) == pytest.approx((GREEDY - 10) / 4100)


def test_a_picture_is_drawn(policy: Path, capsys: Output, tmp_path: Path) -> None:
    target = tmp_path / "forecast.svg"
    for arguments, notice in (((), PREDICTED), (("--look",), LOOKED)):
        forecast(policy, "--plot", str(target), *arguments)
        capsys.readouterr()
        root = ET.fromstring(target.read_text(encoding="utf-8"))
        texts = [text.text or "" for text in root.iter(f"{DRAWN}text")]
        assert notice in texts
        assert "query.epsilon" in texts
        assert "1 (now)" in texts
        assert "1. SELECT COUNT(*) AS n FROM rides" in texts


def test_a_wide_line_is_cut_and_control_characters_are_not_printed(
    policy: Path, capsys: Output, tmp_path: Path
) -> None:
    text = (
        "SELECT COUNT(*) AS \"n\x1b\" FROM rides WHERE minutes > 1 AND kind = '<&>' "
        + "AND minutes > 2 " * 10
    )
    target = tmp_path / "forecast.svg"
    forecast(policy, asked(policy, text), "--plot", str(target))
    out = capsys.readouterr().out
    assert "…" in out
    assert "\x1b" not in out + target.read_text(encoding="utf-8")
    ET.fromstring(target.read_text(encoding="utf-8"))


def test_errors_that_nothing_makes_small_are_said(tmp_path: Path, capsys: Output) -> None:
    text = POLICY.replace("range: [0, 100]", "range: [0, 0]")
    path = write_rides(tmp_path, policy=text)
    forecast(path, asked(path, "SELECT SUM(minutes - 5 * minutes) AS s FROM rides"), code=0)
    assert "± " in capsys.readouterr().out


def test_other_roles_and_dialects(tmp_path: Path, capsys: Output) -> None:
    path = write_rides(tmp_path, policy=POLICY + "  other: {query: {share: 1%}}\n")
    forecast(path, code=3)
    assert "DP602" in capsys.readouterr().err
    text = "SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(*) AS n FROM rides GROUP BY m"
    forecast(path, asked(path, text), "--role", "other", "--dialect", "bigquery")
    out = capsys.readouterr().out
    assert 'a question of role "other" costs 1% of a session (at most epsilon ' in out
    assert "query.share" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--epsilon", "0"), "--epsilon takes numbers above 0"),
        (("--epsilon", "x"), "--epsilon takes numbers above 0, with commas between them, not 'x'"),
        (("--share", "200%"), "--share takes numbers above 0"),
        (("--rows", "1"), "--rows takes numbers from 2"),
        (("--rows", ","), "--rows takes numbers from 2"),
        (("--groups", "1.5"), "--groups takes"),
        (("--within", "none"), "--within takes"),
        (("nowhere.sql",), "nowhere.sql cannot be read"),
    ],
)
def test_mistakes_are_named(
    policy: Path, capsys: Output, arguments: tuple[str, ...], said: str
) -> None:
    forecast(policy, *arguments, code=2)
    assert said in capsys.readouterr().err


def test_an_empty_file_and_a_share_without_rho_are_refused(tmp_path: Path, capsys: Output) -> None:
    path = write_rides(tmp_path, policy=POLICY.replace(", delta: 1e-5", ""))
    forecast(path, asked(path, " ; "), code=2)
    assert "there is no SQL in it" in capsys.readouterr().err
    forecast(path, "--share", "5", code=2)
    assert "do not all compose in zCDP" in capsys.readouterr().err


def test_check_says_what_answers_are_worth(policy: Path, capsys: Output) -> None:
    assert main(["check", str(policy)]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  answers"))
    assert lines[start] == (
        '  answers    a question of role "analyst" costs at most epsilon 1 and delta 1e-7;'
        " 19 times in 20 noise is"
    )
    assert lines[-1].endswith(f"other questions and settings: dpsql forecast --policy {policy}")
    assert [line.partition(" ±")[0].removesuffix(" at most") for line in lines[start + 1 : -1]] == [
        "    rides: number of rows", "    rides: rows by month of day",
        "    rides: mean of minutes by kind",
    ]  # fmt: skip


def test_check_says_which_typical_questions_are_refused(tmp_path: Path, capsys: Output) -> None:
    text = POLICY + "limits: {max_cells: 2}\n"
    assert (
        main(["check", str(write_rides(tmp_path, policy=text.replace(", delta: 1e-5", "")))]) == 0
    )
    assert "rides: rows by month of day refused (DP50" in capsys.readouterr().out


def test_check_of_public_tables_says_nothing_of_answers(tmp_path: Path, capsys: Output) -> None:
    head, _, rest = POLICY.partition("units:")
    text = head + "tables:\n  stations: {public: true}\naccounts:" + rest.partition("accounts:")[2]
    assert main(["check", str(write_rides(tmp_path, policy=text))]) == 0
    assert "answers" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_readme_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """The README leaves lines out. Each line that it has is printed, in that order."""
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "demo"]) == 0
    capsys.readouterr()
    shown = re.findall(r"^```\n\$ dpsql (forecast .*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert len(shown) == 2
    for block in shown:
        command, *lines = block.splitlines()
        assert main(command.split()) == 0
        printed = [shape(line) for line in capsys.readouterr().out.splitlines()]
        for line in map(shape, lines):
            assert line == ".." or line in printed, line
            printed = printed if line == ".." else printed[printed.index(line) + 1 :]


def test_numbers_in_words() -> None:
    assert [needs_text(n) for n in (None, 1, 3200)] == ["", "1 row", "3,200 rows"]
    assert [percent(s) for s in (0.05, 1.234, 0.0, 1e-5)] == ["5 %", "123 %", "0 %", "0.001 %"]
