"""The end of an endpoint: what runs has some seconds, then it is stopped, and then all is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from dpsql.execution import interrupt_all
from dpsql.serve.traffic import Traffic

STOP_SECONDS = 1.5
"""For what was stopped to end, and for clients to be told so."""
THREAD_SECONDS = 0.5
"""For threads to end that still run then. What holds one longer ends with the process."""
GOODBYE_SECONDS = 0.5
"""In which a client may take the last of what is sent to it."""
TICK = 0.02


class Face(Protocol):
    """What listens and has clients."""

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        ...

    def deafen(self) -> None:
        """Take nobody in any more."""
        ...

    def leave(self) -> None:
        """Close the connections for which nothing is being carried out."""
        ...

    def interrupt(self) -> None:
        """Stop what is being carried out, and tell its clients."""
        ...

    def abort(self) -> None:
        """Close what is left at once."""
        ...


async def drain(
    faces: Sequence[Face], traffic: Traffic, seconds: float, hurried: Callable[[], bool]
) -> None:
    """Close everything: in little more than ``seconds``, whatever runs; at once when ``hurried``.

    Statements that wait are not begun, and so not charged.
    """
    traffic.drain()
    for face in faces:
        face.deafen()
    if not await _wait_until_gone(faces, seconds, hurried):
        for face in faces:
            face.interrupt()
        interrupt_all()  # also what a policy's latency lets clients stop at multiples only
        await _wait_until_gone(faces, STOP_SECONDS, hurried)
    for face in faces:
        face.abort()
    await asyncio.sleep(0)
    traffic.close()
    await _wait_until(traffic.ended, THREAD_SECONDS, hurried)


async def _wait_until_gone(
    faces: Sequence[Face], seconds: float, hurried: Callable[[], bool]
) -> bool:
    """Whether all clients have gone in time, while those are closed that rest."""

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
