"""Ends an endpoint: running statements have some seconds, are then stopped, and all is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from dpsql.execution import interrupt_all
from dpsql.serve.traffic import Traffic

STOP_SECONDS = 1.5
"""The time in which stopped statements must end and their clients are told."""
THREAD_SECONDS = 0.5
"""The time in which the remaining threads must end. One that does not ends with the process."""
GOODBYE_SECONDS = 0.5
"""The time in which a client may receive the last bytes that are sent to it."""
TICK = 0.02


class Face(Protocol):
    """An interface that listens and has clients: the PostgreSQL protocol, or HTTP."""

    @property
    def connections(self) -> int:
        """The number of clients that are connected."""
        ...

    def deafen(self) -> None:
        """Accept no more connections."""
        ...

    def leave(self) -> None:
        """Close the connections that have no statement running."""
        ...

    def interrupt(self) -> None:
        """Stop the statements that run, and tell their clients."""
        ...

    def abort(self) -> None:
        """Close the remaining connections at once."""
        ...


async def drain(
    faces: Sequence[Face], traffic: Traffic, seconds: float, hurried: Callable[[], bool]
) -> None:
    """Close everything in little more than ``seconds``, whatever runs; at once when ``hurried``.

    Statements that wait are not begun, and so they are not charged.
    """
    traffic.drain()
    for face in faces:
        face.deafen()
    if not await _wait_until_gone(faces, seconds, hurried):
        for face in faces:
            face.interrupt()
        interrupt_all()  # at once, also where a policy's latency would wait for a multiple
        await _wait_until_gone(faces, STOP_SECONDS, hurried)
    for face in faces:
        face.abort()
    await asyncio.sleep(0)
    traffic.close()
    await _wait_until(traffic.ended, THREAD_SECONDS, hurried)


async def _wait_until_gone(
    faces: Sequence[Face], seconds: float, hurried: Callable[[], bool]
) -> bool:
    """Close connections as they become idle. Returns whether all have gone in time."""

    def gone() -> bool:
        for face in faces:
            face.leave()
        return not any(face.connections for face in faces)

    return await _wait_until(gone, seconds, hurried)


async def _wait_until(
    condition: Callable[[], bool], seconds: float, hurried: Callable[[], bool]
) -> bool:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        if loop.time() >= end or hurried():
            return False
        await asyncio.sleep(TICK)
    return True
