"""What a Bind asks for is looked at before anything is charged."""

from __future__ import annotations

import struct

import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from talk import (
    SYNC,
    Client,
    FixedHouse,
    describe,
    errors,
    execute,
    fields,
    kinds,
    message,
    messages,
    parse,
    query,
)  # fmt: skip

from dpsql.serve.pgwire import conversation

COUNT = "SELECT count(*) FROM customers WHERE age <> 77031"


def _bind(portal: str, name: str, *results: int, formats: tuple[int, ...] = ()) -> bytes:
    body = portal.encode() + b"\0" + name.encode() + b"\0"
    body += struct.pack(f"!h{len(formats)}hh", len(formats), *formats, 0)
    return message("B", body + struct.pack(f"!h{len(results)}h", len(results), *results))


def _said(data: bytes) -> list[str]:
    return [fields(body)["M"] for kind, body in messages(data) if kind == "E"]


@pytest.fixture
def client(shop: Endpoint) -> Client:
    found = Client(FixedHouse(shop.house))
    found.login(ROLE, PASSWORD)
    found.send(query("SET dpsql.notices = off; SET dpsql.fresh = on"))
    return found


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("sql", [COUNT, "SELECT 1 AS one", "EXECUTE e", "FETCH c", "SHOW timezone"])
def test_formats_that_do_not_fit_are_refused_at_bind(
    client: Client, shop: Endpoint, sql: str, described: bool
) -> None:
    client.send(query(f"PREPARE e AS {COUNT}; DECLARE c CURSOR WITH HOLD FOR {COUNT}"))
    before = shop.spent
    client.send(parse("s", sql) + (describe("S", "s") if described else b"") + SYNC)
    said = client.send(_bind("", "s", 0, 1) + execute("") + SYNC)
    assert kinds(said) == "EZ"
    assert errors(said) == ["08P01"]
    assert _said(said) == ["bind message has 2 result formats but query has 1 columns"]
    assert shop.spent == before


def test_formats_of_parameters(client: Client) -> None:
    client.send(parse("s", COUNT) + SYNC)
    said = client.send(_bind("", "s", formats=(0, 1)) + SYNC)
    assert _said(said) == ["bind message has 2 parameter formats but 0 parameters"]
    assert errors(said) == ["08P01"]


def _columns_change(client: Client) -> bytes:
    """Between Bind and Execute: by a setting, and by another statement of the same name."""
    client.send(query(f"BEGIN; SET dpsql.intervals = on; PREPARE e AS {COUNT}"))
    client.send(parse("s", COUNT) + parse("t", "EXECUTE e") + SYNC)
    said = client.send(_bind("p", "s", 0, 0, 0) + _bind("q", "t", 0, 0, 0) + SYNC)
    assert errors(said) == []
    client.send(query("RESET dpsql.intervals; SAVEPOINT a"))
    return b"".join(
        client.send(execute(portal) + SYNC + query("ROLLBACK TO a")) for portal in ("p", "q")
    )


def test_columns_that_change_are_noticed_before_the_charge(client: Client, shop: Endpoint) -> None:
    before = shop.spent
    assert errors(_columns_change(client)) == ["08P01", "08P01"]
    assert shop.spent == before


def test_without_the_look_an_answer_is_paid_and_lost(
    client: Client, shop: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "check_formats", lambda *_, **__: None)
    before = shop.spent
    assert errors(_columns_change(client)) == ["XX000", "XX000"]
    assert shop.spent > before


def test_a_format_for_each_column(client: Client) -> None:
    client.send(parse("s", "SELECT country, count(*) FROM customers GROUP BY 1") + SYNC)
    for results in ((), (1,), (0, 1)):
        said = client.send(_bind("", "s", *results) + describe("P", "") + execute("") + SYNC)
        assert errors(said) == []
        assert "D" in kinds(said)
