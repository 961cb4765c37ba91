"""One ``dpsql serve`` for a world: started by the real command, reused by all cases."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

STARTING_SECONDS = 60.0
STOPPING_SECONDS = 15.0
RELOADING_SECONDS = 30.0
HOST = "127.0.0.1"
COMMAND = ("-m", "dpsql")


class ServerFailed(Exception):
    """The server did not start, or ended; the message holds what it said."""


def run(
    *words: str,
    environment: Mapping[str, str] | None = None,
    given: str = "",
    seconds: float = 120.0,
) -> subprocess.CompletedProcess[bytes]:
    """Run the real command, as a person would."""
    return subprocess.run(
        [sys.executable, "-m", "dpsql", *words],
        input=given.encode(), capture_output=True, timeout=seconds, check=False,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip


def make_token(policy: Path, name: str, role: str) -> str:
    """A user with a token for HTTP."""
    done = run("user", "add", name, "--token", "--role", role, "--policy", str(policy))
    if done.returncode:
        raise ServerFailed(done.stderr.decode())
    return done.stdout.decode().strip()


@dataclass
class Server:
    """A running endpoint with both faces."""

    policy: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    more: Sequence[str] = ()
    said: str = ""
    program: Sequence[str] = COMMAND

    def __post_init__(self) -> None:
        """Start it and wait until it listens."""
        self._spoken = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-u", *self.program, "serve", "--policy", str(self.policy),
             "--port", "0", "--http-port", "0", *self.more],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **self.environment},
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        try:
            self._await(r"listening", STARTING_SECONDS)
        except ServerFailed:
            self.stop()
            raise
        ports = [int(port) for port in re.findall(r"port (\d+)", self.said)]
        self.address, self.http_address = (HOST, ports[0]), (HOST, ports[-1])

    def reload(self) -> bool:
        """Have it read its policy again; whether the new one is in force."""
        before = len(self.said)
        self.process.send_signal(signal.SIGHUP)
        self._await(r"(^|\n)(not )?reloaded: ", RELOADING_SECONDS, before)
        return "not reloaded: " not in self.said[before:]

    def stop(self) -> int:
        """End it as an operator would; its exit status."""
        self.process.terminate()
        try:
            status = self.process.wait(STOPPING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self._listener.join()
        return status

    def resident_bytes(self) -> int:
        """Memory of the process and of those that it started, as Linux counts it."""
        return sum(map(_resident, _family(self.process.pid)))

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                with self._spoken:
                    self.said += line
                    self._spoken.notify_all()
        with self._spoken:
            self._spoken.notify_all()

    def _await(self, pattern: str, seconds: float, start: int = 0) -> None:
        until = time.monotonic() + seconds
        with self._spoken:
            while not re.search(pattern, self.said[start:]):
                left = until - time.monotonic()
                if left <= 0 or self.process.poll() is not None:
                    raise ServerFailed(self.said[start:])
                self._spoken.wait(min(left, 1.0))


def _family(process: int) -> list[int]:
    """A process and all that descend from it."""
    found = [process]
    for each in found:
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # it may end meanwhile
                found += map(int, path.read_text().split())
    return found


def _resident(process: int) -> int:
    with contextlib.suppress(OSError):
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0
