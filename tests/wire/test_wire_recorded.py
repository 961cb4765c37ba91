"""Recorded conversations of clients: the same answers however their bytes arrive, as they were once."""

from __future__ import annotations

import random  # noqa: TID251 (where bytes are cut needs no good randomness)
from collections.abc import Iterable
from pathlib import Path

import pytest
from endpoint import PASSWORD, ROLE, Endpoint
from recorder import FIXTURES, read, told
from talk import Client, FixedHouse, kinds, query

FILES = sorted(FIXTURES.glob("*.txt"))


def replayed(shop: Endpoint, data: Iterable[bytes]) -> tuple[bytes, str]:
    """What the machine says, and the kinds of its messages."""
    client = Client(FixedHouse(shop.house))
    client.login(ROLE, PASSWORD)
    client.send(query("SET dpsql.notices = off"))
    start = len(client.received)
    for piece in data:
        client.send(piece)
    said = client.received[start:]
    return said, kinds(said)


def _cut(data: bytes, luck: random.Random) -> Iterable[bytes]:
    at = 0
    while at < len(data):
        size = luck.choice((1, 2, 5, 17, 100, 1000))
        yield data[at : at + size]
        at += size


def test_clients_are_recorded() -> None:
    assert len(FILES) >= 12


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_recorded_conversation_goes_as_it_went(shop: Endpoint, path: Path) -> None:
    found = list(read(path))
    assert found
    for one in found:
        assert told(replayed(shop, [b"".join(one.sent)])[1]) == one.kinds, one.name


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_how_its_bytes_arrive_changes_nothing(shop: Endpoint, path: Path) -> None:
    luck = random.Random(path.stem)
    for one in read(path):
        data = b"".join(one.sent)
        replayed(shop, [data])  # what is paid for is stored
        whole = replayed(shop, [data])[0]
        assert replayed(shop, one.sent)[0] == whole, one.name
        assert replayed(shop, _cut(data, luck))[0] == whole, one.name
        assert replayed(shop, (data[i : i + 1] for i in range(len(data))))[0] == whole, one.name
