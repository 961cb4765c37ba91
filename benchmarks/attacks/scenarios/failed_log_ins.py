"""Failed log-ins at full speed, on both faces."""

from __future__ import annotations

import http.client
from dataclasses import replace

from benchmarks.attacks.client import Client, ConnectionLost
from benchmarks.attacks.hostile import Hostile, sql_body
from benchmarks.attacks.registry import attack
from benchmarks.attacks.world import ATTACKER, OTHER


def _fail(hostile: Hostile, user: str, address: str = "") -> None:
    place = replace(hostile.place, source=address or hostile.place.source)
    try:
        Client(place, user, password="wrong").close()
        hostile.count("inside")
    except ConnectionLost as refused:
        hostile.count(str(refused))


@attack(processes=2)
def failed_log_ins(hostile: Hostile) -> None:
    """Wrong passwords for the other client's name, at full speed."""
    hostile.together(20, lambda _: _fail(hostile, OTHER))


@attack(processes=2)
def failed_log_ins_from_everywhere(hostile: Hostile) -> None:
    """Wrong passwords for the other client's name, from an address of its own each time."""

    def work(_: int) -> None:
        number = hostile.number()
        _fail(hostile, OTHER, f"127.{1 + number % 200}.{number // 200 % 250}.1")

    hostile.together(20, work)


@attack(processes=2)
def failed_log_ins_of_many(hostile: Hostile) -> None:
    """Wrong passwords for a new name each time, and for the attacker's own."""
    hostile.together(
        20, lambda i: _fail(hostile, ATTACKER if i % 2 else f"nobody{hostile.number()}")
    )


@attack()
def failed_tokens(hostile: Hostile) -> None:
    """Wrong tokens over HTTP at full speed."""

    def work(_: int) -> None:
        connection = hostile.http()
        try:
            while hostile.goes_on:
                token = f"wrong{hostile.number()}"
                hostile.post(connection, "/v1/query", sql_body("SELECT 1"), token)
        except http.client.HTTPException:
            hostile.count("closed")
        finally:
            connection.close()

    hostile.together(16, work)
