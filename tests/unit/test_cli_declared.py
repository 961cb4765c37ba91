"""What an owner reads at a terminal when the data breaks the policy, and what everybody else reads."""

from __future__ import annotations

import io
import logging
import re
import sys
from pathlib import Path

import duckdb
import pytest
from support.declared import BROKEN, DATA, NOBODYS, POLICY, written

import dpsql
from dpsql.cli import main, serve, terminal
from dpsql.diagnostics.refusal import DataBreaksPolicy
from dpsql.engines.findings import broken_data, not_answered
from dpsql.service import Service

Output = pytest.CaptureFixture[str]
CONSTANT = str(DataBreaksPolicy())
FLAT = """
source: {engine: duckdb, path: flat.duckdb}
data_version: 1
units: {student: {table: ratings, key: s}}
tables:
  ratings:
    unit: student
    max_rows_per_unit: 60
    columns:
      s: {type: bigint}
      stars: {type: integer, range: [1, 5]}
accounts: {dataset: {epsilon: 1e9, delta: 1e-5, composition: basic}}
roles: {analyst: {epsilon: 1e9, session: {epsilon: 1e9}, query: {epsilon: 1e9}}}
"""
TOLD = {
    "unit key": (
        (
            "unit person needs one row of people for each (person_id), but of 47 rows there with 40 different"
            " (person_id), 14 have the same one"
        ),
        "write `units: {person: {key: person_id}}`, without `table`",
    ),
    "table key": (
        "of 123 rows with 120 different keys, 6 have the same key",
        "remove `key`, or name",
    ),
    "referenced key": (
        (
            "foreign keys of table items refer to (code) of orders, but of 120 rows there with 117"
            " different (code), 4 have the same one"
        ),
        "columns that tell the rows of orders apart",
    ),
    "one row per unit": (
        "a person has one row of table profiles at most, but 1 have several, 3 rows in all",
        "write `max_rows_per_unit: ..`",
    ),
    "one row per unit by a path": ("table notes at most, but 1 have several, 3 rows in all", ""),
    "public key": ("the key of table countries is (country), but of 3 rows with 2 different", ""),
}


@pytest.mark.parametrize("what", TOLD)
def test_check_tells_numbers_and_what_to_write(what: str, tmp_path: Path, capsys: Output) -> None:
    path = written(tmp_path, BROKEN[what])
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr()
    assert "sound" not in said.out
    number, advice = TOLD[what]
    assert number in said.err
    assert advice in said.err
    assert re.match(rf"{re.escape(str(path))}:\d+:\d+: ", said.err)


def flat(place: Path) -> Path:
    with duckdb.connect(str(place / "flat.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE ratings AS SELECT CAST(hash(i) % 2972 AS BIGINT) AS s,"
            " CAST(1 + hash(i, 2) % 5 AS INTEGER) AS stars FROM range(73421) AS r(i)"
        )
    path = place / "policy.yaml"
    path.write_text(FLAT)
    return path


def test_a_flat_table_is_not_called_sound_until_its_students_are_protected(
    tmp_path: Path, capsys: Output
) -> None:
    path = flat(tmp_path)
    count = ["query", "--policy", str(path), "--format", "csv", "SELECT COUNT(DISTINCT s) FROM ratings"]  # fmt: skip
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr()
    assert "sound" not in said.out
    assert "of 73,421 rows there with 2,972 different (s)" in said.err
    advice = "units: {student: {key: s}}"
    assert f"write `{advice}`, without `table`" in said.err
    assert "remove max_rows_per_unit" not in said.err
    assert main(count) == 1
    assert capsys.readouterr() == ("", f"{CONSTANT}\n")
    path.write_text(FLAT.replace("units: {student: {table: ratings, key: s}}", advice))
    assert main(["check", str(path)]) == 0
    assert "protects   student (ratings.s)" in capsys.readouterr().out
    assert main(count) == 0
    assert capsys.readouterr().out.splitlines()[1] == "2972"


@pytest.mark.parametrize("what", BROKEN)
def test_nobody_else_reads_numbers_or_names(
    what: str, tmp_path: Path, capsys: Output, caplog: pytest.LogCaptureFixture
) -> None:
    """Of every policy and every data the same is said, in every command, and nothing is logged."""
    path = written(tmp_path, BROKEN[what])
    with caplog.at_level(logging.DEBUG):
        for command in (
            ["query", "--policy", str(path), "SELECT COUNT(*) FROM people"],
            ["explain", "--policy", str(path), "SELECT COUNT(*) FROM people"],
            ["budget", "--policy", str(path)],
            ["serve", "--policy", str(path), "--port", "0"],
        ):
            assert main(command) == 1
            assert capsys.readouterr() == ("", f"{CONSTANT}\n")
        with pytest.raises(DataBreaksPolicy) as caught:
            dpsql.connect(path)
    assert str(caught.value) == CONSTANT
    assert caught.value.__context__ is None
    assert not [r for r in caplog.records if r.name.startswith("dpsql")]
    assert not "".join(log.read_text() for log in tmp_path.glob("*.log"))


class Screen(io.StringIO):
    """Standard error that somebody sits before."""

    def isatty(self) -> bool:
        return True


def test_serve_tells_numbers_to_who_sits_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, screen = written(tmp_path, BROKEN["unit key"]), Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with pytest.raises(DataBreaksPolicy):
        serve._opened(path)
    assert "of 47 rows there with 40 different (person_id)" in screen.getvalue()


def test_progress_is_told_on_a_screen_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now, screen, pipe = [100.0], Screen(), io.StringIO()
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    told, silent = terminal.Progress(screen), terminal.Progress(pipe)
    for step, second in enumerate((0.5, 0.6, 1.2, 1.3, 2.3)):
        now[0] = 100 + second
        told(step, 9, "orders")
        silent(step, 9, "orders")
    assert re.findall(r"(\d) of 9, table orders", screen.getvalue()) == ["2", "4"]
    assert not pipe.getvalue()


def test_who_is_left_out_is_told_and_true(tmp_path: Path, capsys: Output) -> None:
    path = written(tmp_path, NOBODYS)
    assert main(["check", str(path)]) == 0
    said = [
        line.removeprefix("  left out   ")
        for line in capsys.readouterr().out.splitlines()
        if "left out" in line
    ]
    assert said == [
        "2 rows of people have no person_id: they belong to nobody and are in no answer",
        "1 rows of orders have no person_id: they belong to nobody and are in no answer",
        (
            "1 rows of orders have a (person_id) that people lacks: each is a person of its own in answers"
            " about orders; an inner join with people leaves them out"
        ),
        "3 rows of items lead to no person: they belong to nobody and are in no answer",
        "2 rows of profiles have no person_id: they belong to nobody and are in no answer",
        "4 rows of notes lead to no person: they belong to nobody and are in no answer",
        "1 rows of refunds have no person_id: they belong to nobody and are in no answer",
        (
            "1 rows of refunds have a (person_id) that people lacks: each is a person of its own in answers"
            " about refunds; an inner join with people leaves them out"
        ),
        (
            "1 rows of refunds have a (order_id) that orders lacks: answers about refunds alone count them;"
            " an inner join with orders leaves them out"
        ),
    ]
    with duckdb.connect() as plain:
        for sql in (DATA, NOBODYS):
            plain.execute(sql)
        with Service.open(path) as service:
            for sql, unplain in ANSWERS.items():
                mine = service.session().execute(sql).table.to_pylist()
                theirs = plain.execute(unplain).fetchall()
                assert [tuple(row.values()) for row in mine] == theirs, sql


ANSWERS = {
    "SELECT COUNT(*) FROM people": "SELECT 40",
    "SELECT COUNT(*), COUNT(DISTINCT person_id) FROM orders": "SELECT count(*), count(DISTINCT person_id) FROM orders WHERE person_id IS NOT NULL",
    "SELECT COUNT(*) FROM items": "SELECT count(*) FROM items JOIN orders USING (code) WHERE person_id IS NOT NULL",
    "SELECT COUNT(*) FROM notes": "SELECT 40",
    "SELECT COUNT(*) FROM profiles": "SELECT 30",
    "SELECT COUNT(*) FROM orders AS o JOIN people AS p ON o.person_id = p.person_id": "SELECT count(*) FROM orders JOIN people USING (person_id)",
    "SELECT SUM(CAST(amount AS INTEGER)) FROM orders": "SELECT sum(amount) FROM orders WHERE person_id IS NOT NULL",
}  # fmt: skip
"""What is asked, and what plain SQL says of the rows that are not left out."""


def test_numbers_are_counted_for_a_key_of_several_columns(tmp_path: Path) -> None:
    policy = POLICY.replace("    key: order_id\n", "    key: [person_id, amount]\n")
    policy = policy.replace("range: [0, 100], nullable: true", "range: [0, 100]")
    path = written(tmp_path, "UPDATE orders SET amount = 1 WHERE person_id <= 3", policy=policy)
    (said,) = broken_data(path)
    assert (
        "is (person_id, amount), but of 120 rows with 114 different keys, 9 have the same" in said
    )
    assert not_answered.__doc__
