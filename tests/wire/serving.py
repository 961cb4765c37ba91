"""`dpsql serve` in a process of its own, killed if a test takes too long."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_START = """
import sys
from dpsql.cli import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass
class Serving:
    """The process, its ports, and what it said before it listened."""

    process: subprocess.Popen[str]
    port: int
    http: int
    said: str

    def line(self) -> str:
        """What it says next."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()


@contextmanager
def serving(
    policy: Path, *options: str, seconds: float = 240, before: str = ""
) -> Iterator[Serving]:
    """While the block lasts, for at most so long; ``before`` is Python that the process runs first."""
    start = ["-m", "dpsql"] if not before else ["-c", before + _START]
    process = subprocess.Popen(
        [sys.executable, "-u", *start, "serve", "--policy", str(policy), "--port", "0", *options],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    killer = threading.Timer(seconds, process.kill)
    killer.start()
    try:
        found = Serving(process, 0, 0, "")
        while "listening" not in found.said:
            line = found.line()
            assert line, found.said
            found.said += line
        ports = [int(p) for p in re.findall(r"port (\d+)", found.said)]
        found.port, found.http = ports[0], ports[-1]
        yield found
    finally:
        killer.cancel()
        process.terminate()
        process.communicate()
