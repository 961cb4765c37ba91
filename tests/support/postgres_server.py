"""A PostgreSQL server of the tests' own: a temporary directory, a free port on loopback."""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from support.postgres_home import binaries
from support.required import leave_out


@functools.cache
def shared_server() -> Server:
    """One server for all tests of a process; tests use schemas of their own."""
    home = binaries()
    if home is None:
        leave_out("no PostgreSQL server here; tests/support/postgres.sh installs one")
    server = Server(home)
    atexit.register(server.remove)
    return server


class Server:
    """A server that can be stopped, killed and started again on the same data."""

    def __init__(self, home: Path) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="dpsql-postgres-"))
        self.data, self.passfile = self.directory / "data", self.directory / "pgpass"
        self.port, self._home = _free_port(), home
        self._process: subprocess.Popen[bytes] | None = None
        password = secrets.token_hex(16)
        (self.directory / "new").write_text(password)
        self.passfile.write_text(f"127.0.0.1:{self.port}:*:dpsql:{password}\n")
        self.passfile.chmod(0o600)
        for path in (self.directory, self.directory / "new"):
            _give(path)
        self._run(
            "initdb", "-D", self.data, "-U", "dpsql", "-A", "scram-sha-256", "--no-sync",
            "--pwfile", self.directory / "new", "--locale=C", "--encoding=UTF8",
        )  # fmt: skip
        self.start()

    @property
    def dsn(self) -> str:
        return (
            f"host=127.0.0.1 port={self.port} user=dpsql dbname=postgres passfile={self.passfile}"
        )

    def start(self, *options: str) -> None:
        command = [
            self._home / "postgres", "-D", self.data, "-p", str(self.port),
            "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
            "-c", "max_connections=400", *options,
        ]  # fmt: skip
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **_identity())
        deadline = time.monotonic() + 60
        ready = [self._home / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode:
            assert self._process.poll() is None, (self.directory / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT disconnects everybody; SIGQUIT ends at once, without writing anything more."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.end(signal.SIGQUIT)
        shutil.rmtree(self.directory)

    def _run(self, name: str, *arguments: object) -> None:
        command = [self._home / name, *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, **_identity())


def _identity() -> dict[str, object]:
    """PostgreSQL refuses to run as root."""
    return {"user": "nobody", "group": _nobody().pw_gid, "cwd": "/"} if os.geteuid() == 0 else {}


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, _nobody().pw_uid, _nobody().pw_gid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
