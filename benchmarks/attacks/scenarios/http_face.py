"""The HTTP face: slow bodies, floods, and the statements of the other attacks over it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable

from benchmarks.attacks.client import connect, unverified_context
from benchmarks.attacks.hostile import Hostile, sql_body
from benchmarks.attacks.registry import attack
from benchmarks.attacks.scenarios.long_texts import costly
from benchmarks.attacks.scenarios.server_memory import LARGE, PUBLIC
from benchmarks.attacks.scenarios.statements import PRODUCT, SERIES
from benchmarks.attacks.world import ATTACKER


def _posts(hostile: Hostile, count: int, path: str, bodies: Iterable[bytes]) -> None:
    bodies = list(bodies)

    def work(index: int) -> None:
        connection = hostile.http()
        try:
            for body in itertools.islice(itertools.cycle(bodies), index % len(bodies), None):
                if not hostile.goes_on:
                    return
                hostile.post(connection, path, body.replace(b"{n}", b"%d" % hostile.number()))
        finally:
            connection.close()

    hostile.together(count, work)


@attack()
def http_statements(hostile: Hostile) -> None:
    """Forty requests at once with the costliest statements of each engine."""
    statements = [
        PRODUCT, SERIES, "SELECT length(repeat('x', 2000000000))",
        "SELECT count(*) FROM pages a, pages b, pages c WHERE a.page + b.page < c.page - {n}",
        "SELECT max(length(repeat(body, 20000000))) FROM pages WHERE page <> {n}",
        "WITH g AS (SELECT word, count(*) AS c FROM events GROUP BY word) SELECT max(length(repeat(word, 1000000000))) FROM g",
    ]  # fmt: skip
    _posts(hostile, 40, "/v1/query", map(sql_body, statements))


@attack()
def http_large_answers(hostile: Hostile) -> None:
    """Answers of 100 MB over HTTP."""
    _posts(hostile, 8, "/v1/query", map(sql_body, (LARGE, PUBLIC)))


@attack()
def http_unread(hostile: Hostile) -> None:
    """Thirty clients ask over HTTP for 100 MB and take nothing of it."""

    def work(_: int) -> None:
        body = sql_body(PUBLIC.replace("{n}", str(hostile.number())))
        with unverified_context().wrap_socket(connect(hostile.place, http=True)) as door:
            door.sendall(_head(hostile, len(body)) + body)
            hostile.count("asked")
            hostile.wait()

    hostile.together(30, work)


@attack()
def http_explained(hostile: Hostile) -> None:
    """The costliest statements to plan, explained over HTTP."""
    _posts(hostile, 8, "/v1/explain", map(sql_body, costly("{n}")))


@attack()
def http_bodies(hostile: Hostile) -> None:
    """Bodies that are deep, long, or full of parameters and digits."""
    _posts(
        hostile,
        8,
        "/v1/query",
        [
            b"[" * 900_000,
            b'{"sql": "SELECT 1", "parameters": ' + b"[" * 400_000 + b"]" * 400_000 + b"}",
            b'{"sql": "SELECT 1", "parameters": [' + b"1," * 400_000 + b"1]}",
            b'{"sql": "SELECT 1", "parameters": [' + b"9" * 900_000 + b"]}",
            b'{"sql": "SELECT ' + b"1+" * 400_000 + b'1"}',
        ],
    )


def _head(hostile: Hostile, length: int) -> bytes:
    token = hostile.place.tokens[ATTACKER]
    return (
        f"POST /v1/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


@attack()
def http_slow_bodies(hostile: Hostile) -> None:
    """Four hundred requests whose bodies come byte by byte."""

    def work(_: int) -> None:
        doors = []
        try:
            for _ in range(50):
                doors.append(unverified_context().wrap_socket(connect(hostile.place, http=True)))
                doors[-1].sendall(_head(hostile, 900_000) + b'{"sql": "' + bytes(100_000))
            hostile.count("begun")
            while hostile.goes_on:
                for door in doors:
                    door.sendall(b"x")
                time.sleep(0.5)
        finally:
            for door in doors:
                door.close()

    hostile.together(8, work)


@attack(processes=2)
def http_flood(hostile: Hostile) -> None:
    """Two hundred connections that stay and ask for small things at full speed."""

    def work(_: int) -> None:
        with unverified_context().wrap_socket(connect(hostile.place, http=True)) as door:
            request = f"GET /openapi.json HTTP/1.1\r\nHost: {'x' * 1000}\r\n\r\n".encode()
            while hostile.goes_on:
                door.sendall(request)
                door.recv(1 << 16)
                hostile.count("asked")

    hostile.together(100, work)


@attack()
def http_pipelined(hostile: Hostile) -> None:
    """Requests without end, one behind the other, whose answers nobody reads; and endless heads."""

    def work(index: int) -> None:
        with unverified_context().wrap_socket(connect(hostile.place, http=True)) as door:
            door.settimeout(0.5)
            piece = (
                b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200,
                b"X-Y: " + b"z" * 10_000 + b"\r\n",
            )[index % 2]
            try:
                if index % 2:
                    door.sendall(b"GET /healthz HTTP/1.1\r\n")
                while hostile.goes_on:
                    door.sendall(piece)
                    hostile.count("sent")
            except TimeoutError:
                hostile.wait()

    hostile.together(60, work)
