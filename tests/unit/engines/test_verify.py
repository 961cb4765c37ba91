"""What a policy declares is compared with the data before any question, and never after."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pytest
from support.declared import BROKEN, NOBODYS, POLICY, alone, written
from support.services import noon

import dpsql
from dpsql.declarations import requirements as declarations
from dpsql.declarations.requirements import DECLARATIONS
from dpsql.diagnostics.refusal import DataBreaksPolicy, SourceMismatch
from dpsql.engines import facts_file
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.duckdb.write import write
from dpsql.engines.facts_file import FactsFile, State
from dpsql.ir.statements import Query
from dpsql.policy.against_source import compare
from dpsql.policy.load import load
from dpsql.policy.model import Limits
from dpsql.service import Service

CONSTANT = str(DataBreaksPolicy())


def opens(path: Path) -> Service:
    return Service.open(path, clock=noon)


def refused(path: Path) -> bool:
    try:
        opens(path).close()
    except DataBreaksPolicy:
        return True
    return False


@pytest.mark.parametrize("what", BROKEN)
def test_broken_data_opens_nothing(what: str, tmp_path: Path) -> None:
    path = written(tmp_path, BROKEN[what])
    assert refused(path)
    with pytest.raises(DataBreaksPolicy) as caught:
        dpsql.connect(path)
    assert str(caught.value) == CONSTANT
    assert caught.value.args == (CONSTANT,)


def test_data_that_keeps_its_declarations_is_served(tmp_path: Path) -> None:
    assert not refused(written(tmp_path / "kept"))
    assert not refused(written(tmp_path / "nobodys", NOBODYS))
    assert not refused(written(tmp_path / "empty", *(f"DELETE FROM {t}" for t in ("people", "orders", "items", "profiles", "notes"))))  # fmt: skip


ALONE = {
    "unit key": alone("people"),
    "table key": alone("people", "orders"),
    "referenced key": alone("people", "orders", "items"),
    "one row per unit": alone("people", "profiles"),
    "one row per unit by a path": alone("people", "orders", "notes"),
    "public key": alone("people"),
}
"""Policies in which nothing else follows from the declaration."""


@pytest.mark.parametrize("what", ALONE)
def test_without_its_verification_broken_data_is_served(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: what a declaration requires is not looked up."""
    path = written(tmp_path, BROKEN[what], policy=ALONE[what])
    assert refused(path)
    names = {what.removesuffix(" by a path"), *(["table key"] if "key" in what else [])}
    left = tuple(replace(d, requirements=None) if d.name in names else d for d in DECLARATIONS)
    monkeypatch.setattr(declarations, "DECLARATIONS", left)
    assert not refused(path)


BIG = 1 << 53
"""The first whole number whose successor is read as the same double."""
CASTS = {
    "whole numbers": ("BIGINT", "double", str(BIG), str(BIG + 1), str(BIG + 2)),
    "unique whole numbers": ("UBIGINT PRIMARY KEY", "double", str(BIG), str(BIG + 1), str(BIG + 2)),
    "small whole numbers": ("INTEGER", "double", "7", "7", "8"),
    "decimals": ("DECIMAL(18, 2)", "double", "1.00", "1.00", "1.01"),
    "zeros": ("DOUBLE", "double", "0.0", "-0.0", "1.0"),
    "instants": (
        "TIMESTAMP_NS", "timestamp", "2024-01-01 00:00:00.000000100",
        "2024-01-01 00:00:00.000000200", "2024-01-01 00:00:01",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASTS)
def test_keys_are_compared_as_statements_compare_them(case: str, tmp_path: Path) -> None:
    """Values that an engine takes for equal, or reads as equal, are one key, constraint or none."""
    stored, declared, one, same, other = CASTS[case]
    for second, broken in ((same, True), (other, False)):
        place = tmp_path / str(broken)
        place.mkdir()
        policy = (
            POLICY.split("tables:")[0]
            + "tables:\n  people: {unit: person, columns: {person_id: {type: bigint}}}\n"
            f"  places: {{public: true, key: k, columns: {{k: {{type: {declared}}}}}}}\n"
            + POLICY[POLICY.index("accounts:") :]
        )
        with duckdb.connect(str(place / "small.duckdb")) as connection:
            connection.execute("CREATE TABLE people (person_id BIGINT)")
            connection.execute(f"CREATE TABLE places (k {stored}, v INTEGER)")
            for value in (one, second):
                connection.execute(f"INSERT INTO places VALUES ('{value}', 1)")
        (place / "policy.yaml").write_text(policy)
        assert refused(place / "policy.yaml") is broken


JOINED = (
    POLICY.split("tables:")[0]
    + """tables:
  people: {unit: person, columns: {person_id: {type: bigint}, x: {type: double}}}
  places: {public: true, key: k, columns: {k: {type: double}}}
"""
    + POLICY[POLICY.index("accounts:") :]
)
MET = "SELECT COUNT(*) FROM people JOIN places ON people.x = places.k"


def met(place: Path, people: int) -> tuple[int, Fraction]:
    """How many public rows so many people meet, and how far one person is said to move that number."""
    place.mkdir()
    with duckdb.connect(str(place / "small.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE people AS SELECT i AS person_id, {BIG}::DOUBLE AS x FROM range({people}) r(i)"
        )
        connection.execute("CREATE TABLE places (k BIGINT PRIMARY KEY)")
        connection.execute(f"INSERT INTO places VALUES ({BIG}), ({BIG + 1})")
    (place / "policy.yaml").write_text(JOINED)
    with opens(place / "policy.yaml") as service:
        session = service.session()
        (part,) = session.prepare(MET).parts
        (count,) = session.execute(MET).table.column(0).to_pylist()
        return count, part.noised[0].sensitivity.l1


def test_a_key_that_is_believed_as_it_is_stored_moves_more_than_is_priced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: whole numbers that are read as one double are taken for two keys."""
    with pytest.raises(DataBreaksPolicy):
        met(tmp_path / "verified", 2)
    monkeypatch.setattr(declarations, "WIDE", frozenset())
    (two, priced), (one, _) = met(tmp_path / "two", 2), met(tmp_path / "one", 1)
    assert two - one > priced


def looked(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many queries are asked of the source when the policy is opened."""
    asked, real = list[Query | str](), DuckDB.is_empty

    def is_empty(self: DuckDB, query: Query | str) -> bool:
        asked.append(query)
        return real(self, query)

    with monkeypatch.context() as change:
        change.setattr(DuckDB, "is_empty", is_empty)
        opens(path).close()
    return len(asked)


def test_the_same_data_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    first = looked(path, monkeypatch)
    assert first > 10
    assert looked(path, monkeypatch) == 0
    path.write_text(POLICY.replace("max_rows_per_unit: 5", "max_rows_per_unit: 6"))
    assert 0 < looked(path, monkeypatch) < first / 2, "what another policy needs is looked up"
    kept = tmp_path / "small.duckdb.verified"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert set(json.loads(kept.read_text())) == {"format", "database", "content", "found"}


def test_other_data_is_looked_up_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    first = looked(path, monkeypatch)
    with duckdb.connect(str(tmp_path / "small.duckdb")) as connection:
        connection.execute(BROKEN["unit key"])
    assert refused(path)
    with duckdb.connect(str(tmp_path / "small.duckdb")) as connection:
        connection.execute("DELETE FROM people WHERE rowid >= 40")
    assert looked(path, monkeypatch) == first


def _lied(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A file that says the best of everything, with one thing changed."""
    document = json.loads(path.read_text())
    document["found"] = dict.fromkeys(document["found"], True)
    document = change(document) or document
    path.write_text(document if isinstance(document, str) else json.dumps(document))


SPOILT: Mapping[str, Callable[[Path], object]] = {
    "others may write it": lambda p: p.chmod(0o620),
    "others may read it": lambda p: p.chmod(0o644),
    "a link": lambda p: (p.rename(p.with_name("elsewhere")), p.symlink_to(p.with_name("elsewhere"))),
    "no text of ours": lambda p: _lied(p, lambda d: "{"),
    "a list": lambda p: _lied(p, lambda d: "[]"),
    "another form": lambda p: _lied(p, lambda d: d | {"format": 3}),
    "another state": lambda p: _lied(p, lambda d: d | {"database": d["database"] + "1"}),
    "one thing more": lambda p: _lied(p, lambda d: d | {"more": 1}),
    "no mapping": lambda p: _lied(p, lambda d: d | {"found": [*d["found"]]}),
    "a number": lambda p: _lied(p, lambda d: d | {"found": dict.fromkeys(d["found"], 1)}),
    "no digest": lambda p: _lied(p, lambda d: d | {"found": d["found"] | {"x": True}}),
    "no digest of the data": lambda p: _lied(p, lambda d: d | {"content": "x"}),
    "too long": lambda p: p.write_bytes(p.read_bytes() + b" " * facts_file.MOST_BYTES),
    "not there": lambda p: p.unlink(),
}  # fmt: skip


@pytest.mark.parametrize("how", SPOILT)
def test_a_spoilt_file_costs_a_new_look_and_decides_nothing(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, BROKEN["one row per unit"])
    database = tmp_path / "small.duckdb"
    file = FactsFile(database, State.of(database))
    engine = DuckDB(database, Limits())
    source = engine.describe()
    for needed in declarations.requirements(compare(load(path), source), source):
        file.put(write(needed.broken), True)
    engine.close()
    file.save()
    assert not refused(path), "what the owner's side has written is believed"
    SPOILT[how](tmp_path / "small.duckdb.verified")
    assert refused(path)


def test_a_file_of_somebody_else_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    first, mine = looked(path, monkeypatch), os.fstat

    def theirs(number: int) -> os.stat_result:
        found = list(mine(number))
        found[4] = 12345
        return os.stat_result(found)

    with monkeypatch.context() as change:
        change.setattr(facts_file.os, "fstat", theirs)
        assert looked(path, change) == first


@pytest.mark.parametrize("what", ["making a file", "giving it its name"])
def test_a_folder_that_cannot_be_written_is_no_harm(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)

    def fails(*_: object, **__: object) -> object:
        raise PermissionError

    of = (facts_file.tempfile, "mkstemp") if what == "making a file" else (Path, "replace")
    monkeypatch.setattr(*of, fails)
    first = looked(path, monkeypatch)
    assert looked(path, monkeypatch) == first
    assert not [*tmp_path.glob(".small*"), *tmp_path.glob("*.verified")]


def test_a_database_that_changed_under_an_open_one_is_not_opened(tmp_path: Path) -> None:
    """The engine would show the old one: a process has one database for each path."""
    path = written(tmp_path / "old")
    other = written(tmp_path / "new", BROKEN["unit key"])
    with opens(path) as service:
        (other.parent / "small.duckdb").replace(tmp_path / "old" / "small.duckdb")
        with pytest.raises(SourceMismatch, match="has changed since this process opened it"):
            opens(path)
        assert service.session().execute("SELECT COUNT(*) FROM people").table.num_rows == 1
    assert refused(path)


def test_the_digest_is_that_of_the_bytes_that_were_opened(tmp_path: Path) -> None:
    written(tmp_path)
    database = tmp_path / "small.duckdb"
    state = State.of(database)
    first = FactsFile(database, state).content()
    log = tmp_path / "small.duckdb.wal"
    log.touch()
    assert FactsFile(database, State.of(database)).content() == first, (
        "an empty log changes nothing"
    )
    log.write_bytes(b"x")
    with pytest.raises(SourceMismatch, match="was written to meanwhile"):
        FactsFile(database, state).content()
    assert FactsFile(database, State.of(database)).content() != first


def test_the_digest_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read = written(tmp_path), list[object]()
    real = facts_file.file_digest

    def digest(file: BinaryIO, name: str) -> object:
        read.append(name)
        return real(file, name)

    monkeypatch.setattr(facts_file, "file_digest", digest)
    opens(path).close()
    opens(path).close()
    assert len(read) == 1
    with duckdb.connect(str(tmp_path / "small.duckdb")) as connection:
        connection.execute("CREATE TABLE more (x INTEGER)")
    opens(path).close()
    assert len(read) == 2
