"""The machine: conversations give the same answers however their bytes arrive, and none breaks it."""

from __future__ import annotations

import base64
import random  # noqa: TID251 (where bytes are cut needs no good randomness)
import re
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from mistakes import HOSTILE, LONGEST, hostile, luck_of, misspelt
from talk import (
    SYNC,
    Client,
    FixedHouse,
    bind,
    describe,
    errors,
    execute,
    kinds,
    message,
    messages,
    parse,
    query,
    startup,
)  # fmt: skip

from dpsql.serve import users
from dpsql.serve.pgwire.scram import Verifier
from dpsql.serve.salts import looks
from dpsql.sql.parse import LONGEST_TEXT

BY_COUNTRY = "SELECT country, count(*) FROM customers GROUP BY 1 ORDER BY 1"
CONVERSATIONS = {
    "simple": query("SELECT 1") + query("") + query("SELECT 'a', 2; SHOW timezone; nonsense;")
    + query(BY_COUNTRY),
    "extended": parse("s", "SELECT count(*) FROM customers WHERE age > $1", 23) + describe("S", "s")
    + bind("", "s", b"40", code=1) + describe("P", "") + execute("") + SYNC
    + bind("p", "s", b"41") + execute("p", 1) + execute("p", 1) + execute("p") + SYNC
    + message("C", b"Ss\0") + SYNC,
    "suspended": query("BEGIN") + parse("", BY_COUNTRY) + bind("c", "") + execute("c", 4)
    + execute("c", 4) + execute("c", 4) + execute("c", 4) + SYNC + query("COMMIT"),
    "errors": parse("", "SELECT count(*) FROM nowhere") + bind("", "") + describe("P", "")
    + execute("") + SYNC + query("BEGIN; SELECT nope FROM customers") + query("SELECT 1")
    + query("SAVEPOINT a") + query("ROLLBACK"),
    "cursors": query("BEGIN; DECLARE c SCROLL CURSOR FOR " + BY_COUNTRY) + query("FETCH 3 FROM c")
    + query("FETCH BACKWARD 1 FROM c; FETCH LAST c; MOVE ABSOLUTE 2 IN c; FETCH RELATIVE 1 c")
    + query("CLOSE c; FETCH c") + query("END"),
    "copy": query(f"COPY ({BY_COUNTRY}) TO STDOUT CSV HEADER") + query("COPY orders FROM STDIN")
    + message("d", b"1,2\n") + message("c") + query("SELECT 2"),
    "settings": query("SET application_name = 'x'; SET dpsql.epsilon = 0.05; SHOW ALL")
    + query("RESET ALL; DISCARD ALL; SET search_path TO a, \"B\"; SHOW search_path")
    + query("SET client_encoding = 'LATIN1'") + query("SET TIME ZONE 'UTC'; SHOW TIME ZONE"),
    "catalog": query("SELECT relname FROM pg_catalog.pg_class WHERE relkind = 'r' AND oid > 16384")
    + query("SELECT a.x FROM pg_class a JOIN orders b ON true"),
}  # fmt: skip


def _talk(shop: Endpoint, data: Iterable[bytes]) -> bytes:
    client = Client(FixedHouse(shop.house))
    assert kinds(client.login(ROLE, PASSWORD)).endswith("KZ")
    client.send(query("SET dpsql.notices = off"))
    start = len(client.received)
    for piece in data:
        client.send(piece)
    return client.received[start:]


def _cut(data: bytes, seed: int) -> Iterable[bytes]:
    luck = random.Random(seed)
    at = 0
    while at < len(data):
        size = luck.choice((1, 2, 3, 7, 30, 200))
        yield data[at : at + size]
        at += size


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_how_bytes_arrive_changes_nothing(shop: Endpoint, name: str) -> None:
    data = CONVERSATIONS[name]
    whole = _talk(shop, [data])
    assert whole == _talk(shop, [data])
    assert whole == _talk(shop, [data[i : i + 1] for i in range(len(data))])
    for seed in range(5):
        assert whole == _talk(shop, _cut(data, seed))


@pytest.mark.parametrize(
    ("name", "expected", "sqlstates"),
    [
        ("simple", "TDCZIZTDCTDCEZ" + "T" + "D" * 9 + "CZ", ["42601"]),
        ("extended", "1tT2TDCZ2DsCC" + "Z3Z", []),
        ("suspended", "CZ12" + "DDDDs" + "DDDDs" + "DC" + "C" + "Z" + "CZ", []),
        ("errors", "12EZ" + "CEZ" + "EZ" + "EZ" + "CZ", ["42P01", "42703", "25P02", "25P02"]),
        ("copy", "H" + "d" * 10 + "cCZ" + "EZ" + "TDCZ", ["42501"]),
        ("catalog", "TDDDDCZEZ", ["0A000"]),
    ],
)
def test_conversations_go_as_with_postgres(
    shop: Endpoint, name: str, expected: str, sqlstates: list[str]
) -> None:
    said = _talk(shop, [CONVERSATIONS[name]])
    assert kinds(said) == expected
    assert errors(said) == sqlstates


def test_transaction_states_are_reported(shop: Endpoint) -> None:
    data = query("BEGIN") + query("x y") + query("COMMIT") + query("BEGIN; COMMIT AND CHAIN")
    states = [body for kind, body in messages(_talk(shop, [data])) if kind == "Z"]
    assert states == [b"T", b"E", b"I", b"T"]


def _sent(client: Client, part: bytes, luck: random.Random) -> bool:
    """Send a message with mistakes in it; whether its frame may be wrong too."""
    kind, chance = chr(part[0]), luck.random()
    if chance < 0.55:  # other text in a sound message
        client.send(message(kind, misspelt(part[5:], luck)))
    elif chance < 0.85:  # any bytes in a sound frame
        client.send(message(kind, hostile(part[5:] or b"x", luck)))
    else:
        client.send(hostile(part, luck))
        client.send(SYNC * 3)
        return luck.random() < 0.5
    client.send(SYNC if luck.random() < 0.3 else b"")
    return False


WORKERS = 4


def _memory() -> int:
    """Bytes that this process holds; 0 where the system does not tell."""
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * 4096 if told.exists() else 0


@pytest.mark.no_cover  # the conversations above run the same lines
@pytest.mark.parametrize("seed", range(WORKERS))
def test_hostile_bytes_never_break_it(
    shop: Endpoint, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Any bytes give messages, errors or the end: no exception, defect, endless loop or leak."""
    held = 0
    luck = luck_of(seed)
    whole = [part for name, part in CONVERSATIONS.items() if name != "catalog"]
    count = 0
    while count < HOSTILE // WORKERS:
        held = held or (_memory() if count > HOSTILE // WORKERS // 4 else 0)
        client = Client(FixedHouse(shop.house))
        client.login(ROLE, PASSWORD)
        for _ in range(200):
            before = len(client.received)
            begun = time.thread_time()
            broken = _sent(client, _one(luck, whole), luck)
            assert time.thread_time() - begun < LONGEST
            count += 1
            kinds(client.received[before:])  # what it says is well-formed
            if client.closed or broken:
                break
    assert _memory() - held < 200 << 20
    assert "defect" not in caplog.text
    assert not [r for r in caplog.records if r.name == "dpsql.operator"]


_PARTS: dict[int, list[bytes]] = {}


def _one(luck: random.Random, whole: list[bytes]) -> bytes:
    data = luck.choice(whole)
    parts = _PARTS.setdefault(hash(data), _split(data))
    return luck.choice(parts)


def _split(data: bytes) -> list[bytes]:
    return [
        bytes([ord(kind)]) + struct.pack("!i", len(body) + 4) + body
        for kind, body in messages(data)
    ]


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (struct.pack("!i", 2**30), "08P01"),
        (struct.pack("!ii", 8, 2 << 16), "0A000"),
        (struct.pack("!ii", 9, 3 << 16) + b"\1", "08P01"),
        (struct.pack("!ii", 9, 3 << 16) + b"\0", "28000"),
        (startup(ROLE, replication="true"), "0A000"),
        (startup(ROLE) + message("Q", b"SELECT 1\0"), "08P01"),
        (startup(ROLE) + message("p", b"SCRAM-SHA-1\0\0\0\0\0"), "08P01"),
        (startup(ROLE) + message("p", b"SCRAM-SHA-256\0\xff\xff"), "08P01"),
    ],
)
def test_a_bad_beginning_ends_the_connection(shop: Endpoint, data: bytes, state: str) -> None:
    client = Client(FixedHouse(shop.house))
    client.send(data)
    assert client.closed
    assert errors(client.received[client.received.index(b"E") :]) == [state]


def _refusal(shop: Endpoint, role: str, password: str) -> list[tuple[str, bytes]]:
    """All that is said in a log-in which fails, but for the name that was given and the salt."""
    client = Client(FixedHouse(shop.house))
    client.login(role, password)
    assert client.closed
    assert errors(client.received) == ["28P01"]
    given = f'"{role}"'.encode()
    return [
        (kind, _SALT.sub(_without_salt, body.replace(given, b'"name"')))
        for kind, body in messages(client.received)
    ]


_SALT = re.compile(rb",s=([A-Za-z0-9+/=]+),")


def _without_salt(found: re.Match[bytes]) -> bytes:
    return b",s=%d bytes," % len(base64.b64decode(found[1], validate=True))


@pytest.mark.parametrize(
    ("role", "password"),
    [(ROLE, ""), ("pure", "wrong"), ("pure", ""), ("nobody", PASSWORD), ("somebody else", "wrong")],
)
def test_wrong_passwords_look_alike(shop: Endpoint, role: str, password: str) -> None:
    """Every message is the same, whether the role is there, has a password, or has another one.

    It catches a refusal that says more of a role than that the password was wrong, a number of
    iterations or a length of the salt that only known roles have, and an exchange cut short.
    """
    expected = _refusal(shop, ROLE, "wrong")
    assert [kind for kind, _ in expected] == ["R", "R", "E"]
    assert _refusal(shop, role, password) == expected


def test_an_unknown_user_looks_like_some_user(
    shop: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users have different numbers of iterations: an unknown name always has the same one of these."""
    known = [users.with_password(f"u{i}", ROLE, "x") for i in range(2)]
    both = {u.name: u for u in (*known, users.User("old", ROLE, Verifier.of("x", b"s" * 16)))}
    world = SimpleNamespace(users=both, looks=looks(u.verifier for u in both.values()))
    monkeypatch.setattr(shop.house, "snapshot", world)
    counts = [shop.house.verifier(f"nobody{i}")[0].iterations for i in range(200)]
    assert set(counts) == {4096, users.MORE_ITERATIONS}
    assert 80 < counts.count(users.MORE_ITERATIONS) < 190
    assert counts == [shop.house.verifier(f"nobody{i}")[0].iterations for i in range(200)]


@pytest.mark.parametrize(
    "command", ["PREPARE q AS SELECT 1", "DECLARE q CURSOR FOR SELECT 1", "SET dpsql.epsilon = 0.1"]
)
def test_a_command_that_is_too_long_is_not_carried_out_in_part(
    shop: Endpoint, command: str
) -> None:
    """Each prefix of the text is a command by itself, which would do something else."""
    client = Client(FixedHouse(shop.house))
    client.login(ROLE, PASSWORD)
    client.send(query("BEGIN"))
    assert errors(client.send(query(command))) == []
    client.send(query("ROLLBACK; BEGIN; DEALLOCATE ALL"))
    assert errors(client.send(query(command + " + 1" * (LONGEST_TEXT // 4)))) == ["54000"]


def test_newer_versions_are_negotiated(shop: Endpoint) -> None:
    for code, told in ((3 << 16 | 2, False), (3 << 16 | 9, True)):
        client = Client(FixedHouse(shop.house))
        first = startup(ROLE)
        said = client.send(first[:4] + struct.pack("!i", code) + first[8:])
        assert ("v" in kinds(said)) is told
    client = Client(FixedHouse(shop.house))
    assert "v" in kinds(client.send(startup(ROLE, **{"_pq_.fancy": "1"})))
    assert client.send(struct.pack("!ii", 8, 80877103)) == b""


def test_encryption_is_declined_where_there_is_none(shop: Endpoint) -> None:
    client = Client(FixedHouse(shop.house))
    assert client.send(_GSS) == b"N"
    assert client.send(_TLS) == b"N"
    assert kinds(client.login(ROLE, PASSWORD)).endswith("Z")


_TLS, _GSS = struct.pack("!ii", 8, 80877103), struct.pack("!ii", 8, 80877104)


@pytest.mark.parametrize(
    "asked",
    [(_TLS, _TLS), (_GSS, _GSS), (_TLS, _GSS, _TLS), (_GSS, _TLS, _GSS), (_TLS,) * 1000],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_each_encryption_is_asked_for_once(
    shop: Endpoint, asked: tuple[bytes, ...], at_once: bool
) -> None:
    """Whoever asks again gets what PostgreSQL answers, and the connection ends."""
    client = Client(FixedHouse(shop.house))
    for data in (b"".join(asked),) if at_once else asked:
        client.send(data)
    said = client.received
    declined = said[: said.index(b"E")]
    assert declined == b"N" * len({asked[0], asked[1]})
    assert errors(said[len(declined) :]) == ["0A000"]
    assert b"unsupported frontend protocol 1234.56" in said
    assert client.closed


def test_no_encryption_is_asked_for_within_tls(shop: Endpoint) -> None:
    for again in (_TLS, _GSS):
        house = FixedHouse(shop.house)
        house.encrypts, house.binding = True, b"\0" * 32
        client = Client(house)
        assert client.send(_TLS) == b"S"
        client.machine.encrypted()
        assert errors(client.send(again)) == ["0A000"]
        assert client.closed
