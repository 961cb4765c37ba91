"""A comment sets accuracy or cost for one statement, over this endpoint as elsewhere."""

from __future__ import annotations

import itertools

import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from talk import (
    SYNC,
    Client,
    FixedHouse,
    bind,
    describe,
    errors,
    execute,
    fields,
    messages,
    parse,
    query,
)  # fmt: skip

from dpsql.serve.pgwire import script

CHEAP = "/* dpsql.epsilon = 0.01 */"
_NUMBERS = itertools.count(88_000)


def _count() -> str:
    """A question that nobody has asked yet."""
    return f"SELECT count(*) FROM customers WHERE age <> {next(_NUMBERS)}"


@pytest.fixture
def client(shop: Endpoint) -> Client:
    found = Client(FixedHouse(shop.house))
    found.login(ROLE, PASSWORD)
    return found


def _simple(client: Client, sql: str) -> bytes:
    return client.send(query(sql))


def _extended(client: Client, sql: str) -> bytes:
    asked = parse("", sql) + describe("S", "") + bind("", "") + describe("P", "") + execute("")
    return client.send(asked + SYNC)


FACES = pytest.mark.parametrize("face", [_simple, _extended])


@FACES
@pytest.mark.parametrize(
    "form",
    [
        "{h} {q}",
        "\n{h}\n-- and\n{q}",
        "/* page 7 */ -- of 9\n {h} {q}",
        "/* dpsql.delta = 0 */ {h} {q}",
        "COPY ({h} {q}) TO STDOUT",
        "{h} COPY ({q}) TO STDOUT",
    ],
)
def test_it_sets_the_price(client: Client, shop: Endpoint, face: object, form: str) -> None:
    before = shop.spent
    said = face(client, form.format(h=CHEAP, q=_count()))  # type: ignore[operator]
    assert errors(said) == []
    assert shop.spent - before == pytest.approx(0.01)


@pytest.mark.parametrize(
    "form",
    [
        "SELECT 1; {h} {q}; SELECT 2",
        "SELECT 1; /* a;b */ ; {h} {q}",
        "BEGIN; DECLARE c CURSOR FOR {h} {q}; FETCH c; COMMIT",
        "BEGIN; {h} DECLARE c CURSOR FOR {q}; FETCH c; COMMIT",
        "PREPARE p AS {h} {q}; EXECUTE p",
        "{h} PREPARE p AS {q}; EXECUTE p",
    ],
)
def test_it_sets_the_price_in_a_script(client: Client, shop: Endpoint, form: str) -> None:
    before = shop.spent
    assert errors(_simple(client, form.format(h=CHEAP, q=_count()))) == []
    assert shop.spent - before == pytest.approx(0.01)


def test_it_is_for_one_statement(client: Client, shop: Endpoint) -> None:
    before = shop.spent
    assert errors(_simple(client, f"{CHEAP} {_count()}; {_count()}")) == []
    assert shop.spent - before == pytest.approx(0.11)


def test_it_is_explained(client: Client) -> None:
    for form in ("EXPLAIN {h} {q}", "{h} EXPLAIN {q}"):
        assert b"0.01" in _simple(client, form.format(h=CHEAP, q=_count()))


@FACES
@pytest.mark.parametrize(
    "wrong", ["dpsql.epsilon = abc", "dpsql.nope = 1", "dpsql.dialect = 'duckdb'"]
)
@pytest.mark.parametrize("form", ["/* {w} */ {q}", "EXPLAIN /* {w} */ {q}", "/* {w} */ SELECT 1"])
def test_a_wrong_one_is_refused(
    client: Client, shop: Endpoint, face: object, wrong: str, form: str
) -> None:
    before = shop.spent
    said = face(client, form.format(w=wrong, q=_count()))  # type: ignore[operator]
    assert errors(said) == ["22023"]
    assert b"DP401" in said
    assert shop.spent == before


@FACES
@pytest.mark.parametrize("sql", ["EXECUTE p", "FETCH c", "SHOW timezone", "SET x.y = 1"])
def test_where_it_would_say_nothing_it_is_refused(
    client: Client, shop: Endpoint, face: object, sql: str
) -> None:
    _simple(client, f"PREPARE p AS {_count()}; DECLARE c CURSOR WITH HOLD FOR {_count()}")
    before = shop.spent
    assert errors(face(client, f"{CHEAP} {sql}")) == ["22023"]  # type: ignore[operator]
    assert shop.spent == before


def test_errors_have_their_place(client: Client) -> None:
    sql = f"SELECT 1; /* one */ {CHEAP} SELECT nope FROM customers"
    (body,) = [body for kind, body in messages(_simple(client, sql)) if kind == "E"]
    assert sql[int(fields(body)["P"]) - 1 :].startswith("nope")


def test_a_comment_that_is_dropped_would_be_noticed(
    client: Client, shop: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "setting_comments", lambda _: "")
    before = shop.spent
    assert errors(_simple(client, f"{CHEAP} {_count()}")) == []
    assert shop.spent - before == pytest.approx(0.1)
