"""The command line: what is printed, where, and with which exit code."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.cli import main
from dpsql.cli.demo import POLICY
from dpsql.cli.numbers import decimals, digits, group_thousands, interval, symmetric
from dpsql.diagnostics.operation.events import Incident, record
from dpsql.diagnostics.refusal import EngineFailed
from dpsql.engines.duckdb import copies
from dpsql.engines.duckdb.demo_data import write_demo_data
from dpsql.engines.duckdb.statements import list_statements
from dpsql.policy.load import load
from dpsql.service import Session, plain

COUNT = "SELECT COUNT(*) AS n FROM customers"
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "shop.duckdb"
    write_demo_data(path)
    return path


@pytest.fixture
def policy(data: Path, tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    text = POLICY.replace("path: shop.duckdb", f"path: {json.dumps(str(data))}")
    path.write_text(text.replace("query: {share: 5%}", "query: {epsilon: 0.5}"))
    return path


def ask(policy: Path, *arguments: str) -> int:
    return main(["query", "--policy", str(policy), *arguments])


def spent(policy: Path) -> float:
    """What the ledger says was spent by all."""
    ledger = policy.with_name("policy.ledger.db")
    if not ledger.exists():
        return 0.0
    with sqlite3.connect(ledger) as db:
        row = db.execute("SELECT epsilon FROM account WHERE id LIKE '%/dataset'").fetchone()
    db.close()
    return 0.0 if row is None else row[0] / 1e9


def test_demo_is_written_once(tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "shop"
    assert main(["demo", str(folder)]) == 0
    before = (folder / "shop.duckdb").read_bytes()
    assert main(["demo", str(folder)]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert (folder / "shop.duckdb").read_bytes() == before
    (folder / "policy.yaml").unlink()
    assert main(["demo", str(folder)]) == 1
    assert "is in the way" in capsys.readouterr().err


def test_demo_data_are_what_they_were(data: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.duckdb"
    write_demo_data(again)
    sums = []
    for path in (data, again):
        with duckdb.connect(str(path), read_only=True) as db:
            sums.append(db.execute("SELECT sum(hash(o)) FROM orders AS o").fetchone())
            ages = db.execute("SELECT min(age), max(age), count(*) FROM customers").fetchone()
    assert sums[0] == sums[1]
    assert ages is not None
    assert ages[0] >= 18
    assert ages[1] <= 100
    assert ages[2] == 5000


def test_a_table_shows_values_intervals_and_cost(policy: Path, capsys: Output) -> None:
    sql = "SELECT country, COUNT(*) AS n, AVG(age) AS age FROM customers GROUP BY country"
    assert ask(policy, sql) == 0
    header, rule, *rows, note, cut, footer = capsys.readouterr().out.splitlines()
    assert header.split() == ["country", "n", "age"]
    assert note == "country: all public groups are shown, those without rows too"
    assert cut == "values outside 18 .. 100 count as the nearer end"
    assert set(rule) == {"─"}
    assert len(rows) == 8
    assert all(row.count("± ") + row.count(" … ") == 2 for row in rows)
    assert "cost epsilon 0.5" in footer
    assert 'epsilon 9.5 of 10 left in session "default"' in footer
    assert footer.endswith("intervals are of the noise alone")
    assert ask(policy, sql) == 0
    assert "a stored answer, free" in capsys.readouterr().out
    assert spent(policy) == 0.5
    assert ask(policy, "SELECT COUNT(*) AS n FROM customers") == 0
    assert "intervals hold 19 times in 20" in capsys.readouterr().out, "nothing can be cut"


def test_keys_are_shown_plainly(policy: Path, capsys: Output) -> None:
    sql = (
        "SELECT EXTRACT(year FROM placed) AS y, channel, amount IS NULL AS unpaid,"
        " DATE_TRUNC('year', placed) AS d, COUNT(*) AS n FROM orders"
        " WHERE channel IS NULL GROUP BY 1, 2, 3, 4"
    )
    assert ask(policy, sql) == 0
    out = capsys.readouterr().out
    assert "2024  " in out
    assert "null" in out
    assert "false" in out
    assert "2024-01-01 00" not in out


def test_public_answers_are_free(policy: Path, capsys: Output) -> None:
    assert ask(policy, "SELECT region, COUNT(*) / 3.0 AS n FROM countries GROUP BY region") == 0
    out = capsys.readouterr().out
    assert "free: no private table was read" in out
    assert "0.666667" in out
    assert "intervals" not in out
    assert spent(policy) == 0


def test_epsilon_can_be_chosen(policy: Path, capsys: Output) -> None:
    assert ask(policy, "--epsilon", "0.25", COUNT) == 0
    assert "cost epsilon 0.25" in capsys.readouterr().out
    assert ask(policy, "--epsilon", "much", COUNT) == 2
    assert "--epsilon takes a number above 0" in capsys.readouterr().err
    assert ask(policy, "--epsilon", "0", COUNT) == 2


def test_json_has_the_fixed_shape(policy: Path, capsys: Output) -> None:
    sql = "SELECT DATE '2025-01-31' AS d, COUNT(*) AS n, AVG(amount) AS n FROM orders"
    assert ask(policy, "--format", "json", sql) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    names = ["columns", "rows", "intervals", "cost", "remaining", "recalled", "notes"]
    assert [*document] == names
    assert document["columns"] == [
        {"name": "d", "type": "date"},
        {"name": "n", "type": "bigint"},
        {"name": "n", "type": "double"},
    ]
    ((day, count, mean),) = document["rows"]
    assert day == "2025-01-31"
    assert isinstance(count, int)
    assert isinstance(mean, float)
    assert set(document["intervals"]) == {"n", "n_2"}
    ((low, high),) = document["intervals"]["n"]
    assert low < count < high
    cost = document["cost"]
    assert (cost["epsilon"], cost["delta"]) == (0.5, 0)
    assert 0 < cost["rho"] < 0.125, "half of the square of epsilon, or less"
    assert document["remaining"]["session"]["epsilon"] == 9.5
    assert document["remaining"]["role"]["renews"].endswith("+00:00")
    assert document["recalled"] is False
    assert "cost epsilon 0.5" in said.err


def test_json_has_no_nan() -> None:
    assert plain._value(float("nan")) is None
    assert plain._value(float("inf")) is None
    assert plain._value(1.5) == 1.5


def test_csv_and_parquet(policy: Path, tmp_path: Path, capsys: Output) -> None:
    sql = "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel"
    assert ask(policy, "--format", "csv", sql) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == '"channel","n"'
    assert len(lines) == 5
    assert ask(policy, "--format", "csv", "--intervals", sql) == 0
    assert capsys.readouterr().out.splitlines()[0] == '"channel","n","n_low","n_high"'
    file = tmp_path / "answer.parquet"
    assert ask(policy, "--format", "parquet", "-o", str(file), sql) == 0
    assert pq.read_table(file).column_names == ["channel", "n"]
    assert "a stored answer" in capsys.readouterr().err


def test_a_table_can_go_to_a_file(policy: Path, tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "answer.txt"
    assert ask(policy, "-o", str(file), COUNT) == 0
    assert "±" in file.read_text(encoding="utf-8")
    said = capsys.readouterr()
    assert said.out == ""
    assert "cost epsilon 0.5" in said.err
    assert ask(policy, "-o", str(tmp_path / "no" / "answer.txt"), COUNT) == 1
    assert "No such file or directory" in capsys.readouterr().err


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_screen_gets_colours_but_no_parquet(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert ask(policy, COUNT) == 0
    assert "\x1b[2m± " in screen.getvalue()
    assert ask(policy, "--format", "parquet", COUNT) == 2
    assert "add -o FILE" in capsys.readouterr().err


def test_sql_may_come_from_standard_input(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(COUNT))
    assert ask(policy, "-") == 0
    assert ask(policy, "  ") == 2
    assert "there is no SQL" in capsys.readouterr().err


def test_statements_that_are_not_queries(policy: Path, capsys: Output) -> None:
    assert ask(policy, "SHOW dpsql.budget") == 0
    assert "left_epsilon" in capsys.readouterr().out
    assert ask(policy, "SET dpsql.epsilon = 0.1") == 0
    assert capsys.readouterr().out == ""
    assert ask(policy, f"EXPLAIN {COUNT}") == 0
    assert "discrete Laplace" in capsys.readouterr().out
    assert spent(policy) == 0


def test_tables_are_prepared_and_removed(policy: Path, capsys: Output) -> None:
    place = copies.place(load(policy))
    assert main(["prepare", "--policy", str(policy), "--table", "orders"]) == 0
    assert "5,000" in capsys.readouterr().out
    assert place.exists()
    assert main(["check", str(policy)]) == 0
    assert "prepared   orders" in capsys.readouterr().out
    assert main(["explain", "--policy", str(policy), "SELECT COUNT(*) FROM orders"]) == 0
    assert "prepared rows" in capsys.readouterr().out
    text = re.sub(r"data_version: .*", "data_version: another", policy.read_text())
    policy.write_text(text)
    assert main(["check", str(policy)]) == 0
    assert "another data_version" in capsys.readouterr().err
    assert main(["prepare", "--policy", str(policy), "--remove"]) == 0
    assert not place.exists()
    assert main(["prepare", "--policy", str(policy), "--remove"]) == 0
    assert "no prepared copies" in capsys.readouterr().err
    assert main(["prepare", "--policy", str(policy), "--table", "countries"]) == 2
    assert "no private table" in capsys.readouterr().err


def test_explain_says_everything_and_spends_nothing(policy: Path, capsys: Output) -> None:
    def explain(sql: str) -> str:
        assert main(["explain", "--policy", str(policy), sql]) == 0
        return capsys.readouterr().out

    out = explain(
        "SELECT channel, SUM(amount) AS revenue FROM orders GROUP BY channel HAVING COUNT(*) > 9"
    )
    for words in (
        "What is measured", "4 public groups", "How one customer is bounded", "at most 30 rows",
        "Noise", "revenue", "elsewhere", "discrete Laplace", "Cost", "epsilon 0.5",
        "What is left before it", "SQL that the engine would run", "GROUP BY",
    ):  # fmt: skip
        assert words in out
    assert "choosing groups" in explain("SELECT city, SUM(age) AS a FROM customers GROUP BY city")
    assert "ratio" in explain(
        "SELECT AVG(age) / AVG(age) AS ratio, AVG(age) AS ratio FROM customers"
    )
    assert "nothing: no private table is read" in explain("SELECT COUNT(*) FROM countries")
    assert spent(policy) == 0


def test_explain_lists_the_same_statements_everywhere(policy: Path, capsys: Output) -> None:
    """Each that may run and when, and never which of them the data allows."""
    sql = "SELECT channel, SUM(amount) AS revenue FROM orders GROUP BY channel"
    assert main(["explain", "--policy", str(policy), sql]) == 0
    out = words_of(capsys.readouterr().out)
    with dpsql.connect(policy) as connection:
        python = connection.explain(sql)
        with connection.cursor() as cursor:
            said = "\n".join(line for (line,) in cursor.execute(f"EXPLAIN {sql}").fetchall())
        part, *others = connection.session().prepare(sql).parts
        assert not others
        statements = list_statements(part)
    assert python == said
    assert len(statements) > 4
    for statement in statements:
        for text in (out, words_of(python)):
            assert words_of(statement.sql) in text
            assert not statement.condition or words_of(f"{statement}") in text


def words_of(text: str) -> str:
    return " ".join(text.split())


def test_budget_and_audit(policy: Path, capsys: Output) -> None:
    assert main(["audit", "--policy", str(policy)]) == 1
    assert "nothing was asked under it yet" in capsys.readouterr().err
    assert ask(policy, f"{COUNT} WHERE {' AND '.join(['age > 20'] * 9)}") == 0
    capsys.readouterr()
    assert main(["budget", "--policy", str(policy)]) == 0
    out = capsys.readouterr().out
    assert "the dataset" in out
    assert "49.5" in out
    assert main(["budget", "--policy", str(policy), "--role", "analyst", "--session", "me"]) == 0
    assert 'session "me"' in capsys.readouterr().out
    assert "What one query costs" in out
    assert "Gaussian 0.5 1e-8 0.00458" in words_of(out)
    assert main(["audit", "--policy", str(policy)]) == 0
    out = capsys.readouterr().out
    assert "started" in out
    assert "…" in out
    assert "first policy" in out
    assert "sound: 3 records" in out
    head = out.split("head ")[1].strip()
    assert main(["audit", "--policy", str(policy), "--noted", head]) == 0
    assert main(["audit", "--policy", str(policy), "--noted", "0" * 63 + "1"]) == 1
    assert "UNSOUND" in capsys.readouterr().out


def test_a_role_priced_in_rho_is_told_of_rho(policy: Path, capsys: Output) -> None:
    old = "query: {epsilon: 0.5}"
    policy.write_text(policy.read_text().replace(old, "query: {share: 5%}"))
    assert ask(policy, COUNT) == 0
    said = words_of("".join(capsys.readouterr()))
    assert "cost rho 0.0712 (epsilon 2.01 and delta 5e-8) · rho 1.35 of 1.42 left in" in said
    assert main(["explain", "--policy", str(policy), f"{COUNT} WHERE age > 20"]) == 0
    said = words_of(capsys.readouterr().out)
    assert "epsilon 2.01 and delta 5e-8 (rho 0.07111)" in said
    assert main(["budget", "--policy", str(policy)]) == 0
    said = words_of(capsys.readouterr().out)
    assert "analyst Laplace 0.38 0 0.0712 26 Gaussian 2.01 5e-8 0.0712 20" in said
    assert "1.35 of 1.42" in said
    assert ask(policy, "--format", "json", COUNT) == 0
    assert json.loads(capsys.readouterr().out)["remaining"]["session"]["total"]["rho"] > 1.4


def test_check_says_what_is_protected(policy: Path, capsys: Output) -> None:
    assert main(["check", str(policy)]) == 0
    out = capsys.readouterr().out
    assert "protects   customer (customers.customer_id)" in out
    text = policy.read_text().replace(
        "{table: customers, key: customer_id}", "{table: customers, key: row}"
    )
    rows = "\n".join(line for line in text.splitlines() if "password" not in line).replace(
        "    query: {epsilon: 0.5}", "    password: secret\n    query: {epsilon: 0.5}"
    )
    start, end = rows.index("  orders:"), rows.index("  countries: {public")
    policy.write_text(rows[:start] + rows[end:])
    assert main(["check", str(policy)]) == 0
    said = capsys.readouterr()
    assert "each row of customers" in said.out
    assert "warning: " in said.err


def test_init_from_a_database(data: Path, tmp_path: Path, capsys: Output) -> None:
    output = tmp_path / "drafts" / "p.yaml"
    output.parent.mkdir()
    assert main(["init", str(data), "-o", str(output)]) == 0
    text = output.read_text()
    assert "FILL IN" in text
    assert "read from the data" not in text
    assert "path: shop.duckdb" not in text
    assert "{columns: [customer_id], references: customers" in text


def test_init_names_the_columns_that_it_leaves_out(tmp_path: Path, capsys: Output) -> None:
    """And drafts ranges of instants in UTC, whatever zone this machine is in."""
    data, output = tmp_path / "d.duckdb", tmp_path / "p.yaml"
    with duckdb.connect(str(data)) as db:
        db.execute(
            "CREATE TABLE people (person_id BIGINT PRIMARY KEY, stay INTERVAL, tags VARCHAR[],"
            " opens TIME, seen TIMESTAMPTZ)"
        )
        db.execute("INSERT INTO people (person_id, seen) VALUES (1, '2024-01-01 01:00:00+01:00')")
        db.execute("INSERT INTO people (person_id, seen) VALUES (2, '2024-01-02 00:00:00Z')")
    assert main(["init", str(data), "-o", str(output), "--suggest-bounds"]) == 0
    said, text = capsys.readouterr().out, output.read_text()
    for name, held in (("stay", "INTERVAL"), ("tags", "VARCHAR[]"), ("opens", "TIME")):
        assert f"Left out: people.{name} is {held}, which dpsql does not read.\n" in said
        assert f'# {name} is left out: it is "{held}", which dpsql does not read:\n' in text
    assert "let a view of the source give seconds: epoch(..)" in text
    assert 'range: ["2024-01-01 00:00:00", "2024-01-31 23:59:59.999999"]' in text
    assert main(["check", str(output)]) == 0


def test_init_from_files(data: Path, tmp_path: Path, capsys: Output) -> None:
    with duckdb.connect(str(data), read_only=True) as db:
        db.execute(f"COPY customers TO '{tmp_path}/customers.parquet'")
        db.execute(f"COPY (SELECT *, 'nan'::DOUBLE AS odd FROM orders) TO '{tmp_path}/orders.csv'")
    files = [str(tmp_path / "customers.parquet"), str(tmp_path / "orders.csv")]
    output = tmp_path / "p.yaml"
    assert main(["init", *files, "-o", str(output), "--suggest-bounds"]) == 0
    said = capsys.readouterr().out
    assert "Imported 2 files" in said
    assert "Read from the data, and private:" in said
    text = output.read_text()
    assert 'path: "p.duckdb"' in text
    assert "range: [2024-01-01, 2025-12-31]" in text
    assert "odd: {type: double, nullable" in text
    policy = text.replace("max_rows_per_unit:  #", "max_rows_per_unit: 30  #")
    output.write_text(policy)
    assert main(["check", str(output)]) == 0
    output.unlink()
    assert main(["init", files[0], "-o", str(output)]) == 2
    assert "p.duckdb is there already" in capsys.readouterr().err


def test_a_flat_file_is_asked_after_init_and_check(tmp_path: Path, capsys: Output) -> None:
    """Units have no table: nobody has to write a second one."""
    with duckdb.connect(":memory:") as db:
        db.execute(
            "COPY (SELECT i % 297 AS student, 'c' || i % 7 AS course, 1 + i % 5 AS stars"
            f" FROM range(7342) AS r(i)) TO '{tmp_path}/ratings.csv'"
        )
    output = str(tmp_path / "p.yaml")
    assert main(["init", str(tmp_path / "ratings.csv"), "-o", output, "--suggest-bounds"]) == 0
    text = Path(output).read_text()
    assert "student: {key: [student]}" in text
    assert "student: {type: bigint, nullable: true}" in text, "no range of keys is suggested"
    assert main(["check", output]) == 0
    assert "protects   student (ratings.student)" in capsys.readouterr().out
    asked = "SELECT COUNT(DISTINCT student) AS students FROM ratings"
    assert main(["query", "--policy", output, "--format", "csv", asked]) == 0
    _, students = capsys.readouterr().out.strip().splitlines()[:2]
    assert abs(int(students) - 297) < 1_000, "not the 7,342 rows"


def test_init_says_what_it_does_not_take(data: Path, tmp_path: Path, capsys: Output) -> None:
    broken, twin = tmp_path / "t.parquet", tmp_path / "t.csv"
    broken.write_text("not parquet")
    twin.write_text("a\n1\n")
    output = str(tmp_path / "p.yaml")
    for arguments, code, words in (
        (["gone.csv"], 2, "there is no such file"),
        ([str(data), str(twin)], 2, "not both"),
        ([str(broken), str(twin)], 2, "the same name"),
        ([str(broken)], 1, "could not be read"),
    ):
        assert main(["init", *arguments, "-o", output]) == code
        assert words in capsys.readouterr().err
    assert not (tmp_path / "p.duckdb").exists()
    assert not Path(output).exists()


# Refusals and failures ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "code", "words"),
    [
        ("SELECT COUNT(*) FROM people", 3, "DP104"),
        ("SELECT COUNT(* FROM customers", 3, "DP102"),
        ("SELECT email FROM customers", 3, "DP101"),
    ],
)
def test_refusals(policy: Path, capsys: Output, sql: str, code: int, words: str) -> None:
    assert ask(policy, sql) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(words)
    assert "why:" in said.err
    assert "^" in said.err
    assert spent(policy) == 0


def test_budget_refusals(policy: Path, capsys: Output) -> None:
    assert ask(policy, "--epsilon", "0.6", COUNT) == 4
    assert capsys.readouterr().err.startswith("DP403")
    policy.write_text(
        policy.read_text().replace("session: {epsilon: 10}", "session: {epsilon: 0.6}")
    )
    assert ask(policy, COUNT) == 0
    assert ask(policy, f"{COUNT} WHERE age > 30") == 4
    assert "DP402" in capsys.readouterr().err
    assert spent(policy) == 0.5


def test_unknown_roles_and_usage(policy: Path, capsys: Output) -> None:
    assert ask(policy, "--role", "nobody", COUNT) == 3
    assert "DP602" in capsys.readouterr().err
    for arguments in ([], ["query", COUNT], ["query", "--policy", "p", "--format", "xml", COUNT]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2


def test_a_policy_with_a_typo(policy: Path, capsys: Output) -> None:
    policy.write_text(policy.read_text().replace("max_rows_per_unit: 30", "max_row_per_unit: 30"))
    assert main(["check", str(policy)]) == 1
    error = capsys.readouterr().err
    assert "policy.yaml:" in error
    assert "max_rows_per_unit" in error


def test_missing_files(policy: Path, tmp_path: Path, capsys: Output) -> None:
    assert ask(tmp_path / "gone.yaml", COUNT) == 1
    assert "gone.yaml" in capsys.readouterr().err
    policy.write_text(POLICY)
    assert ask(policy, COUNT) == 1
    assert "there is no such database file" in capsys.readouterr().err
    (tmp_path / "shop.duckdb").write_text("not a database, but long enough to be one" * 100)
    assert ask(policy, COUNT) == 1
    assert "not a DuckDB database" in capsys.readouterr().err


def _ledger_error(policy: Path, capsys: Output) -> str:
    """Ask in vain: one clear line, no answer."""
    capsys.readouterr()
    assert ask(policy, f"{COUNT} WHERE age < 40") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("DP902: the ledger ")
    assert said.err.count("\n") == 1
    return said.err


def test_a_ledger_folder_that_cannot_be_written(
    policy: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"ledger: {{path: no-such-folder/l.db}}\n{policy.read_text()}"
    policy.write_text(text)
    assert "no-such-folder" in _ledger_error(policy, capsys)

    real = os.open

    def refuse(path: str | Path, flags: int, mode: int = 0o777, **more: int) -> int:
        if str(path).startswith(str(tmp_path)):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, mode, **more)

    policy.write_text(text.replace("no-such-folder/l.db", "l.db"))
    monkeypatch.setattr(os, "open", refuse)  # root may write anywhere, so modes would not do
    assert "Permission denied" in _ledger_error(policy, capsys)
    assert not (tmp_path / "l.db").exists()


def test_a_full_disk(policy: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(policy, COUNT) == 0
    connect = sqlite3.connect

    def small(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)  # type: ignore[call-overload]
        connection.execute("PRAGMA max_page_count = 1")  # SQLite then has no room to grow
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    codes = {ask(policy, f"{COUNT} WHERE age < {age}") for age in range(30, 60)}
    monkeypatch.undo()
    assert 1 in codes
    assert "the disk is full" in capsys.readouterr().err
    assert spent(policy) < 31 * 0.5
    assert main(["audit", "--policy", str(policy)]) == 0


def test_a_corrupt_ledger(policy: Path, capsys: Output) -> None:
    assert ask(policy, COUNT) == 0
    ledger = policy.with_name("policy.ledger.db")
    for name in ("-wal", "-shm"):
        Path(f"{ledger}{name}").unlink(missing_ok=True)
    kept = ledger.read_bytes()
    ledger.write_bytes(b"this is no ledger " * 400)
    _ledger_error(policy, capsys)
    ledger.write_bytes(kept[:100] + b"\xff" * (len(kept) - 100))
    _ledger_error(policy, capsys)
    ledger.write_bytes(b"")
    _ledger_error(policy, capsys)
    ledger.write_bytes(kept)
    assert ask(policy, COUNT) == 0
    assert "a stored answer" in capsys.readouterr().out


def test_what_an_engine_says_stays_with_the_operator(
    policy: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        record(Incident("abcd1234", "measure", "John Smith"))
        raise EngineFailed("abcd1234")

    monkeypatch.setattr(Session, "execute", fail)
    assert ask(policy, COUNT) == 1
    said = capsys.readouterr()
    assert "DP901" in said.err
    assert "abcd1234" in said.err
    assert "John Smith" not in said.err + said.out
    assert "John Smith" in policy.with_name("policy.operator.log").read_text()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("secret"), "DP903: a defect in dpsql (KeyError)"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_nobody_sees_a_traceback(
    policy: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch, error: BaseException, words: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Session, "execute", fail)
    assert ask(policy, COUNT) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "secret" not in said
    monkeypatch.setenv("DPSQL_TRACEBACK", "1")
    if isinstance(error, KeyError):
        with pytest.raises(KeyError):
            ask(policy, COUNT)


def test_as_a_process(policy: Path, tmp_path: Path) -> None:
    """Exit code, streams, a reader that hangs up, and a policy beside its data."""
    command = [sys.executable, "-m", "dpsql", "query", "--policy", str(policy)]
    done = subprocess.run([*command, "SELECT age FROM customers"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"DP101")
    done = subprocess.run(
        f"{sys.executable} -m dpsql audit --policy {policy} | true", shell=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr


def test_a_reader_that_hangs_up(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(Session, "execute", fail)
    read, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert ask(policy, COUNT) == 0
    os.close(read)


# Numbers and SQL text -------------------------------------------------------------------------


def test_digits_follow_the_noise() -> None:
    assert digits([], 2) == 0
    assert decimals([1.0, 2.0, None], None) == 0
    assert decimals([0.5, 123.25], None) == 3
    assert decimals([5.0], [(4.97, 5.03)]) == 3
    assert decimals([5.0, None], [(None, None), (4.0, 6.0)]) == 1
    assert group_thousands(-1234.5, 0) == "-1,234"
    assert symmetric([1.0, None], [(0.0, 2.0), (None, None)])
    assert not symmetric([1.0], [(0.9, 2.0)])
    assert interval(None, (1.0, 2.0), 0, centred=True) == ""
    assert interval(1.0, (0.5, 2.0), 1, centred=False) == "0.5 … 2.0"


def test_the_module_can_be_copied(policy: Path, tmp_path: Path, capsys: Output) -> None:
    """A policy means the same wherever it lies; its ledger goes with its name."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    shutil.copy(policy, other / "policy.yaml")
    assert ask(other / "policy.yaml", COUNT) == 0
    assert (other / "policy.ledger.db").exists()


def test_the_dialect_can_be_chosen(policy: Path, capsys: Output) -> None:
    sql = "SELECT IFF(1 < 2, 7 / 2, 0) AS half"
    arguments = ["query", "--policy", str(policy), "--format", "csv", "--dialect", "snowflake", sql]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ['"HALF"', "3.5"]
    assert main(["explain", "--policy", str(policy), "--dialect", "snowflake", sql]) == 0
    assert main(["query", "--policy", str(policy), sql]) == 3
