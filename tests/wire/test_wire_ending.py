"""The process ends within seconds when it is told to, whatever runs and whoever is connected."""

from __future__ import annotations

import contextlib
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from endpoint import PASSWORD, ROLE, certificate, generous
from serving import Serving, serving
from support.services import policy_file

from dpsql.cli import main, serve
from dpsql.serve import process
from dpsql.serve.pgwire.listener import Limits

BRIEF = """
from dpsql.serve.pgwire.listener import Limits
Limits.of = classmethod(lambda cls, bounds: cls(drain_seconds=0.3))
"""
STUCK = """
import sys, time
from dpsql.serve.pgwire.asking import Run
def hang(self, backend):
    print("it hangs", file=sys.stderr, flush=True)
    time.sleep(100)
Run.perform = hang
"""
HANGING_LEDGER = """
import time
from dpsql.ledger.sqlite import SqliteLedger
SqliteLedger.close = lambda self: time.sleep(100)
"""
SHORT_LIMIT = """
import dpsql.serve.pgwire.server as server
server.LIMIT = 1.5
"""


def _dsn(found: Serving, **more: str) -> str:
    parts = {
        "host": "127.0.0.1",
        "port": str(found.port),
        "user": ROLE,
        "dbname": "shop",
        "password": PASSWORD,
        **more,
    }
    return " ".join(f"{key}='{value}'" for key, value in parts.items())


def _ends(found: Serving, seconds: float, *signals: int) -> int:
    """How it ended after signals."""
    begun = time.monotonic()
    for number in signals:
        found.process.send_signal(number)
        time.sleep(0.1)
    status = found.process.wait(timeout=120)
    assert time.monotonic() - begun < seconds
    return status


def _ending(found: Serving) -> float:
    """Seconds between a signal to stop and its end without an error."""
    begun = time.monotonic()
    found.process.terminate()
    assert found.process.wait(timeout=120) == 0
    return time.monotonic() - begun


def _hello(port: int) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10))


def test_idle_tls_clients_do_not_hold_it_up() -> None:
    """They never say good-bye in TLS, for they read nothing: over both faces, and silent ones.

    Once in a few times is enough: the machine may do much else.
    """
    assert any(_ending_of_idle_tls() < 2.0 for _ in range(4))


def _ending_of_idle_tls() -> float:
    proof = certificate()
    options = ("--http-port", "0", "--tls-cert", proof.chain, "--tls-key", proof.key)
    with (
        serving(policy_file("shop", "shop", generous), *options) as found,
        contextlib.ExitStack() as stack,
    ):
        connection = psycopg.connect(_dsn(found, sslmode="require"))
        stack.callback(connection.close)
        resting = stack.enter_context(_hello(found.http))
        resting.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert resting.recv(100).startswith(b"HTTP/1.1 200")
        for port in (found.port, found.http):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        stack.enter_context(_hello(found.http))
        return _ending(found)


@pytest.fixture
def policy() -> Path:
    return policy_file("shop", "shop", generous)


@contextlib.contextmanager
def _asked(found: Serving) -> Iterator[psycopg.Connection]:
    """Somebody whose statement hangs where nothing can interrupt it."""
    with contextlib.closing(psycopg.connect(_dsn(found), autocommit=True)) as connection:
        connection.pgconn.send_query(b"SELECT count(*) FROM orders")
        assert found.line() == "it hangs\n"
        yield connection


def test_what_cannot_be_interrupted_does_not_hold_it_up(policy: Path) -> None:
    """Its client is told, the ledger is closed, and the thread ends with the process."""
    with serving(policy, before=BRIEF + STUCK) as found, _asked(found) as connection:
        assert _ends(found, 8.0, signal.SIGTERM) == 0
        result = connection.pgconn.get_result()
        assert result is not None
        assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"57P01"
    assert main(["audit", "--verify", "--policy", str(policy)]) == 0


def test_it_says_nothing_more_at_its_end(policy: Path) -> None:
    """The engine's library counts what is left when the interpreter is taken apart, and prints it."""
    with serving(policy) as found:
        with contextlib.closing(psycopg.connect(_dsn(found), autocommit=True)) as connection:
            connection.execute("SELECT count(*) FROM orders")
        assert _ends(found, 8.0, signal.SIGTERM) == 0
        assert found.process.stderr is not None
        assert found.process.stderr.read() == ""


def test_a_second_signal_ends_it_at_once(policy: Path) -> None:
    with serving(policy, before=STUCK) as found, _asked(found):
        assert _ends(found, 3.0, signal.SIGINT, signal.SIGTERM) == 0


def test_what_hangs_at_the_end_is_left(policy: Path) -> None:
    """The last resort: it says where each thread was, by lines of code."""
    with serving(policy, before=HANGING_LEDGER + SHORT_LIMIT) as found:
        assert _ends(found, 10.0, signal.SIGTERM) == 1
        assert found.process.stderr is not None
        assert "Timeout" in found.process.stderr.read()


def test_too_few_open_files_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before clients find out."""
    monkeypatch.setattr(process, "allow_files", lambda wanted: wanted - 1)
    serve._allow_files(Limits(connections=50))
    said = capsys.readouterr().err
    assert "1099 open files" in said
    assert "endpoint.connections" in said
    monkeypatch.setattr(process, "allow_files", lambda wanted: wanted)
    serve._allow_files(Limits())
    assert not capsys.readouterr().err
