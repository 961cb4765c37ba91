"""Attempts to come in, to become somebody else, and to see what others do.

Log-ins are made wrong on purpose: other passwords, proofs that are longer or shorter, names that do
not exist, an offer of channel binding that somebody in the middle struck out, made-up tokens. Who is
in takes roles that were not granted, ends others' sessions, and watches the ledger while an answer
waits for its time.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.adversary import books, shop
from tests.adversary.accounts import TOTAL, changed, seen
from tests.adversary.faces.http import HttpClient
from tests.adversary.faces.protocol import ConnectionEnded, Conversation, Scram, fields, query
from tests.adversary.faces.server import Server
from tests.adversary.faces.servers import Servers
from tests.adversary.model import Finding, World
from tests.adversary.place import POLICY, write

GUESSES = 5
SLOWED = 1.2
"""Seconds that so many wrong guesses take at least, one after the other."""
TOKENS = 48
TOKEN_SECONDS = 25.0
"""Made-up tokens are tried for so long at most."""
WAITS = 2.0
"""Seconds of ``latency: fixed(..)``."""
WARMING = 4
UNAUTHORIZED = 401
Proof = Callable[[bytes], bytes]


class Wrong(Scram):
    """A log-in whose last message is changed."""

    def __init__(self, password: str, proof: Proof = bytes, flag: str = "n") -> None:
        """Change the proof so; say so about channel binding."""
        super().__init__(password)
        self.change, self.flag, self.offer = proof, flag, ""

    def first(self) -> str:
        """With the flag."""
        return super().first().replace("n,,", f"{self.flag},,", 1)

    def final(self, offer: str) -> str:
        """With another proof. The flag is in what is signed, so it is signed as it was sent."""
        self.offer = offer
        said = super().final(offer, f"{self.flag},,")
        bare, _, proof = said.rpartition(",p=")
        return f"{bare},p={base64.b64encode(self.change(base64.b64decode(proof))).decode()}"

    def verify(self, said: str) -> None:
        """Come in whatever the server says of itself."""


def enters(
    server: Server, user: str, exchange: Scram, context: ssl.SSLContext | None = None
) -> bool:
    """Whether a log-in succeeds. A server that errs is not one that lets in."""
    try:
        Conversation(
            server.address, user, exchange.password, exchange=exchange, context=context
        ).close()
    except (ConnectionEnded, OSError, ValueError, KeyError):
        return False
    return True


def passwords(server: Server, world: World) -> Iterator[Finding]:
    """Nobody comes in without the password's proof, and guessing is slow."""
    user, right = world.roles[0].name, world.roles[0].password
    wrong: tuple[tuple[str, Scram], ...] = (
        ("a longer proof", Wrong(right, lambda proof: proof + b"\0")),
        ("a shorter proof", Wrong(right, lambda proof: proof[:-1])),
        ("no proof", Wrong(right, lambda _: b"")),
        ("a proof of zeros", Wrong(right, lambda proof: bytes(len(proof)))),
        ("another password", Wrong("another password")),
    )
    for name, exchange in wrong:
        if enters(server, user, exchange):
            yield seen(world, f"{name} is taken for the right one")
    other = world.roles[1].name
    began = time.perf_counter()
    for number in range(GUESSES):
        enters(server, other, Scram(f"guess {number}"))
    if (took := time.perf_counter() - began) < SLOWED:
        yield seen(world, "guesses are not slowed down", f"{GUESSES} in {took:.2f} s")


def names(server: Server, world: World) -> Iterator[Finding]:
    """A name that does not exist is asked for its password like any other."""
    offers = []
    for user in (world.roles[2].name, "nobody", "nobody"):
        exchange = Wrong("x")
        enters(server, user, exchange)
        offers.append(dict(part.split("=", 1) for part in exchange.offer.split(",") if part))
    salts = [base64.b64decode(offer.get("s", "")) for offer in offers]
    if salts[1] != salts[2] or len({(len(s), o.get("i")) for s, o in zip(salts, offers, strict=True)}) > 1:  # fmt: skip
        yield seen(world, "names that do not exist are told from others", repr(salts))


def tokens(server: Server, world: World) -> Iterator[Finding]:
    """A token that was made up opens nothing."""
    found, todo = list[str](), [f"made-up-{number}" for number in range(TOKENS)]
    end = time.monotonic() + TOKEN_SECONDS

    def attempt() -> None:
        while todo and time.monotonic() < end:
            token = todo.pop()
            client = HttpClient(server.http_address, token, bytearray())
            with contextlib.suppress(OSError):
                status = client.request("GET", "/v1/budget")[0]
                if status < 400:
                    found.append(token)
            client.close()

    threads = [threading.Thread(target=attempt) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if found:
        yield seen(world, "a made-up token is taken", repr(found))


def roles(server: Server, world: World) -> Iterator[Finding]:
    """Only a role that was granted is taken, and whoever takes it pays too."""
    with _talk(server, world, 0) as talk:
        for role in ("second", "owner"):
            said = _told(talk, f"SET ROLE {role}")
            if not said:
                yield seen(world, "a role is taken that was not granted", role)
            _told(talk, "RESET ROLE")
    with _talk(server, world, 1) as talk:
        if _told(talk, "SET ROLE analyst") == "":
            _told(talk, f"{TOTAL} WHERE region = 3")
    with _talk(server, world, 1) as talk:
        talk.send(query("SELECT account, spent_epsilon FROM dpsql.budget"))
        rows = [m.body for m in talk.until_ready() if m.kind == b"D"]
    own = [row for row in rows if b'role "second"' in row and b"session" not in row]
    if not own or any(row.endswith((b"\0\0\0\x010", b"\0\0\0\x030.0")) for row in own):
        yield seen(world, "who takes a role does not pay", repr(rows))


def sessions(server: Server, world: World) -> Iterator[Finding]:
    """A session of another log-in is neither ended nor seen."""
    with _talk(server, world, 0) as mine, _talk(server, world, 1) as other:
        for function in ("pg_terminate_backend", "pg_cancel_backend"):
            mine.send(query(f"SELECT {function}({other.process})"))
            answer = mine.until_ready()
            if any(m.kind == b"D" and m.body.endswith(b"t") for m in answer):
                yield seen(world, "a session of another log-in is ended", function)
        try:
            alive = _told(other, "SELECT 1") == ""
        except (ConnectionEnded, OSError):
            alive = False
        if not alive:
            yield seen(world, "a session of another log-in is gone")
        mine.send(query("SELECT pid FROM pg_stat_activity"))
        if any(str(other.process).encode() in m.body for m in mine.until_ready() if m.kind == b"D"):
            yield seen(world, "a session of another log-in is seen")


def waiting(server: Server, world: World) -> Iterator[Finding]:
    """Under a fixed latency nothing is told before the time: neither the answer nor the ledger.

    A role that looks at the ledger waits too, but sees it as it was when it asked. So its file is looked at.
    """
    folder, took, noted = server.policy.parent, list[float](), list[float]()
    with _talk(server, world, 0) as talk:
        for _ in range(WARMING):  # a first plan may take longer than there is time for
            if _told(talk, f"{TOTAL} WHERE ok") == "":
                break
        last = books.charges(folder, 0, 0)[1]
        began = time.perf_counter()

        def ask() -> None:
            _told(talk, TOTAL)
            took.append(time.perf_counter() - began)

        thread = threading.Thread(target=ask)
        thread.start()
        while thread.is_alive() and not noted:
            found, _ = books.charges(folder, last, 0)
            noted += [time.perf_counter() - began for each in found if each.state == "committed"]
            time.sleep(0.05)
        thread.join()
    if noted and noted[0] < WAITS * 0.9:
        yield seen(
            world, "the ledger tells of an answer before its time", f"{noted[0]:.2f} s of {WAITS}"
        )
    if took and took[0] < WAITS * 0.95:
        yield seen(world, "an answer leaves before its time", f"{took[0]:.2f} s of {WAITS}")


def downgrade(server: Server, world: World) -> Iterator[Finding]:
    """A client that offers channel binding and is told of none is not let in."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    user, right = world.roles[0].name, world.roles[0].password
    if not enters(server, user, Wrong(right), context):
        yield seen(world, "nobody comes in over TLS")
    if enters(server, user, Wrong(right, flag="y"), context):
        yield seen(world, "an offer of channel binding is struck out unnoticed")


def _told(talk: Conversation, sql: str) -> str:
    """The code of the error that a statement ends with; empty if it is answered."""
    talk.send(query(sql))
    errors = [m for m in talk.until_ready() if m.kind == b"E"]
    return fields(errors[0].body).get("C", "?") if errors else ""


@contextlib.contextmanager
def _talk(server: Server, world: World, role: int) -> Iterator[Conversation]:
    user = world.roles[role]
    talk = Conversation(server.address, user.name, user.password)
    try:
        yield talk
    finally:
        talk.close()


def knock(folder: Path, servers: Servers) -> Iterator[Finding]:
    """All of these, at an endpoint that lets the second role become the first."""
    world = changed(
        shop.shop("doors"),
        ("    tables: [people, pages]\n", "    epsilon: 50\n    may_become: [analyst]\n"),
    )  # fmt: skip
    write(world, folder)
    server = servers.at(world, folder)
    for attack in (sessions, roles, names, passwords):
        yield from attack(server, world)


def wait(folder: Path, servers: Servers) -> Iterator[Finding]:
    """An endpoint with a fixed latency, watched."""
    world = shop.shop("latency", more=f"latency: fixed({WAITS * 1000:.0f}ms)\n")
    write(world, folder)
    yield from waiting(servers.at(world, folder), world)


def encrypted(folder: Path, _: Servers) -> Iterator[Finding]:
    """An endpoint with a certificate."""
    if shutil.which("openssl") is None:
        return
    world = shop.shop("encrypted")
    write(world, folder)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    more = ("--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem"))
    server = Server(folder / POLICY, {}, more)
    try:
        yield from downgrade(server, world)
    finally:
        server.stop()
