"""No face, log or metric shows a mark; and the marks are where they are said to be."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.adversary import canaries
from tests.adversary.canaries import BEFORE, ENVIRONMENT, FILES, MARKS, PLACES, plant
from tests.adversary.faces.dbapi import ModuleFace
from tests.adversary.faces.servers import Servers
from tests.adversary.judges.canaries import Canaries, leaks
from tests.adversary.live import case_of, faces, look_for_marks, run_in
from tests.adversary.model import Failure, Run, Step, Transcript
from tests.adversary.place import DATA

ASKED = ("dbapi", "simple", "http")


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with Servers(ENVIRONMENT) as running:
        yield running


def test_no_face_shows_a_mark(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    chosen = [face for face in faces(servers) if face.name in ASKED]
    found = look_for_marks(tmp_path / "marks", servers, chosen, 0)
    assert [f"{f.meaning} {f.steps[f.step].text} {f.details}" for f in found] == []


def test_marks_are_where_they_are_said_to_be(tmp_path: Path) -> None:
    world, shown = plant(tmp_path), dict[str, bytes]()
    run_in(ModuleFace(), world, BEFORE, tmp_path, shown)
    looking = (
        Step("ask", "SELECT * FROM secrets", role="stranger"),
        Step("ask", "SELECT * FROM dpsql.policy", role="stranger"),
        Step("ask", "SHOW TABLES", role="stranger"),
    )
    run_in(ModuleFace(), world, looking, tmp_path, shown)
    shown["ledger"] = b"".join(path.read_bytes() for path in tmp_path.glob("*.ledger.db*"))
    shown["policy"] = world.policy.encode()
    shown["environment"] = repr(ENVIRONMENT).encode()
    for name in FILES:
        shown[name] = (tmp_path / name).read_bytes()
        assert name in {source for source, place, _ in leaks(shown) if place == "file"}
    with duckdb.connect(str(tmp_path / DATA), read_only=True) as connection:
        for table in ("people", "secrets", MARKS["table"]):
            shown[table] = repr(
                connection.sql(f"SELECT {table}::VARCHAR FROM {table}").fetchall()
            ).encode()
    seen = {place for _, place, _ in leaks(shown)}
    assert seen == set(PLACES) - {"application"}
    to_the_stranger = {place for source, place, _ in leaks(shown) if source == "dbapi"}
    assert {"listed", "hidden", "column", "description", "view"} <= to_the_stranger


WORD = MARKS["hidden"]


@pytest.mark.parametrize(
    "body",
    [
        WORD.encode(),
        WORD.upper().encode(),
        f"before{WORD}after".encode(),
        WORD.encode().hex().encode(),
        WORD.encode("utf-16-le"),
        WORD[::-1].encode(),
        base64.b64encode(WORD.encode() + b"more"),
        base64.b64encode(b"a" + WORD.encode() + b"more"),
        base64.b64encode(b"ab" + WORD.encode() + b"more"),
    ],
)
def test_a_mark_is_noticed_in_every_form(body: bytes) -> None:
    assert [(s, p) for s, p, _ in leaks({"wire": b"\0\1" + body})] == [("wire", "hidden")]
    assert list(leaks({"wire": body[: len(WORD) // 2]})) == []


def test_a_log_holds_names_of_applications_and_no_more() -> None:
    assert list(leaks({"log": MARKS["application"].encode()})) == []
    assert list(leaks({"wire": MARKS["application"].encode()}))
    assert list(leaks({"log": MARKS["statement"].encode()}))


@pytest.mark.parametrize(
    "told",
    [
        Transcript(Step("ask", "SELECT 1"), rows=((WORD,),)),
        Transcript(Step("ask", "SELECT 1"), notes=(f"a note of {WORD}",)),
        Transcript(Step("ask", "SELECT 1"), error=Failure("DP104", f"Known: {WORD}")),
        Transcript(Step("explain", "SELECT 1"), text=WORD),
    ],
)
def test_a_transcript_that_holds_a_mark_is_noticed(told: Transcript) -> None:
    run = Run(canaries.marked_shop(), (told,))
    assert Canaries().judge(case_of("http", run, run)) is not None
