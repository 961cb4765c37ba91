"""What is fuzzed: each target takes bytes, and only a refusal may come of them."""

from __future__ import annotations

import base64
import functools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

TESTS = Path(__file__).parents[1]
for place in (TESTS, TESTS / "support", TESTS / "wire"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from support.corpus import CORPUS, SHOP  # noqa: E402
from support.hostile import HOSTILE  # noqa: E402
from support.measured import opened, request  # noqa: E402

from dpsql.checks import run as check  # noqa: E402
from dpsql.diagnostics.refusal import Refused  # noqa: E402
from dpsql.engines.duckdb.guard import Guard  # noqa: E402
from dpsql.engines.duckdb.statements import list_statements  # noqa: E402
from dpsql.ir.public_groups import Combinations, PublicGroups, RowList  # noqa: E402
from dpsql.plan.build import build  # noqa: E402
from dpsql.plan.nodes import PublicRows  # noqa: E402
from dpsql.price.price import price  # noqa: E402
from dpsql.service import settings  # noqa: E402
from dpsql.sql.bind import bind  # noqa: E402
from dpsql.sql.dialects.tables import DIALECTS  # noqa: E402
from dpsql.sql.parse import Source, parse  # noqa: E402

Target = Callable[[bytes], None]
LONGEST = 2_000
"""Longer texts spend their time in the parser."""


@functools.cache
def _catalog() -> object:
    return opened(SHOP).catalog(next(iter(opened(SHOP).policy.roles)))


@functools.cache
def _guard() -> Guard:
    return Guard(opened(SHOP).policy)


class _Few:
    """Groups of constants are not counted: that is an engine's work. Public tables are small."""

    def count(self, part: Combinations) -> int:
        return 5

    def count_public(self, part: Combinations | RowList) -> int:
        return opened(SHOP).tools.enumerator.count_public(part)

    def read_public(self, groups: PublicGroups) -> PublicRows:
        return opened(SHOP).tools.enumerator.read_public(groups)


def statement(data: bytes) -> None:
    """Text to a priced plan, whose statements must pass their second check."""
    _planned(data, "postgres")


def dialect(data: bytes) -> None:
    """The same in another dialect: the first byte says which."""
    others = sorted(DIALECTS.keys() - {"postgres"})
    _planned(data[1:], others[(data[0] if data else 0) % len(others)])


def _planned(data: bytes, spoken: str) -> None:
    text = data.decode("utf-8", "surrogateescape")[:LONGEST]
    try:
        settings.apply_set(settings.Settings(), text)
        read = parse(Source(text, spoken))
        plan = build(check(bind(read, _catalog())), _Few(), 100_000)  # type: ignore[arg-type]
        priced = price(plan, request(3, 1))
    except Refused as refused:
        str(refused)
        return
    for part in priced.parts:
        _guard().check(list_statements(part)[0].sql)


@functools.cache
def _house() -> object:
    from endpoint import generous
    from support.services import real_service

    from dpsql.serve.catalog.catalog import role_catalog
    from dpsql.serve.endpoint import ServiceEndpoint

    service = real_service("shop", "shop", generous)
    return ServiceEndpoint(service, role_catalog)


def messages(data: bytes) -> None:
    """Bytes after a login, in pieces; whatever comes back must be whole messages."""
    from endpoint import PASSWORD, ROLE
    from talk import Client, FixedHouse, kinds

    client = Client(FixedHouse(_house()))  # type: ignore[arg-type]
    client.login(ROLE, PASSWORD)
    start = len(client.received)
    cut = data[0] % 64 + 1 if data else 1
    for at in range(0, len(data), cut):
        client.send(data[at : at + cut])
    kinds(client.received[start:])


def strangers(data: bytes) -> None:
    """Bytes from the first one on, before anybody has logged in: no answer, no session."""
    from talk import Client, FixedHouse, kinds

    client = Client(FixedHouse(_house()))  # type: ignore[arg-type]
    cut = data[0] % 64 + 1 if data else 1
    for at in range(0, len(data), cut):
        client.send(data[at : at + cut])
    said = client.received.removeprefix(b"N").removeprefix(b"N")  # what asks for TLS has one letter
    assert set(kinds(said)) <= set("REv"), "a challenge, an error, a version: nothing else"


TARGETS: dict[str, Target] = {
    "statement": statement, "dialect": dialect, "messages": messages, "strangers": strangers,
}  # fmt: skip


_ENCRYPTION_ASKED_AGAIN = base64.b64decode("AAAACATSFi8AAAAIBNIWLwAAAAgE0hYvPWR0YT1kdGE=")
"""Three requests for TLS, and what is none: this was answered three times."""


def _greetings() -> Iterable[bytes]:
    """How clients begin: log-ins, wishes for TLS, cancellations, and what comes too early."""
    from talk import SYNC, message, query, startup

    first = b"n,,n=,r=rOprNGfwEbeRWgbNEkqO"
    sasl = message("p", b"SCRAM-SHA-256\0" + len(first).to_bytes(4, "big") + first)
    proof = message("p", b"c=biws,r=rOprNGfwEbeRWgbNEkqO,p=AAAA")
    for number in (80877103, 80877104):
        yield (8).to_bytes(4, "big") + number.to_bytes(4, "big") + startup("analyst")
    yield (16).to_bytes(4, "big") + (80877102).to_bytes(4, "big") + bytes(8)
    yield startup("analyst", database="shop", options="-c dpsql.epsilon=1") + sasl + proof
    yield startup("analyst") + sasl + query("SELECT 1") + SYNC
    yield startup("nobody", application_name="x" * 99) + sasl + proof
    yield (8).to_bytes(4, "big") + (2 << 16).to_bytes(4, "big")
    yield _ENCRYPTION_ASKED_AGAIN


def seeds(target: str) -> Iterable[bytes]:
    """What is known to go far: statements of the corpora, conversations."""
    texts = [e.sql for e in CORPUS] + [h.sql for h in HOSTILE if len(h.sql) < LONGEST]
    if target == "statement":
        yield b"SELECT COUNT(* IN ) FROM orders GROUP BY 1"
        yield from (t.encode("utf-8", "surrogatepass") for t in texts)
        return
    if target == "dialect":
        for i, text in enumerate(texts[::3]):
            yield bytes([i % 256]) + text.encode("utf-8", "surrogatepass")
        return
    from talk import SYNC, describe, execute, query

    if target == "strangers":
        yield from _greetings()
        return
    from talk import bind as bound
    from talk import parse as parsed

    for text in texts[::10]:
        if "\0" in text or not text.isascii():
            continue
        yield query(text)
        yield parsed("s", text) + bound("", "s") + describe("P", "") + execute("") + SYNC
