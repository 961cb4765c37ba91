"""Connections: silent ones, many of them, half a handshake, large messages."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from benchmarks.attacks.client import TLS_REQUEST, Client, ConnectionLost, connect, message, startup
from benchmarks.attacks.hostile import Hostile
from benchmarks.attacks.registry import attack
from benchmarks.attacks.world import ATTACKER


def _left(hostile: Hostile, count: int, begin: bytes, *, http: bool = False) -> None:
    """So many connections that send something and then nothing; new ones for those that are ended."""

    def work(_: int) -> None:
        held: list[socket.socket] = []
        try:
            while hostile.goes_on and len(held) < count // 4:
                held.append(connect(hostile.place, http=http, seconds=5))
                held[-1].sendall(begin)
                hostile.count("opened")
            for each in held:
                each.settimeout(max(0.01, hostile.until - time.monotonic()))
                with contextlib.suppress(TimeoutError):
                    while each.recv(1000):
                        pass
                if not hostile.goes_on:
                    return
        finally:
            for each in held:
                each.close()

    hostile.together(4, work)


@attack()
def silent_connections(hostile: Hostile) -> None:
    """Two thousand connections that say nothing."""
    _left(hostile, 2_000, b"")


@attack()
def silent_http(hostile: Hostile) -> None:
    """Two thousand connections to the HTTP face that say nothing."""
    _left(hostile, 2_000, b"", http=True)


@attack()
def begun_tls(hostile: Hostile) -> None:
    """A thousand TLS handshakes that are begun and left."""
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)
    _left(hostile, 1_000, TLS_REQUEST + hello)


@attack()
def begun_log_ins(hostile: Hostile) -> None:
    """A thousand log-ins that stop at the proof."""
    _left(hostile, 1_000, startup("other"))


@attack(processes=2)
def reconnecting(hostile: Hostile) -> None:
    """Log in, ask for one, leave: at full speed, half of it over TLS."""

    def work(index: int) -> None:
        with hostile.client(tls=bool(index % 2)) as client:
            hostile.count(client.ask("SELECT 1") or "answered")

    hostile.together(8, work)


@attack()
def all_connections(hostile: Hostile) -> None:
    """One log-in takes as many connections as it gets, and holds them."""

    def work(_: int) -> None:
        held: list[Client] = []
        try:
            while hostile.goes_on:
                held.append(Client(hostile.place))
                hostile.count("inside")
        except ConnectionLost as refused:
            hostile.count(str(refused))
            hostile.wait()
        finally:
            for each in held:
                each.close()

    hostile.together(8, work)


@attack()
def large_messages_outside(hostile: Hostile) -> None:
    """Before a log-in: lengths of gigabytes, and as many bytes of them as are taken."""
    heads = (
        struct.pack("!i", 2_000_000_000), struct.pack("!ii", 10_000, 3 << 16),
        startup(ATTACKER) + b"p" + struct.pack("!i", 1_000_000_000),
        startup(ATTACKER) + b"p" + struct.pack("!i", 60_000),
        startup(ATTACKER, options=" ".join(f"-c a{i}.b=c" for i in range(500))),
    )  # fmt: skip

    def work(index: int) -> None:
        with connect(hostile.place, seconds=2) as door, contextlib.suppress(TimeoutError):
            door.sendall(heads[index % len(heads)])
            while hostile.goes_on:
                door.sendall(bytes(100_000))
            hostile.count("taken")

    hostile.together(50, work)


@attack()
def large_messages_inside(hostile: Hostile) -> None:
    """After a log-in: a hundred messages of 16 MB, each without its last byte."""

    def work(_: int) -> None:
        with hostile.client() as client:
            client.socket.settimeout(5)
            body = b"SELECT '".ljust(15_900_000, b"x")
            with contextlib.suppress(TimeoutError):
                client.send(message(b"Q", body)[:-1])
            hostile.count("sent")
            hostile.wait()

    hostile.together(100, work)


@attack()
def large_messages_whole(hostile: Hostile) -> None:
    """Statements and parameters of 16 MB, whole."""
    hostile.loop(
        8, [f"SELECT '{'x' * 15_000_000}{{n}}'", f"SELECT length('{'y' * 15_000_000}{{n}}')"]
    )


@attack()
def names_of_sessions(hostile: Hostile) -> None:
    """Each log-in has a session and an application of a name that was not there before."""

    def work(_: int) -> None:
        number = hostile.number()
        option = f"-c dpsql.session=s{number}"
        name = str(number).ljust(5_000, "x")
        with hostile.client(options=option, application_name=name) as client:
            outcome = client.ask(f"SELECT count(*) FROM people WHERE region < 3 AND id <> {number}")
            hostile.count(outcome or "answered")

    hostile.together(8, work)
