"""What a client sends is not sent back: every error over the wire quotes a few words of it."""

from __future__ import annotations

import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from talk import (
    SYNC,
    Client,
    FixedHouse,
    bind,
    describe,
    execute,
    fields,
    message,
    messages,
    parse,
    query,
    startup,
)

LONG = " ".join(f"word{i}" for i in range(9_000))
SHORT = LONG[:8_000]
"""Before a log-in a message has 10,000 bytes at most."""
QUOTED = 200
TOLD = 8_000


def _check(said: bytes) -> None:
    """Each part of each error and notice is short, and repeats no long piece."""
    found = [
        part for kind, body in messages(said) if kind in "EN" for part in fields(body).values()
    ]
    assert found
    for part in found:
        assert len(part) < TOLD
        pieces = (part[at : at + QUOTED + 1] for at in range(len(part) - QUOTED))
        assert not any(piece in LONG for piece in pieces), part[:1_000]


@pytest.mark.parametrize(
    "data",
    [
        startup(SHORT) + message("p", b"x"),
        startup(ROLE, replication=SHORT),
        startup(ROLE) + message("p", SHORT.encode() + b"\0\0\0\0\0"),
    ],
)
def test_strangers_are_not_repeated(shop: Endpoint, data: bytes) -> None:
    client = Client(FixedHouse(shop.house))
    client.send(data)
    _check(client.received[client.received.index(b"E") :])


def test_a_wrong_user_is_not_repeated(shop: Endpoint) -> None:
    _check(Client(FixedHouse(shop.house)).login(SHORT, PASSWORD))


def test_options_are_not_repeated(shop: Endpoint) -> None:
    said = Client(FixedHouse(shop.house)).login(
        ROLE, PASSWORD, options=f"-c dpsql.epsilon={SHORT.replace(' ', '_')}"
    )
    _check(said)


@pytest.mark.parametrize(
    "data",
    [
        query(LONG),
        query(f"SET {LONG}"),
        query(f'SET "{LONG}" = 1'),
        query(f"SET dpsql.epsilon = '{LONG}'"),
        query(f'SHOW "{LONG}"'),
        query(f'EXECUTE "{LONG}"'),
        query(f'DEALLOCATE "{LONG}"'),
        query(f'CLOSE "{LONG}"'),
        query(f'BEGIN; ROLLBACK TO "{LONG}"'),
        query(f'SET ROLE "{LONG}"'),
        query(f'COPY "{LONG}" TO STDOUT'),
        query(f'SELECT "{LONG}" FROM orders'),
        query(f'SELECT * FROM "{LONG}"'),
        query(f'SELECT "{LONG}"(amount) FROM orders'),
        query(f"SELECT '{LONG}'::date"),
        query(f"SELECT CAST('{LONG}' AS integer)"),
        query(f"SELECT COUNT(*) FROM orders WHERE amount = '{LONG}'"),
        query(f'SELECT "{LONG}" FROM pg_class'),
        query(f"SELECT '{LONG}'::regclass"),
        query(f"SELECT has_table_privilege('{LONG}', 'SELECT')"),
        query(f"SELECT '{LONG}'::xml FROM pg_class"),
        bind("", LONG) + SYNC,
        execute(LONG) + SYNC,
        describe("S", LONG) + SYNC,
        parse("", "SELECT COUNT(*) FROM orders WHERE amount > $1") + bind("", "", LONG.encode()) + execute("") + SYNC,
        parse("", "SELECT COUNT(*) FROM orders WHERE placed > $1", 1082) + bind("", "", LONG.encode()) + execute("") + SYNC,
    ],
    ids=lambda data: data[:24].decode("latin-1"),
)  # fmt: skip
def test_statements_and_names_are_not_repeated(shop: Endpoint, data: bytes) -> None:
    client = Client(FixedHouse(shop.house))
    client.login(ROLE, PASSWORD)
    _check(client.send(data))
