"""Nothing of a row is found in what leaves the process or reaches the disk, debug log included.

Every private cell holds a text or a number that is recognised wherever it stands; the same search
does find both once they are released or logged.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import sqlite3
import struct
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from callers import Caller
from endpoint import PASSWORD, ROLE, generous
from support.datasets import folder, policy_text
from support.hostile import HOSTILE
from support.services import noon
from talk import Client, FixedHouse, bind, describe, execute, parse, query

from dpsql.cli import main
from dpsql.diagnostics import refusal
from dpsql.diagnostics.refusal import EngineFailed, Error
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.release import noise as noise_of
from dpsql.reuse import encoding
from dpsql.reuse.encoding import from_bytes
from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.serve.reloads import read_again
from dpsql.service import Service

WORD, NUMBER, DAY = "zanzibar7391", 73917391, "1987-03-09"
"""The day is none that the policy lists: those are public keys of groups."""
ID, PEOPLE = 7_391_739_173_917_391, 3
_MOMENT = datetime.fromisoformat(DAY).replace(tzinfo=UTC)
_BINARY = (
    *(struct.pack(f"{order}q", ID + i) for order in "<>" for i in range(PEOPLE)),
    *(struct.pack(f"{order}d", float(n)) for order in "<>" for n in (NUMBER, ID)),
    *(struct.pack(f"{order}q", NUMBER) for order in "<>"),
    *(struct.pack(f"{order}q", int(_MOMENT.timestamp()) * 10**6) for order in "<>"),
)
SECRETS = (
    *(text.encode() for text in (WORD, WORD.upper(), str(NUMBER), DAY, DAY.replace("-", ""))),
    *(str(ID + i).encode() for i in range(PEOPLE)), *_BINARY,
)  # fmt: skip
"""As text, and as whole numbers, doubles and moments are written in eight bytes, in either order."""
ASKED = [h.sql for h in HOSTILE if h.kind in ("oracles", "targets", "stages", "groups", "joins")]


@pytest.fixture
def place() -> Path:
    """A shop of three people, whose every cell is a secret."""
    here = Path(tempfile.mkdtemp(dir=folder(), prefix="secrets-"))
    with duckdb.connect(str(here / "shop.duckdb")) as connection:
        connection.execute(f"""
            CREATE TABLE countries (country VARCHAR, continent VARCHAR, population BIGINT);
            INSERT INTO countries VALUES ('at', 'europe', 9);
            CREATE TABLE customers AS SELECT {ID} + i AS customer_id, '{WORD}' AS email,
              '{WORD}' AS country, {NUMBER} AS age, '{WORD}' AS city FROM range({PEOPLE}) AS r(i);
            CREATE TABLE orders AS SELECT customer_id, {NUMBER}::DOUBLE AS amount,
              DATE '{DAY}' AS placed, '{WORD}' AS channel FROM customers, range(9);
            CREATE TABLE visits AS SELECT customer_id, TIMESTAMP '{DAY}' AS started,
              {NUMBER} AS seconds, '{WORD}' AS page FROM customers, range(9);
        """)
    text = generous(policy_text("shop")) + "  boss: {owner: true}\n"
    (here / "policy.yaml").write_text(text)
    return here


def found(*places: bytes) -> list[bytes]:
    """The secrets that stand in some bytes, in any of the usual forms."""
    return [
        s
        for data in places
        for s in SECRETS
        if s in data or (s not in _BINARY and s in data.replace(b"\0", b""))
    ]


def on_disk(place: Path) -> bytes:
    """All that was written beside the data."""
    files = [p for p in place.rglob("*") if p.is_file() and p.name != "shop.duckdb"]
    return b"\n".join([*(p.read_bytes() for p in files), *unpacked(place)])


def unpacked(place: Path) -> Iterator[bytes]:
    """The releases of the ledger as their tables hold them: on the disk large ones are packed."""
    with closing(sqlite3.connect(place / "policy.ledger.db")) as ledger:
        for (body,) in ledger.execute("SELECT body FROM release").fetchall():
            for stored in from_bytes(body):
                yield str(stored.table.to_pydict()).encode()
                for column in stored.table.columns:
                    for chunk in column.chunks:
                        yield from (bytes(b) for b in chunk.buffers() if b is not None)


def test_nothing_private_leaves_or_is_written(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = left(place, ASKED, monkeypatch, capsys)
    assert not found(*said)
    assert len(list(unpacked(place))) > 20


FEW = [
    "SELECT channel, COUNT(*) FROM orders GROUP BY channel",
    "SELECT email FROM customers",
    "SELECT COUNT(*) FROM customers WHERE CAST(email AS INTEGER) > 1",
]


def _to_ledger(patch: pytest.MonkeyPatch) -> None:
    """An exact number in a stored table, packed."""
    real = encoding._stream

    def leaking(table: pa.Table) -> pa.Buffer:
        patch.setattr(encoding, "LARGE", 0)
        return real(table.append_column("x", pa.array([ID] * table.num_rows, pa.int64())))

    patch.setattr(encoding, "_stream", leaking)


def _before(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Something that is done whenever the engine is asked."""
    real = DuckDB.measure

    def measure(self: DuckDB, *args: Any) -> Any:
        act()
        return real(self, *args)

    patch.setattr(DuckDB, "measure", measure)


def _to_file(patch: pytest.MonkeyPatch) -> None:
    _before(
        patch, lambda: Path(tempfile.mkstemp()[1]).write_bytes(struct.pack(">d", float(NUMBER)))
    )


def _to_log(patch: pytest.MonkeyPatch) -> None:
    _before(patch, lambda: logging.getLogger("dpsql.operator").debug("on %s", DAY))


def _to_http(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(refusal, "refusal_text", lambda refused: f"{refused.code} {ID + 2}")


@pytest.mark.parametrize("plant", [_to_ledger, _to_file, _to_log, _to_http])
def test_a_leak_that_is_planted_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], place: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    plant(monkeypatch)
    assert found(*left(place, FEW, monkeypatch, capsys))


def test_where_nothing_is_planted_nothing_is_found(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not found(*left(place, FEW, monkeypatch, capsys))


def left(
    place: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[bytes]:  # fmt: skip
    """All that leaves the process or reaches the disk when these are asked on every face."""
    scratch = place / "tmp"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    seen: list[str] = []
    try:
        with Service.open(place / "policy.yaml", clock=noon) as service:
            session = service.session("analyst")
            for sql in asked:
                try:
                    reply = session.execute(sql)
                    seen += [repr(reply), str(reply.table.to_pydict()), session.explain(sql)]
                except Error as error:
                    seen += [str(error), repr(error), "".join(traceback.format_exception(error))]
            seen += [
                repr(v) for v in (service, session, service.tools, service.policy, service.plans)
            ]
            seen.append(_talked(service, asked))
            seen += _by_http(service, asked)
        code = main(
            ["query", "--policy", str(place / "policy.yaml"), "--role", "analyst", asked[0]]
        )
        assert code in (0, 3, 4)
        batch = place / "batch.sql"
        batch.write_text(";\n".join(sql for sql in asked[:40] if ";" not in sql))
        policy = ["--policy", str(place / "policy.yaml")]
        for command in (
            ["audit", "--format", "table"], ["audit", "--format", "json"],
            ["audit", "--format", "csv"], ["budget", "--compare", "--role", "analyst"],
            ["explain", "--role", "analyst", "--batch", str(batch)],
        ):  # fmt: skip
            assert main([command[0], *policy, *command[1:]]) in (0, 3, 4)
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(logging.WARNING)
    said = capsys.readouterr()
    texts = [*seen, log.getvalue(), said.out, said.err]
    return [*(t.encode("utf-8", "surrogatepass") for t in texts), on_disk(place)]


def _by_http(service: Service, asked: list[str]) -> list[str]:
    """What HTTP says: answers, plans, budgets, and what operators watch."""
    made = [users.with_token(name, role) for name, role in (("robot", ROLE), ("boss", "boss"))]
    users.write(service.policy.front.users, [user for user, _ in made])
    house = ServiceEndpoint(service, role_catalog)
    app = Face(lambda: house.snapshots).app()
    robot, boss = (Caller(app, token) for _, token in made)
    said = [robot.post("/v1/query", json={"sql": sql}) for sql in asked[:40] if sql.isascii()]
    said += [robot.post("/v1/explain", json={"sql": sql}) for sql in asked[:10]]
    said += [robot.get("/v1/budget"), boss.get("/metrics")]
    assert said[-1].status_code == 200
    return [f"{one.headers} {one.text}" for one in said]


def test_no_client_is_told_a_folder(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither that of the policy nor that of the data, whatever is asked, also after a reload that failed."""
    caplog.set_level("INFO", "dpsql.operator")
    with Service.open(place / "policy.yaml", clock=noon) as service:
        said = [_talked(service, ASKED), *_by_http(service, ASKED)]
        house = ServiceEndpoint(service, role_catalog)
        (place / "policy.yaml").write_text("units: [")
        assert read_again([house])[0].problems
        said += [_talked(service, ASKED[:10]), *_by_http(service, ASKED[:10])]
        app = Caller(Face(lambda: house.snapshots).app())
        said += [app.get(path).text for path in ("/healthz", "/readyz", "/openapi.json")]
    assert not any(place.name in text for text in said)
    assert f"{place}/policy.yaml" in caplog.text, "the log says where"


FAULTY: dict[str, tuple[object, str]] = {
    "the engine runs": (DuckDB, "_relation"),
    "exact rows are opened": (noise_of, "integers"),
    "a value is chosen": (noise_of, "choose_values"),
}
"""Where a failure could quote a row."""


@pytest.mark.parametrize("stage", FAULTY)
def test_a_failure_that_quotes_a_row_is_not_passed_on(
    stage: str, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise ValueError(f"cannot handle {WORD} {NUMBER}")

    caplog.set_level(logging.DEBUG)
    with Service.open(place / "policy.yaml", clock=noon) as service:
        session = service.session("analyst")
        session.execute("SET dpsql.fresh = on")
        monkeypatch.setattr(*FAULTY[stage], failing)
        with pytest.raises(EngineFailed) as caught:
            session.execute("SELECT channel, COUNT(*), MEDIAN(amount) FROM orders GROUP BY channel")
    error = caught.value
    texts = [str(error), repr(error), "".join(traceback.format_exception(error)), caplog.text]
    assert not found(*(text.encode() for text in texts))
    assert error.__context__ is None, "what an engine said hangs on to nothing"


def _talked(service: Service, asked: list[str]) -> str:
    """What the wire says, of answers, errors and notices."""
    client = Client(FixedHouse(ServiceEndpoint(service, role_catalog)))
    client.login(ROLE, PASSWORD)
    for sql in asked[:60]:
        if sql.isascii():
            client.send(query(sql))
    client.send(parse("", asked[0]) + bind("", "") + describe("P", "") + execute(""))
    return client.received.decode("latin-1")


def test_the_search_finds_what_is_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Controls: the data itself, and a log that keeps an engine's words."""
    assert found((place / "shop.duckdb").read_bytes())
    with duckdb.connect(str(place / "shop.duckdb"), read_only=True) as connection:
        with pytest.raises(duckdb.Error) as caught:
            connection.execute("SELECT CAST(email AS INTEGER) FROM customers").fetchall()
        assert found(str(caught.value).encode())
    assert found(pickle.dumps([NUMBER, str(NUMBER)]))
    assert not found(os.environ.get("PATH", "").encode())
