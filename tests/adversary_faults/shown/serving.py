"""``dpsql serve`` in a process of its own, as the package on the path has it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from tests.adversary_faults.world import World


@dataclass(frozen=True)
class Served:
    """Where an endpoint listens."""

    port: int
    http: int

    def connect(
        self, user: str = "analyst", password: str = "right", **more: object
    ) -> psycopg.Connection:
        """A log-in over PostgreSQL's protocol."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, dbname="p",
            autocommit=True, connect_timeout=60, **more,  # type: ignore[arg-type]
        )  # fmt: skip


@contextlib.contextmanager
def served(world: World, *options: str) -> Iterator[Served]:
    """The endpoint of a world, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "dpsql", "serve", "--policy", str(world.path), "--port", "0", *options],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        said, stderr = "", process.stderr
        assert stderr is not None
        while "listening" not in said:
            line = stderr.readline()
            assert line, said
            said += line
        ports = [int(p) for p in re.findall(r"port (\d+)", said)]
        yield Served(ports[0], ports[-1])
    finally:
        process.kill()
        process.communicate()
