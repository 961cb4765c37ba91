"""Drafts for files of one's own: which files are read, what is proposed, and what a second run keeps."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from dpsql.cli import main
from dpsql.cli.init import kept_draft
from dpsql.engines.duckdb.import_files import FileTable, plan_tables
from dpsql.policy.load import load
from dpsql.service import Service

Output = pytest.CaptureFixture[str]
CUSTOMERS = "customer_id,email,country,age,joined\n" + "".join(
    f"{i},c{i}@x.org,{('at', 'de', 'fr')[i % 3] if i else 'nowhere'},{18 + i % 70},2023-0{1 + i % 9}-11\n"
    for i in range(500)
)
ORDERS = "order_id,customerId,amount,channel,placed\n" + "".join(
    f"{i},{i % 400},{i % 97}.5,{('web', 'shop')[i % 2]},2024-0{1 + i % 2}-11T10:00:00+02:00\n"
    for i in range(2000)
)
VISITS = "".join(
    json.dumps({"visit_id": i, "customer_id": i % 300, "at": "2024-05-01 10:00:00", "tags": ["x"]}) + "\n"
    for i in range(700)
)  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder of files in several forms, some packed, some in parts."""
    folder = tmp_path / "shop"
    (folder / "visits" / "2024").mkdir(parents=True)
    (folder / "customers.csv").write_text(CUSTOMERS)
    head, *lines = ORDERS.splitlines()
    for month, part in ((1, lines[:900]), (2, lines[900:])):
        with gzip.open(folder / f"orders-2024-0{month}.csv.gz", "wt") as file:
            file.write("\n".join([head, *part, ""]))
    (folder / "visits" / "2024" / "a.jsonl").write_text(VISITS[: VISITS.index('{"visit_id": 300')])
    (folder / "visits" / "b.jsonl").write_text(VISITS[VISITS.index('{"visit_id": 300') :])
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT 'at' AS code, 'Austria' AS name) TO '{folder}/countries.parquet'")
    (folder / "README.md").write_text("no data")
    (folder / ".hidden.csv").write_text("a\n1\n")
    return folder


def drafted(capsys: Output, *arguments: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main(["init", *map(str, arguments)]) == code
    return "".join(capsys.readouterr())


def test_a_folder_becomes_a_policy_with_units_keys_and_links(
    shop: Path, tmp_path: Path, capsys: Output
) -> None:
    output = tmp_path / "p.yaml"
    said = drafted(capsys, shop, "-o", output, "--suggest-bounds")
    assert "Imported 6 files" in said
    assert "README.md is no CSV, JSON or Parquet file" in said
    assert "hidden" not in said
    assert "Left out: visits.tags" in said
    text = output.read_text()
    assert "(nothing in it is about a person; a guess from names)" in text
    output.write_text(text.replace("    # public: true ", "    public: true  #"))
    policy = load(output)
    assert policy.units["customer"].table == "customers"
    orders = policy.tables["orders"]
    assert orders.key == ("order_id",)
    assert [(f.columns, f.references) for f in orders.foreign_keys] == [
        (("customerId",), "customers")
    ]
    assert orders.max_rows_per_unit == 5
    assert orders.columns["channel"].values == ("shop", "web")
    assert orders.columns["placed"].declared == "timestamptz", "a zone is kept"
    assert policy.tables["visits"].columns["at"].declared == "timestamp", "and none is made up"
    customers = policy.tables["customers"]
    assert customers.columns["age"].range == (15, 90)
    assert customers.columns["country"].values == ("at", "de", "fr"), "a rare value is left out"
    assert customers.columns["email"].identifier
    assert all(policy.tables["orders"].columns[c].range is None for c in ("order_id", "customerId"))
    for line in ("4 range(s): ", "2 number(s) of rows: ", "2 list(s) of values: "):
        assert line in said
    assert main(["check", str(output)]) == 0
    with Service.open(output) as service:
        session = service.session()
        found = session.execute("SELECT COUNT(*) AS n FROM orders").table
        assert abs(found.column(0)[0].as_py() - 2000) < 1000
    with duckdb.connect(str(tmp_path / "p.duckdb"), read_only=True) as db:
        assert db.execute("SELECT count(*) FROM visits").fetchone() == (700,)
        assert db.execute("SELECT epoch(min(placed)) FROM orders").fetchone() == (
            datetime(2024, 1, 11, 8, tzinfo=UTC).timestamp(),
        )


def test_without_the_flag_nothing_of_the_rows_is_in_the_draft(
    shop: Path, tmp_path: Path, capsys: Output
) -> None:
    """Two data sets with the same names and types have the same draft."""
    texts = []
    for change in (lambda t: t, lambda t: t.replace(",de,", ",ch,").replace("2023", "1999")):
        (shop / "customers.csv").write_text(change(CUSTOMERS))
        output = tmp_path / "p.yaml"
        said = drafted(capsys, shop, "-o", output)
        assert "read from" not in said + output.read_text()
        texts.append(output.read_text())
        for path in (output, kept_draft(output), tmp_path / "p.duckdb"):
            path.unlink()
    assert texts[0] == texts[1]


def test_with_the_flag_it_would_differ(shop: Path, tmp_path: Path, capsys: Output) -> None:
    """The test above sees what is read from rows."""
    texts = []
    for change in (lambda t: t, lambda t: t.replace(",de,", ",ch,")):
        (shop / "customers.csv").write_text(change(CUSTOMERS))
        output = tmp_path / "p.yaml"
        drafted(capsys, shop, "-o", output, "--suggest-bounds")
        texts.append(output.read_text())
        for path in (output, kept_draft(output), tmp_path / "p.duckdb"):
            path.unlink()
    assert texts[0] != texts[1]


PLANS: dict[str, tuple[list[str], list[tuple[str, int]]]] = {
    "each file a table": (["a.csv", "b.json"], [("a", 1), ("b", 1)]),
    "parts": (["in/part-1.parquet", "in/part-2.parquet"], [("in", 2)]),
    "numbers in the middle": (["x-2023-q1.csv", "x-2023-q2.csv"], [("x_q", 2)]),
    "two kinds": (["x-1.csv", "x-2.csv", "x-3.json"], [("x", 2), ("x-3", 1)]),
    "packed": (["a.csv.gz", "b.tsv.zst"], [("a", 1), ("b", 1)]),
    "a folder below": (["in/y/1.csv", "in/y/z/2.csv", "in/y/notes.txt"], [("y", 2)]),
}  # fmt: skip


@pytest.mark.parametrize("case", PLANS)
def test_which_files_are_one_table(case: str, tmp_path: Path) -> None:
    files, expected = PLANS[case]
    for name in files:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    folders = [tmp_path / "data" / "in"] if files[0].startswith("in/") else [tmp_path / "data"]
    tables, unread = plan_tables(folders)
    assert [(t.name, len(t.files)) for t in tables] == expected
    assert unread == []
    one = tmp_path / "data" / files[0]
    if one.suffix != ".txt" and case != "packed":
        assert plan_tables([one]) == ([FileTable(one.stem, one.suffix, (one,))], [])


def edited(output: Path, *changes: tuple[str, str]) -> None:
    text = output.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    output.write_text(text)


def test_a_second_run_keeps_what_the_owner_wrote(
    shop: Path, tmp_path: Path, capsys: Output
) -> None:
    output = tmp_path / "p.yaml"
    drafted(capsys, shop, "-o", output)
    edited(
        output,
        ("    # public: true    (nothing in it is about a person; ", "    public: true  # ("),
        ("      age: {type: bigint, nullable: true}\n", "      age: {type: bigint, range: [0, 120], nullable: true}  # mine\n"),
        ("      email: {type: text, identifier: true, nullable: true}  # a guess from the name\n", ""),
        ("dataset: {epsilon: 1,", "dataset: {epsilon: 3,"),
    )  # fmt: skip
    mine = output.read_text().replace("max_rows_per_unit:  #", "max_rows_per_unit: 7  #")
    output.write_text(mine)
    assert main(["check", str(output)]) == 0
    with Service.open(output) as service:
        service.session().execute("SELECT COUNT(*) AS n FROM customers")
    again = drafted(capsys, shop, "-o", output)
    assert "is up to date; what you wrote stays" in again
    assert output.read_text() == mine
    (shop / "customers.csv").write_text(
        CUSTOMERS.replace(",joined\n", ",joined,city\n").replace("-11\n", "-11,Wien\n")
    )
    (shop / "returns.csv").write_text("return_id,order_id\n1,2\n")
    again = drafted(capsys, shop, "-o", output)
    assert f"Updated {output}; what you wrote stays. If it is served, run: dpsql refresh" in again
    text = output.read_text()
    assert "      city: {type: text, nullable: true}\n" in text
    assert "  returns:\n    unit: customer\n" in text
    for line in (
        "range: [0, 120], nullable: true}  # mine",
        "dataset: {epsilon: 3,",
        "public: true  #",
    ):
        assert line in text
    assert "email" not in text, "what the owner took out stays out"
    assert "email" in kept_draft(output).read_text()
    output.write_text(text.replace("max_rows_per_unit:  #", "max_rows_per_unit: 7  #"))
    assert "but stored answers are about older data" in _checked(output, capsys)
    assert main(["refresh", str(output)]) == 0
    assert load(output).data_version == "2"
    edited(output, ("      city: {type: text, nullable: true}\n", "      city: {type: text, values: [Wien], nullable: true}\n"))  # fmt: skip
    (shop / "customers.csv").write_text(
        CUSTOMERS.replace(",joined\n", ",joined,city\n").replace("-11\n", "-11,7\n")
    )
    again = drafted(capsys, shop, "-o", output)
    assert "Not taken, as you edited its place: city: {type: bigint, nullable: true}" in again
    assert "values: [Wien]" in output.read_text()
    assert load(output).data_version == "2"


def _checked(output: Path, capsys: Output) -> str:
    capsys.readouterr()
    assert main(["check", str(output)]) == 0
    return capsys.readouterr().out


def test_what_a_second_run_does_not_do(shop: Path, tmp_path: Path, capsys: Output) -> None:
    output = tmp_path / "p.yaml"
    drafted(capsys, shop / "customers.csv", "-o", output, "--suggest-bounds")
    text = output.read_text()
    said = drafted(capsys, shop / "customers.csv", "-o", output, code=2)
    assert "was drafted with --suggest-bounds: give it again" in said
    kept_draft(output).unlink()
    said = drafted(capsys, shop / "customers.csv", "-o", output, "--suggest-bounds", code=2)
    assert "not p.yaml.draft, the draft that it was made from" in said
    assert output.read_text() == text
    own = tmp_path / "own.duckdb"
    with duckdb.connect(str(own)) as db:
        db.execute("CREATE TABLE users (user_id BIGINT)")
    before = own.read_bytes()
    drafted(capsys, own, "-o", tmp_path / "own.yaml")
    said = drafted(capsys, shop / "customers.csv", "-o", tmp_path / "own.yaml", code=2)
    assert "own.duckdb is there already" in said
    assert own.read_bytes() == before, "a database that init did not make is never replaced"


def test_a_failed_import_leaves_the_database_of_before(
    shop: Path, tmp_path: Path, capsys: Output
) -> None:
    output = tmp_path / "p.yaml"
    drafted(capsys, shop / "customers.csv", "-o", output)
    before = (tmp_path / "p.duckdb").read_bytes()
    (shop / "bad.parquet").write_text("no parquet")
    arguments = (shop / "customers.csv", shop / "bad.parquet", "-o", output)
    assert "could not be read" in drafted(capsys, *arguments, code=1)
    assert (tmp_path / "p.duckdb").read_bytes() == before
    assert sorted(p.name for p in tmp_path.glob(".p*")) == []


def test_folders_without_data_and_tables_of_one_name(tmp_path: Path, capsys: Output) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    output = tmp_path / "p.yaml"
    said = drafted(capsys, empty, "-o", output, code=2)
    assert "there is no CSV, JSON or Parquet file in it" in said
    (empty / "a.csv").write_text("x\n1\n")
    (tmp_path / "A.csv").write_text("x\n1\n")
    said = drafted(capsys, empty, tmp_path / "A.csv", "-o", output, code=2)
    assert 'two files have the same name "a"' in said


def test_enums_list_their_words_and_odd_keys_get_a_view(tmp_path: Path, capsys: Output) -> None:
    data, output = tmp_path / "d.duckdb", tmp_path / "p.yaml"
    with duckdb.connect(str(data)) as db:
        db.execute("CREATE TYPE channel AS ENUM ('web', 'it''s', 'no')")
        db.execute("CREATE TABLE events (user_id UBIGINT, channel channel, size SMALLINT)")
        db.execute("INSERT INTO events SELECT i % 50, 'web', 32000 + i FROM range(700) AS r(i)")
        db.execute("CREATE TABLE keyed (user_id BIGINT, n BIGINT)")
        db.execute(f"INSERT INTO keyed VALUES (1, {2**63 - 1}), (2, {-(2**63)})")
    drafted(capsys, data, "-o", output)
    text = output.read_text()
    assert """channel: {type: text, values: [web, "it's", "no"], nullable: true}  # the words of its type""" in text  # fmt: skip
    view = "CREATE VIEW events_keyed AS SELECT * REPLACE (CAST(user_id AS VARCHAR) AS user_id) FROM events"  # fmt: skip
    assert view in text
    drafted(capsys, data, "-o", tmp_path / "q.yaml", "--suggest-bounds")
    ranges = (tmp_path / "q.yaml").read_text()
    assert "size: {type: smallint, range: [32000, 32700], nullable: true}" in ranges
    assert f"range: [{-(2**63)}, {2**63 - 1}]" in ranges


def test_values_that_are_no_words_are_not_drafted(tmp_path: Path, capsys: Output) -> None:
    rows: dict[str, Callable[[int], str]] = {
        "many": lambda i: f"v{i % 40}",
        "long": lambda i: "x" * 61,
        "rare": lambda i: f"v{i}" if i < 3 else "",
        "few": lambda i: "ab"[i % 2],
    }
    lines = [",".join(["user_id", *rows])]
    lines += [",".join([str(i), *(make(i) for make in rows.values())]) for i in range(800)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    drafted(capsys, tmp_path / "t.csv", "-o", tmp_path / "p.yaml", "--suggest-bounds")
    columns = load(tmp_path / "p.yaml").tables["t"].columns
    assert {n: c.values for n, c in columns.items() if c.values} == {"few": ("a", "b")}


@pytest.mark.parametrize(
    ("column", "values", "listed", "place"),
    [
        ("country", "at de", "at de fr", ("countries", "code")),
        ("country", "at xx", "at de fr", None),
        ("origin", "at de fr", "at de fr it", ("countries", "code")),
        ("origin", "at de", "at de fr", None),
        ("country", "at de", "at at de", None),
        ("email", "at de", "at de fr", None),
    ],
)
def test_a_list_of_values_is_found_in_another_table(
    column: str,
    values: str,
    listed: str,
    place: tuple[str, str] | None,
    tmp_path: Path,
    capsys: Output,
) -> None:
    words = values.split()
    rows = (f"{i % 90},{words[i % len(words)]}" for i in range(900))
    (tmp_path / "logins.csv").write_text("\n".join([f"user_id,{column}", *rows, "7,"]))
    codes = (f"{code},{i}" for i, code in enumerate(listed.split()))
    (tmp_path / "countries.csv").write_text("\n".join(["code,area", *codes, ""]))
    output = tmp_path / "p.yaml"
    drafted(capsys, tmp_path, "-o", output, "--suggest-bounds")
    text = output.read_text()
    assert ("values_from: countries.code" in text) is (place is not None)
    output.write_text(text.replace("    # public: true ", "    public: true  #"))
    assert load(output).tables["logins"].columns[column].values_from == place
    assert main(["check", str(output)]) == 0
