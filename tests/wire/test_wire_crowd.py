"""Many connections at once: those that wait keep their places, those that ask are answered."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest
from endpoint import PASSWORD, ROLE, generous
from serving import serving
from support.services import policy_file

BY_CHANNEL = "SELECT channel, count(*) FROM orders GROUP BY channel ORDER BY channel"
MOST_MEMORY = 400 << 20


async def _crowd(port: int, idle: int, active: int) -> int:
    """Answers that the active ones were given; every connection is used once more at the end."""
    gate = asyncio.Semaphore(20)

    async def opened() -> asyncpg.Connection:
        async with gate:
            return await asyncpg.connect(
                host="127.0.0.1", port=port, user=ROLE, password=PASSWORD, database="x", ssl=False
            )

    async def ask(connection: asyncpg.Connection, number: int) -> int:
        answers = 0
        for i in range(5):
            answers += (
                await connection.fetchval("SELECT $1::int4", number * 10 + i) == number * 10 + i
            )
            answers += len(await connection.fetch(BY_CHANNEL)) == 4
        return answers

    quiet = await asyncio.gather(*(opened() for _ in range(idle)))
    busy = await asyncio.gather(*(opened() for _ in range(active)))
    found = await asyncio.gather(*(ask(c, i) for i, c in enumerate(busy)))
    everyone = [*quiet, *busy]
    assert await asyncio.gather(*(c.fetchval("SELECT 7") for c in everyone)) == [7] * len(everyone)
    await asyncio.gather(*(c.close() for c in everyone))
    return sum(found)


@pytest.mark.parametrize(
    ("idle", "active"), [(60, 30), pytest.param(500, 200, marks=pytest.mark.slow)]
)
def test_a_crowd_is_served(idle: int, active: int) -> None:
    path = policy_file("shop", "shop", generous)
    with serving(path, seconds=200) as found:
        assert asyncio.run(_crowd(found.port, idle, active)) == active * 10
        status = Path(f"/proc/{found.process.pid}/status")
        if status.exists():  # Linux tells what a process held; elsewhere the answers are checked
            held = re.search(r"VmHWM:\s+(\d+)", status.read_text())
            assert held is not None
            assert int(held[1]) * 1024 < MOST_MEMORY
