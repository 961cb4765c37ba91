"""Nothing of a row is found in what leaves the process or reaches the disk, debug log included.

Every private cell holds a text or a number that is recognised wherever it stands; the same search
does find both once they are released or logged.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import tempfile
import traceback
from pathlib import Path

import duckdb
import pytest
from endpoint import PASSWORD, ROLE, generous
from support.datasets import folder, policy_text
from support.hostile import HOSTILE
from support.services import noon
from talk import Client, FixedHouse, bind, describe, execute, parse, query
from test_http import Caller

from dpsql.cli import main
from dpsql.diagnostics.refusal import EngineFailed, Error
from dpsql.engines.duckdb import DuckDB
from dpsql.release import noise as noise_of
from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.house import ServiceHouse
from dpsql.serve.http.app import Face
from dpsql.service import Service

WORD, NUMBER, DAY = "zanzibar7391", 73917391, "2024-07-31"
SECRETS = (WORD.encode(), str(NUMBER).encode(), WORD.upper().encode())
ASKED = [h.sql for h in HOSTILE if h.kind in ("oracles", "targets", "stages", "groups", "joins")]


@pytest.fixture(scope="module")
def place() -> Path:
    """A shop of three people, whose every cell is a secret."""
    here = Path(tempfile.mkdtemp(dir=folder(), prefix="secrets-"))
    with duckdb.connect(str(here / "shop.duckdb")) as connection:
        connection.execute(f"""
            CREATE TABLE countries (country VARCHAR, continent VARCHAR, population BIGINT);
            INSERT INTO countries VALUES ('at', 'europe', 9);
            CREATE TABLE customers AS SELECT {NUMBER} + i AS customer_id, '{WORD}' AS email,
              '{WORD}' AS country, {NUMBER} AS age, '{WORD}' AS city FROM range(3) AS r(i);
            CREATE TABLE orders AS SELECT customer_id, {NUMBER}::DOUBLE AS amount,
              DATE '{DAY}' AS placed, '{WORD}' AS channel FROM customers, range(9);
            CREATE TABLE visits AS SELECT customer_id, TIMESTAMP '{DAY}' AS started,
              {NUMBER} AS seconds, '{WORD}' AS page FROM customers, range(9);
        """)
    text = generous(policy_text("shop")) + "  boss: {owner: true}\n"
    (here / "policy.yaml").write_text(text)
    return here


def found(*places: bytes) -> list[bytes]:
    """The secrets that stand in some bytes, as text in any of the usual forms."""
    return [s for data in places for s in SECRETS if s in data or s in data.replace(b"\0", b"")]


def on_disk(place: Path) -> bytes:
    """All that was written beside the data."""
    files = [p for p in place.rglob("*") if p.is_file() and p.name != "shop.duckdb"]
    return b"\n".join(p.read_bytes() for p in files)


def test_nothing_private_leaves_or_is_written(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
            for sql in ASKED:
                try:
                    reply = session.execute(sql)
                    seen += [repr(reply), str(reply.table.to_pydict()), session.explain(sql)]
                except Error as error:
                    seen += [str(error), repr(error), "".join(traceback.format_exception(error))]
            seen += [
                repr(v) for v in (service, session, service.tools, service.policy, service.plans)
            ]
            seen.append(_talked(service))
            seen += _by_http(service)
        code = main(
            ["query", "--policy", str(place / "policy.yaml"), "--role", "analyst", ASKED[0]]
        )
        assert code in (0, 3, 4)
        batch = place / "batch.sql"
        batch.write_text(";\n".join(sql for sql in ASKED[:40] if ";" not in sql))
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
    assert not found(*(t.encode("utf-8", "surrogatepass") for t in texts))
    assert not found(on_disk(place)), "the ledger, temporary files, the policy"


def _by_http(service: Service) -> list[str]:
    """What HTTP says: answers, plans, budgets, and what operators watch."""
    made = [users.with_token(name, role) for name, role in (("robot", ROLE), ("boss", "boss"))]
    users.write(service.policy.front.users, [user for user, _ in made])
    house = ServiceHouse(service, role_catalog)
    app = Face(lambda: house.worlds).app()
    robot, boss = (Caller(app, token) for _, token in made)
    said = [robot.post("/v1/query", json={"sql": sql}) for sql in ASKED[:40] if sql.isascii()]
    said += [robot.post("/v1/explain", json={"sql": sql}) for sql in ASKED[:10]]
    said += [robot.get("/v1/budget"), boss.get("/metrics")]
    assert said[-1].status_code == 200
    return [f"{one.headers} {one.text}" for one in said]


FAULTY: dict[str, tuple[object, str]] = {
    "the engine runs": (DuckDB, "_relation"),
    "exact rows are opened": (noise_of, "integers"),
    "a value is chosen": (noise_of, "chosen"),
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


def _talked(service: Service) -> str:
    """What the wire says, of answers, errors and notices."""
    client = Client(FixedHouse(ServiceHouse(service, role_catalog)))
    client.login(ROLE, PASSWORD)
    for sql in ASKED[:60]:
        if sql.isascii():
            client.send(query(sql))
    client.send(parse("", ASKED[0]) + bind("", "") + describe("P", "") + execute(""))
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
