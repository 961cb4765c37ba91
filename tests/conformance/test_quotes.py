"""No error repeats a file: whatever is read in the wrong place, a few words of it are quoted."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from callers import Caller, caller
from support.services import Seeded, policy_file

from dpsql.cli import main
from dpsql.diagnostics import quote
from dpsql.diagnostics.refusal import Refused
from dpsql.serve.pgwire.errors import wire_error
from dpsql.service import Service

CANARY = "canary-in-the-last-line"
QUOTED = 200
"""Characters of a file that an error may repeat in one piece."""
SHOWN = 14_000
"""Characters that any error may have in all."""
COUNT = 1_200


def _words(form: str, count: int = COUNT) -> str:
    """The form again and again, each time with another number, and the canary at the end."""
    return "".join(form.format(i) for i in range(count)) + form.replace("{}", CANARY)


LONG = _words("w{} ").strip()
TEXTS = {
    "rows": _words("{},2024-01-01,a street,9.50\n"),
    "rows with quotes": _words('{},"O\'Brien, ""Pat""",x\n'),
    "rows with colons": _words("name: x{}, age: 12\n"),
    "one line": LONG,
    "one word": "x" * 60_000 + CANARY,
    "keys": _words("key{}: value\n"),
    "keys of people": _words("tables: x\nname {}: 12\n", 300),
    "bad tables": "source: {path: shop.duckdb}\ntables:\n" + _words("  t{}: 5\n"),
    "bad columns": "tables:\n  orders:\n    columns:\n" + _words("      c{}: {{tipe: text}}\n", 400),
    "a long key": f"source: 1\n? {LONG}\n: 2\n",
    "a long name": f"tables:\n  ? {LONG}\n  : {{public: maybe}}\n",
    "a long value": f"data_version: [a]\nsource: {LONG}\n",
    "long values": "\n".join(f"{key}: {LONG}" for key in ("source", "units", "tables", "roles")),
    "a long list": "roles: {analyst: {mechanisms: [" + _words("m{}, ") + "]}}",
    "a text in quotes": f'source: "{LONG}"\nunits: "{LONG}"\n',
    "an open quote": f'source: "{LONG}',
    "a block": "source: |\n" + _words("  line {}\n"),
    "a wrong escape": f'source: "\\q{LONG}"',
    "an anchor": f"source: &{'a' * 50_000}{CANARY} x\n",
    "an alias": f"source: *{'a' * 50_000}{CANARY}\n",
    "a tag": f"source: !{'a' * 50_000}{CANARY} x\n",
    "a handle": f"source: !{'a' * 50_000}{CANARY}!x y\n",
    "a directive": f"%TAG !{'a' * 50_000}{CANARY}! x\n---\nsource: 1\n",
    "laughs": "".join(
        f"l{i}: &l{i} [{', '.join([f'*l{i - 1}' if i else 'lol'] * 9)}]\n" for i in range(60)
    ) + f"last: {CANARY}\n",
    "deep brackets": "[" * 20_000 + CANARY,
    "deep braces": "{a: " * 10_000 + CANARY,
    "deep dashes": "- " * 10_000 + CANARY,
    "closing brackets": "]" * 20_000 + CANARY,
    "JSON": json.dumps([{"id": i, "name": f"person {i}"} for i in range(COUNT)] + [CANARY]),
    "tabs": _words("\tx{}\ty\n"),
    "control characters": "\x01\x02" * 20_000 + CANARY,
    "many documents": _words("---\nx: {}\n", 500),
    "SQL": "SELECT " + _words("c{}, ") + "1 FROM orders",
    "SQL of one name": f'SELECT "{LONG}" FROM orders',
    "SQL of one text": f"SELECT COUNT(*) FROM orders WHERE amount = '{LONG}'",
    "SQL of a table": f'SELECT COUNT(*) FROM "{LONG}"',
    "SQL of a function": f"SELECT {'f' * 30_000}{CANARY}(amount) FROM orders",
    "SQL of a comment": f"SELEC 1 /* {LONG} */",
    "SQL of people": f'SELECT email AS "{LONG}" FROM customers',
}  # fmt: skip
DOCUMENTS: dict[str, bytes] = {name: text.encode() for name, text in TEXTS.items()}
DOCUMENTS |= {
    "random bytes": Seeded(7).raw(60_000) + CANARY.encode(),
    "UTF-16": TEXTS["rows"].encode("utf-16"),
    "zeros": bytes(60_000) + CANARY.encode(),
}
Reader = Callable[[Path, Path], list[str]]


def _in_policy(place: Path, document: Path, change: Callable[[str], str]) -> list[str]:
    """Check a sound policy that names the document."""
    policy = place.with_name(f"with-{document.name}.yaml")
    policy.write_text(change(place.read_text()))
    return ["query", "--policy", str(policy), "--role", "analyst", "SELECT COUNT(*) FROM orders"]


READERS: dict[str, Reader] = {
    "check": lambda _, d: ["check", str(d)],
    "policy": lambda _, d: ["query", "--policy", str(d), "SELECT 1"],
    "batch": lambda p, d: ["explain", "--policy", str(p), "--role", "analyst", "--batch", str(d)],
    "statement": lambda p, _: ["query", "--policy", str(p), "--role", "analyst", "-"],
    "source": lambda p, d: _in_policy(
        p, d, lambda t: t.replace("path: shop.duckdb", f"path: '{d}'")
    ),
    "ledger": lambda p, d: _in_policy(p, d, lambda t: f"{t}\nledger: {{path: '{d}'}}\n"),
    "Parquet": lambda _, d: ["init", str(_named(d, "parquet")), "-o", str(d.with_suffix(".new"))],
    "DuckDB": lambda _, d: ["init", str(_named(d, "duckdb")), "-o", str(d.with_suffix(".new"))],
    "users": lambda p, d: _users(p, d),
    "certificate": lambda p, d: [
        "serve",
        "--policy",
        str(p),
        "--tls-cert",
        str(d),
        "--tls-key",
        str(d),
        "--port",
        "0",
    ],
}


def _named(document: Path, suffix: str) -> Path:
    found = document.with_suffix(f".{suffix}")
    found.write_bytes(document.read_bytes())
    return found


def _users(policy: Path, document: Path) -> list[str]:
    """A policy beside which the document is the file of users."""
    beside = policy.with_name(f"users-{document.name}.yaml")
    beside.write_text(policy.read_text())
    beside.with_suffix(".users").write_bytes(document.read_bytes())
    return ["user", "list", "--policy", str(beside)]


@pytest.fixture(scope="module")
def policy() -> Path:
    return policy_file("shop", "shop")


def _repeats(said: str, document: str) -> str:
    """A piece of the document that is said, and is too long; nothing where there is none."""
    pieces = (said[at : at + QUOTED + 1] for at in range(len(said) - QUOTED))
    return next((piece for piece in pieces if piece in document), "")


def _check(said: str, document: str) -> None:
    assert len(said) <= SHOWN, said[:2000]
    assert CANARY not in said
    assert not _repeats(said, document), said[:2000]


FEW = ("rows", "one line", "one word", "deep brackets", "random bytes", "zeros", "UTF-16")
"""What is wrong for readers that look at the first bytes, or at lines, only."""
CASES = [
    (name, reader)
    for reader in READERS
    for name in DOCUMENTS
    if reader == "check"
    or name in FEW
    or (reader in ("statement", "batch") and name.startswith("SQL"))
]


@pytest.mark.parametrize(("name", "reader"), CASES)
def test_a_wrong_file_is_not_repeated(
    policy: Path, tmp_path: Path, name: str, reader: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    document = tmp_path / "document"
    document.write_bytes(DOCUMENTS[name])
    stdin = io.TextIOWrapper(io.BytesIO(DOCUMENTS[name]), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    arguments = READERS[reader](policy, document)
    code = main(arguments)
    told = capsys.readouterr()
    assert code != 0, told
    assert told.err or told.out
    assert "DP903" not in told.err, told.err
    _check(
        told.err + told.out,
        DOCUMENTS[name].decode("latin-1") + DOCUMENTS[name].decode("utf-8", "replace"),
    )


def test_a_table_of_rows_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What DuckDB says of rows that do not fit quotes them."""
    rows = "a,b\n" + _words("{},1\n") + 'x,"2\n' + _words("y{},3,4,5\n")
    for name, text in (("fair.csv", rows), ("odd.csv", rows.replace(",", "\x00"))):
        (tmp_path / name).write_text(text)
        main(["init", str(tmp_path / name), "-o", str(tmp_path / f"{name}.yaml")])
        told = capsys.readouterr()
        _check(told.err + told.out, text)


ARGUMENTS = {
    "epsilon": ["--epsilon", LONG],
    "format": ["--format", LONG],
    "role": ["--role", LONG],
    "session": ["--session", LONG],
    "dialect": ["--dialect", LONG],
    "unknown": [f"--{LONG}"],
    "output": ["--output", LONG],
    "policy": ["--policy", LONG],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_wrong_argument_is_not_repeated(
    policy: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "query",
        "--policy",
        str(policy),
        "--role",
        "analyst",
        *ARGUMENTS[name],
        "SELECT 1",
    ]
    try:
        code = main(arguments)
    except SystemExit as left:
        code = int(str(left.code))
    assert code != 0
    _check(capsys.readouterr().err, LONG)


def test_a_long_path_in_a_policy_is_not_repeated(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for change in (
        lambda text: text.replace("path: shop.duckdb", f"path: '{LONG}'"),
        lambda text: f"{text}\nledger: {{path: '{LONG}'}}\n",
    ):
        wrong = policy.with_name("long.yaml")
        wrong.write_text(change(policy.read_text()))
        assert main(
            ["query", "--policy", str(wrong), "--role", "analyst", "SELECT COUNT(*) FROM orders"]
        )
        _check(capsys.readouterr().err, LONG)


@pytest.fixture(scope="module")
def service(policy: Path) -> Iterator[Service]:
    with Service.open(policy) as found:
        yield found


@pytest.fixture(scope="module")
def robot(service: Service) -> Caller:
    return caller(service, "analyst")


STATEMENTS = [
    name for name in TEXTS if name.startswith("SQL") or name in ("rows", "one line", "one word")
]


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_wrong_statement_is_not_repeated(service: Service, robot: Caller, name: str) -> None:
    text = TEXTS[name]
    session = service.session("analyst")
    for sql in (
        text,
        f"SET dpsql.epsilon = '{text}'",
        f"SET dpsql.{text} = 1",
        f"SHOW dpsql.{text}",
    ):
        with pytest.raises(Refused) as caught:
            session.execute(sql)
        _check(str(caught.value), text)
        wired = wire_error(caught.value)
        for part in (wired.message, wired.detail, wired.hint):
            _check(part, text)
        _check(robot.post("/v1/query", json={"sql": sql}).text, text)
    for body in ({text: 1, "sql": "SELECT 1"}, {"sql": "SELECT 1", "settings": {text: 1}}, text):
        _check(robot.post("/v1/query", json=body).text, text)


def test_a_whole_quotation_is_noticed(
    policy: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the cut the file is printed, as it was."""
    document = tmp_path / "fair.csv"
    document.write_text(TEXTS["one line"])
    monkeypatch.setattr("dpsql.policy.problems.quote", lambda text: text)
    monkeypatch.setattr(quote, "PIECE", 10**9)
    monkeypatch.setattr("dpsql.diagnostics.refusal.cut_lines", tuple)
    assert main(["check", str(document)]) == 1
    told = capsys.readouterr().err
    assert CANARY in told
    assert _repeats(told, LONG)
