"""In a round of the event loop a login has one turn, however many connections it has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from dpsql.serve.turns import TURN_SECONDS, Turns


def _rounds(login: Callable[[int], str]) -> tuple[int, int]:
    """How many of thirty hostile connections went on before and after somebody else did twice."""

    async def talk() -> tuple[int, int]:
        turns, order, over = Turns(), list[str](), asyncio.Event()
        for number in range(30):
            turns.rest(login(number), lambda: order.append("hostile"))

        def again() -> None:
            order.append("ann")
            if order.count("ann") == 1:
                turns.rest("ann", again)
            else:
                over.set()

        turns.rest("ann", again)
        await over.wait()
        seen = order.count("hostile")
        while order.count("hostile") < 30:
            await asyncio.sleep(0)
        return seen, order.count("hostile")

    return asyncio.run(talk())


def test_others_go_on_between_two_turns_of_a_login() -> None:
    before, in_all = _rounds(lambda _: "hostile")
    assert before <= 3
    assert in_all == 30, "each has its turn in the end"


def test_without_logins_everybody_waits_for_all() -> None:
    """The fault that the test above would find: each connection has turns of its own."""
    before, _ = _rounds(lambda number: f"connection {number}")
    assert before >= 30


def test_who_has_used_a_turn_waits_for_the_next_round() -> None:
    async def talk() -> None:
        turns = Turns()
        assert not turns.has_had_turn("ann")
        with turns.turn("ann"):
            time.sleep(TURN_SECONDS)
        assert turns.has_had_turn("ann")
        assert not turns.has_had_turn("bob")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not turns.has_had_turn("ann"), "a round later"
        turns.rest("ann", lambda: None)
        assert turns.has_had_turn("ann"), "others of it wait"

    asyncio.run(talk())
