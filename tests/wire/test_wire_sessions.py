"""What session commands do, said and refused as PostgreSQL does."""

from __future__ import annotations

import struct
from datetime import timedelta

import psycopg
import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from talk import (
    Client,
    FixedHouse,
    bind,
    describe,
    errors,
    execute,
    fields,
    kinds,
    message,
    messages,
)

from talk import SYNC, parse, query, startup  # isort: skip

BY_COUNTRY = "SELECT country, count(*) FROM customers GROUP BY 1 ORDER BY 1"


@pytest.fixture
def client(shop: Endpoint) -> Client:
    found = Client(FixedHouse(shop.house))
    found.login(ROLE, PASSWORD)
    found.send(query("SET dpsql.notices = off"))
    return found


def _tags(data: bytes) -> list[str]:
    return [body[:-1].decode() for kind, body in messages(data) if kind == "C"]


def _cells(data: bytes) -> list[bytes]:
    return [body[6:] for kind, body in messages(data) if kind == "D"]


@pytest.mark.parametrize(
    ("sql", "tags"),
    [
        ("BEGIN WORK; SAVEPOINT a; ROLLBACK TO SAVEPOINT a; RELEASE a; COMMIT",
         ["BEGIN", "SAVEPOINT", "ROLLBACK", "RELEASE", "COMMIT"]),
        ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE; ABORT", ["START TRANSACTION", "ROLLBACK"]),
        ("BEGIN; SET LOCAL application_name = 'x'; COMMIT; SHOW application_name", ["BEGIN", "SET", "COMMIT", "SHOW"]),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; SET TRANSACTION READ ONLY", ["SET", "SET"]),
        ("SET ROLE none; SET SESSION AUTHORIZATION default; RESET SESSION AUTHORIZATION", ["SET", "SET", "RESET"]),
        ("SET extra_float_digits TO -1; SET NAMES 'utf8'; SET x.y = default; RESET TIME ZONE", ["SET"] * 3 + ["RESET"]),
        ("LISTEN a; UNLISTEN *; DISCARD ALL; DISCARD PLANS", ["LISTEN", "UNLISTEN", "DISCARD ALL", "DISCARD PLANS"]),
        ("RESET ALL; RESET dpsql.epsilon; RESET application_name", ["RESET"] * 3),
        (f"DECLARE c CURSOR FOR {BY_COUNTRY}; MOVE 2 FROM c; FETCH c; CLOSE ALL",
         ["DECLARE CURSOR", "MOVE 2", "FETCH 1", "CLOSE CURSOR ALL"]),
        ("PREPARE p (int, text[]) AS SELECT $1 + 1, $2; EXECUTE p (-3, '{a}'); DEALLOCATE ALL",
         ["PREPARE", "SELECT 1", "DEALLOCATE ALL"]),
        ("EXPLAIN SELECT count(*) FROM orders", ["EXPLAIN"]),
        ("COPY countries TO STDOUT WITH CSV HEADER QUOTE '''' FORCE QUOTE *", ["COPY 9"]),
        ("COPY (SELECT E'a\\tb\\\\', NULL) TO STDOUT WITH (FORMAT text, NULL 'none', ENCODING 'utf8')", ["COPY 1"]),
        ("COPY (SELECT 'a,b', NULL, 'c\"') TO STDOUT (FORMAT csv, HEADER false, NULL '')", ["COPY 1"]),
        ("BEGIN; DECLARE n NO SCROLL CURSOR WITH HOLD FOR SELECT 1; COMMIT; FETCH ALL n; CLOSE n",
         ["BEGIN", "DECLARE CURSOR", "COMMIT", "FETCH 1", "CLOSE CURSOR"]),
        ("BEGIN; DECLARE b CURSOR FOR SELECT 1; FETCH ABSOLUTE -1 b; FETCH PRIOR b; FETCH 0 b; FETCH -1 b; ROLLBACK",
         ["BEGIN", "DECLARE CURSOR", "FETCH 1", "FETCH 0", "FETCH 0", "FETCH 0", "ROLLBACK"]),
        ("SELECT $$a;b$$, $t$c$t$, E'\\u00e4\\x41\\n''', U&'d' /* /* */ ; */ -- x", ["SELECT 1"]),
    ],
)  # fmt: skip
def test_commands(client: Client, sql: str, tags: list[str]) -> None:
    said = client.send(query(sql))
    assert errors(said) == []
    assert _tags(said) == tags


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SAVEPOINT a", "25P01"), ("RELEASE a", "25P01"), ("BEGIN; ROLLBACK TO nothing", "3B001"),
        ("BEGIN; DISCARD ALL", "25001"), ("DECLARE c CURSOR FOR SELECT 1", "25P01"),
        ("FETCH nothing", "34000"), ("CLOSE nothing", "34000"), ("EXECUTE nothing", "26000"),
        ("DEALLOCATE nothing", "26000"), ("PREPARE q AS SELECT $1; EXECUTE q", "42601"),
        ("PREPARE q AS SELECT 1; PREPARE q AS SELECT 2", "42P05"), ("SHOW nothing", "42704"),
        ("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT 1; FETCH c; FETCH PRIOR c", "55000"),
        ("BEGIN; DECLARE c CURSOR FOR SELECT 1; DECLARE c CURSOR FOR SELECT 1", "42P03"),
        ("SET ROLE pure", "42501"), ("SET dpsql.nothing = 1", "22023"), ("SET standard_conforming_strings = off", "22023"),
        ("SELECT 1; LOCK orders", "42501"), ("SELECT count(*) FROM orders, pg_class", "0A000"),
    ],
)  # fmt: skip
def test_commands_that_are_refused(client: Client, sql: str, state: str) -> None:
    said = client.send(query(sql))
    assert errors(said) == [state]
    assert kinds(said).endswith("Z")


@pytest.mark.parametrize(
    ("sql", "state"),
    [("BEGIN; BEGIN", "25001"), ("COMMIT", "25P01"), ("SET LOCAL application_name = 'x'", "25P01")],
)
def test_warnings(client: Client, sql: str, state: str) -> None:
    said = [fields(body) for kind, body in messages(client.send(query(sql))) if kind == "N"]
    assert [(w["C"], w["S"]) for w in said] == [(state, "WARNING")]


def test_local_settings_end_with_their_transaction(client: Client) -> None:
    client.send(query("BEGIN; SET LOCAL application_name = 'x'"))
    assert _cells(client.send(query("SHOW application_name"))) == [b"x"]
    client.send(query("COMMIT"))
    assert _cells(client.send(query("SHOW application_name"))) == [b""]


def test_utility_statements_in_the_extended_protocol(client: Client) -> None:
    def talk(sql: str) -> bytes:
        return client.send(
            parse("", sql)
            + describe("S", "")
            + bind("", "")
            + describe("P", "")
            + execute("")
            + SYNC
        )

    assert kinds(talk("SHOW timezone")) == "1tT2TDCZ"
    assert kinds(talk("SHOW dpsql.budget"))[:5] == "1tT2T"
    assert kinds(talk("BEGIN")) == "1tn2nCZ"
    talk(f"DECLARE c CURSOR FOR {BY_COUNTRY}")
    assert kinds(talk("FETCH 2 FROM c")) == "1tT2TDDCZ"
    assert kinds(talk("")) == "1tn2nIZ"
    client.send(query("PREPARE p AS SELECT 1"))
    assert kinds(talk("EXECUTE p")) == "1tT2TDCZ"
    assert kinds(talk("ROLLBACK")) == "1tn2nCZ"
    twice = parse("", "BEGIN") + bind("", "") + execute("") + execute("") + SYNC
    assert errors(client.send(twice)) == ["55000"]
    client.send(query("ROLLBACK"))
    assert errors(client.send(parse("", "SELECT 1; SELECT 2") + SYNC)) == ["42601"]
    assert errors(client.send(parse("", "SELECT $1") + bind("", "") + SYNC)) == ["08P01"]
    assert errors(client.send(bind("", "nothing") + SYNC)) == ["26000"]
    assert errors(client.send(execute("nothing") + SYNC)) == ["34000"]
    assert kinds(client.send(message("H") + message("C", b"Pnothing\0") + SYNC)) == "3Z"


def test_parameters_without_types_are_read_by_the_binder(client: Client) -> None:
    sql = "SELECT count(*) FROM orders WHERE amount > $1 AND placed > $2 LIMIT $3"
    said = client.send(
        parse("", sql) + bind("", "", b"10.5", b"2024-03-01", b"1") + execute("") + SYNC
    )
    assert kinds(said) == "12DCZ"
    described = client.send(parse("", sql) + describe("S", "") + SYNC)
    (oids,) = [struct.unpack("!H3I", body)[1:] for kind, body in messages(described) if kind == "t"]
    assert oids == (701, 1082, 20)
    assert errors(client.send(parse("", sql) + bind("", "", b"x", b"y", b"1") + execute("") + SYNC))


def test_a_large_answer_goes_in_parts(shop: Endpoint) -> None:
    """Several times what the socket's buffers hold."""
    sql = "SELECT x, 'some text that fills' AS t FROM generate_series(1, 200000) AS s(x)"
    with psycopg.connect(shop.dsn(sslmode="disable"), autocommit=True) as connection:
        rows = connection.cursor(binary=True).execute(sql).fetchall()
        assert len(rows) == 200_000
        assert rows[-1] == (200_000, "some text that fills")
        with connection.cursor().copy(f"COPY ({sql}) TO STDOUT") as copy:
            assert sum(bytes(part).count(b"\n") for part in copy) == 200_000


@pytest.mark.parametrize(
    "proof",
    [b"", b"c=biws,r=x,p=AAAA", b"c=biws,r=x", b"\xff\xff", b"c=!!,r=x,p=AAAA"],
)
def test_a_log_in_that_makes_no_sense_ends(shop: Endpoint, proof: bytes) -> None:
    client = Client(FixedHouse(shop.house))
    client.send(startup(ROLE))
    first = b"n,,n=,r=abc"
    client.send(message("p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
    client.send(message("p", proof))
    assert client.closed


@pytest.mark.parametrize(
    "first", [b"x", b"y,,n=,r=abc", b"p=tls-unique,,n=,r=abc", b"n,,n=,r=", b"\xff"]
)
def test_a_log_in_that_begins_badly_ends(shop: Endpoint, first: bytes) -> None:
    client = Client(FixedHouse(shop.house))
    client.send(startup(ROLE, options="-c dpsql.epsilon=x --application-name=a\\ b"))
    client.send(message("p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
    client.send(message("p", b"x"))
    assert client.closed


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({"options": "-c dpsql.epsilon=-5"}, "22023"), ({"options": "-c dpsql.epsilon=abc"}, "22023"),
        ({"options": "-c dpsql.nope=1"}, "22023"), ({"dpsql.epsilon": "x"}, "22023"),
        ({"client_encoding": "LATIN1"}, "22023"), ({"client_encoding": "BOGUS"}, "22023"),
        ({"options": "-c server_version=9"}, "55P02"), ({"options": "-c no-such!=1"}, "42704"),
        ({"options": "-c standard_conforming_strings=off"}, "22023"),
    ],
)  # fmt: skip
def test_options_that_are_not_taken_end_the_log_in(
    shop: Endpoint, options: dict[str, str], state: str
) -> None:
    client = Client(FixedHouse(shop.house))
    said = client.login(ROLE, PASSWORD, **options)
    assert errors(said) == [state]
    assert fields(next(body for kind, body in messages(said) if kind == "E"))["S"] == "FATAL"
    assert "Z" not in kinds(said)
    assert client.closed


def test_options_that_are_taken(shop: Endpoint) -> None:
    client = Client(FixedHouse(shop.house))
    said = client.login(ROLE, PASSWORD, options="-c nope.x=1 --geqo=off", client_encoding="'utf-8'")
    assert kinds(said).endswith("Z")
    assert _cells(client.send(query("SHOW geqo; SHOW nope.x"))) == [b"off", b"1"]


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize(
    "sets",
    [
        "SET LOCAL dpsql.epsilon = 0.05",
        "SELECT set_config('dpsql.epsilon', '0.05', true)",
        "SET LOCAL dpsql.epsilon = 0.07; SET LOCAL dpsql.epsilon = 0.05",
    ],
)
def test_local_settings_of_dpsql_end_with_their_transaction(
    client: Client, sets: str, ends: str
) -> None:
    client.send(query("SET dpsql.epsilon = 0.025") + query(f"BEGIN; {sets}"))
    assert _cells(client.send(query("SHOW dpsql.epsilon"))) == [b"1/20"]
    client.send(query(ends))
    assert _cells(client.send(query("SHOW dpsql.epsilon"))) == [b"1/40"]


def test_a_later_set_of_dpsql_outlasts_a_local_one(client: Client) -> None:
    client.send(query("BEGIN; SET LOCAL dpsql.session = 'a'; SET LOCAL dpsql.fresh = on"))
    client.send(query("SET dpsql.session = 'b'; COMMIT"))
    assert _cells(client.send(query("SHOW dpsql.session; SHOW dpsql.fresh"))) == [b"b", b"False"]


def test_a_local_setting_of_dpsql_needs_a_transaction(client: Client) -> None:
    said = client.send(query("SET LOCAL dpsql.session = 'loc'"))
    warned = [fields(body) for kind, body in messages(said) if kind == "N"]
    assert [(w["C"], w["S"]) for w in warned] == [("25P01", "WARNING")]
    assert _cells(client.send(query("SHOW dpsql.session"))) == [b"default"]


@pytest.mark.parametrize(
    "options", [{"options": "-c dpsql.session=board"}, {"dpsql.session": "board"}]
)
def test_the_session_that_is_shown_is_charged(shop: Endpoint, options: dict[str, str]) -> None:
    client = Client(FixedHouse(shop.house))
    client.login(ROLE, PASSWORD, **options)
    assert _cells(client.send(query("SHOW dpsql.session"))) == [b"board"]
    assert b"board" in client.send(query("SHOW dpsql.budget"))


def test_the_dialect_of_a_connection(client: Client) -> None:
    half = query("SELECT 7 / 2 AS half FROM countries LIMIT 1")
    assert _cells(client.send(half))[0].endswith(b"3")
    assert errors(client.send(query("SET dpsql.dialect = 'bigquery'"))) == []
    said = client.send(query('SELECT 7 / 2 AS half, "it\'s" AS t FROM `countries` LIMIT 1'))
    assert errors(said) == []
    assert b"3.5" in _cells(said)[0]
    assert b"it's" in _cells(said)[0]
    assert b"bigquery" in _cells(client.send(query("SHOW dpsql.dialect")))[0]
    client.send(query("RESET dpsql.dialect"))
    assert _cells(client.send(half))[0].endswith(b"3")


def test_what_was_described_is_what_comes(client: Client) -> None:
    """Settings and roles change the columns: then a client that knows others is told before it pays."""
    client.send(parse("s", BY_COUNTRY) + describe("S", "s") + SYNC)
    twice = bind("", "s") + execute("") + SYNC
    assert "D" in kinds(client.send(twice))
    client.send(query("SET dpsql.epsilon = 0.05"))
    assert "D" in kinds(client.send(twice)), "the same columns"
    client.send(query("SET dpsql.intervals = on"))
    for _ in range(2):
        assert errors(client.send(twice)) == ["0A000"]
    client.send(query("RESET dpsql.intervals"))
    assert "D" in kinds(client.send(twice))
    client.send(query("PREPARE p AS SELECT 1"))
    assert "D" in kinds(client.send(bind("", "p") + execute("") + SYNC))


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT page, avg(seconds), 77002 FROM visits GROUP BY page", ()),
        ("SELECT count(*), 77002 FROM orders WHERE channel = $1 AND amount > $2", (b"web", b"3")),
        ("SELECT country, population, 77002 FROM countries WHERE country = $1", (b"fr",)),
        ("SELECT count(*), 77002 FROM orders WHERE 1 = 0", ()),
    ],
)
def test_describing_does_not_ask_the_engine(
    client: Client, shop: Endpoint, monkeypatch: pytest.MonkeyPatch, sql: str,
    values: tuple[bytes, ...],
) -> None:  # fmt: skip
    """Neither of a statement nor of a portal; running it does, so that the spy would have seen it."""
    engine, asked = shop.service.tools.engine, list[str]()
    for name in ("measure", "read_public"):
        whole = getattr(engine, name)
        monkeypatch.setattr(
            engine, name, lambda *a, _of=whole, _as=name: (asked.append(_as), _of(*a))[1]
        )
    client.send(query("SET dpsql.fresh = on"))  # nothing is recalled of what other tests asked
    before = shop.spent
    said = client.send(parse("s", sql) + describe("S", "s") + SYNC)
    said += client.send(bind("p", "s", *values) + describe("P", "p") + SYNC)
    assert kinds(said).count("T") == 2
    assert not asked
    assert shop.spent == before
    assert not errors(client.send(bind("p", "s", *values) + execute("p") + SYNC))
    assert asked


def test_a_portal_that_failed_is_not_asked_for_again(
    client: Client, shop: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever reads on after an error would be charged a second time for one execution."""
    client.send(query("BEGIN"))
    client.send(parse("", "SELECT count(*), 77001 FROM orders") + bind("p", "") + SYNC)
    client.send(query("SAVEPOINT a"))
    before = shop.spent
    with monkeypatch.context() as patch:
        patch.setattr(shop.service.tools.engine, "measure", lambda *_: 1 / 0)
        assert errors(client.send(execute("p") + SYNC))
    paid = shop.spent
    assert paid > before
    client.send(query("ROLLBACK TO a"))
    assert errors(client.send(execute("p") + SYNC)) == ["55000"]
    assert shop.spent == paid
    client.send(query("ROLLBACK"))


def test_what_names_the_time_is_not_remembered(
    client: Client, shop: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in words that only another dialect has."""
    clock = shop.service.clock
    client.send(query("SET dpsql.dialect = 'snowflake'"))
    asked = [
        query('SELECT COUNT(*) FROM "orders" WHERE "placed" < GETDATE()'),
        query('SELECT COUNT(*) FROM "orders" WHERE "placed" < CURRENT_DATE()'),
    ]
    for sql in asked:
        monkeypatch.setattr(shop.service, "clock", clock)
        first = _cells(client.send(sql))
        assert _cells(client.send(sql)) == first
        monkeypatch.setattr(shop.service, "clock", lambda: clock() - timedelta(days=200))
        assert _cells(client.send(sql)) != first
