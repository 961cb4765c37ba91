"""Conversations as fixtures: what each client sends, and what kinds of message answer it.

    python tests/wire/recorder.py [client ...]

runs every client against an endpoint and writes ``fixtures/wire/<client>.txt`` anew. A conversation
begins with ``#`` and its name, goes on with one line for each message of the client (its type, then
its bytes, escaped), and ends with ``=`` and the kinds of the answers. Log-ins are left out: they
are never the same twice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "fixtures" / "wire"
LONGEST = 60_000
"""Bytes of a conversation that is worth keeping. Of a longer one, statements are kept."""
MOST = 12
"""As many of them."""


@dataclass
class Conversation:
    """What one connection sent after its log-in, message by message."""

    name: str
    sent: list[bytes] = field(default_factory=list)
    kinds: str = ""

    def text(self) -> str:
        lines = [f"# {self.name}"]
        lines += [f"{chr(m[0])} {_escaped(m[5:])}" for m in self.sent]
        return "\n".join([*lines, f"= {self.kinds}"]) + "\n"


def _escaped(body: bytes) -> str:
    return body.decode("latin-1").encode("unicode_escape").decode("ascii")


def _message(line: str) -> bytes:
    body = line[2:].encode("ascii").decode("unicode_escape").encode("latin-1")
    return line[0].encode() + (len(body) + 4).to_bytes(4, "big") + body


def read(path: Path) -> Iterator[Conversation]:
    """The conversations of a file."""
    found: Conversation | None = None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            found = Conversation(line[2:])
        elif found is not None and line.startswith("= "):
            found.kinds = line[2:]
            yield found
        elif found is not None and line:
            found.sent.append(_message(line))


def told(kinds: str) -> str:
    """The kinds of messages, with counts where one is repeated."""
    runs = [(kind, len(list(group))) for kind, group in groupby(kinds)]
    return " ".join(kind if count == 1 else f"{kind}{count}" for kind, count in runs) or "-"


@contextmanager
def recorded(into: list[bytearray]) -> Iterator[None]:
    """Everything that clients send after their log-in, one entry for each connection."""
    from dpsql.serve.pgwire.connection import Connection
    from dpsql.serve.pgwire.machine import Phase

    received = Connection.data_received
    places: dict[Connection, bytearray] = {}

    def data_received(self: Connection, data: bytes) -> None:
        if self.machine.phase in (Phase.READY, Phase.SKIPPING):
            if self not in places:
                places[self] = bytearray()
                into.append(places[self])
            places[self] += data
        received(self, data)

    Connection.data_received = data_received  # type: ignore[method-assign]
    try:
        yield
    finally:
        Connection.data_received = received  # type: ignore[method-assign]


def _split(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at + 5 <= len(data):
        end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        found.append(bytes(data[at:end]))
        at = end
    return found


def _statements(name: str, messages: list[bytes]) -> Iterator[Conversation]:
    """The longest statements of a conversation that is too long, each by itself."""
    texts = dict.fromkeys(_text(m) for m in messages if m[:1] in b"QP")
    whole = [t for t in texts if b"$1" not in t and b"SELECT" in t.upper()]
    for number, text in enumerate(sorted(whole, key=len, reverse=True)[:MOST], 1):
        asked = b"Q" + (len(text) + 5).to_bytes(4, "big") + text + b"\0"
        yield Conversation(f"{name}, statement {number}", [asked])


def _text(message: bytes) -> bytes:
    """The statement of a Query or a Parse message."""
    parts = message[5:].split(b"\0")
    return parts[0 if message[:1] == b"Q" else 1].strip()


def main(wanted: list[str]) -> None:
    """Record the clients that are named, or all."""
    sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "support")]
    import side_by_side
    from endpoint import endpoint
    from sides import CHECKS, Side
    from test_wire_recorded import replayed

    side_by_side.read_clients()
    clients = sorted({client for client, _ in CHECKS if not wanted or client in wanted})
    with endpoint() as shop:
        side = Side(shop.port)
        for client in clients:
            kept: dict[str, Conversation] = {}
            for (_, name), check in [item for item in CHECKS.items() if item[0][0] == client]:
                talks: list[bytearray] = []
                with recorded(talks):
                    check(side)
                for number, talk in enumerate(talks, 1):
                    messages = _split(bytes(talk))
                    if len(talk) > LONGEST:
                        kept |= {one.name: one for one in _statements(name, messages)}
                    if len(messages) > 1 and len(talk) <= LONGEST:
                        one = Conversation(f"{name} {number}", messages)
                        kept.setdefault(b"".join(messages).hex(), one)
            for one in kept.values():
                one.kinds = told(replayed(shop, [b"".join(one.sent)])[1])
            path = FIXTURES / (re.sub(r"\W+", "_", client.lower()) + ".txt")
            path.write_text("\n".join(c.text() for c in kept.values()), encoding="utf-8")
            print(f"{path.name}: {len(kept)} conversations")


if __name__ == "__main__":
    main(sys.argv[1:])
