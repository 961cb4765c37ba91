"""Messages as nobody should send them: bytes changed and moved, words left out or doubled."""

from __future__ import annotations

import os
import random  # noqa: TID251 (mistakes need no good randomness)
import struct
from collections.abc import Sequence
from logging import LogRecord

from support.daily import NIGHTLY

from dpsql.diagnostics.operation.events import LoginFailed

HOSTILE = int(os.environ.get("DPSQL_HOSTILE", "50000" if NIGHTLY else "10000"))
"""Messages with mistakes in them, five times as many at night; `make hostile` sends a million."""
SEED = int(os.environ.get("DPSQL_HOSTILE_SEED", "0"))
"""Which messages: the same ones unless it is set; `make hostile` sets it anew, and says to what."""
LONGEST = 5.0
"""Seconds of work that any message may cause; each takes milliseconds."""


def luck_of(number: int) -> random.Random:
    """The luck of one of several streams of messages, for this run's seed."""
    return random.Random(f"{SEED}/{number}")


def hostile(data: bytes, luck: random.Random) -> bytes:
    """Bytes changed, dropped, repeated or moved; lengths that lie."""
    body = bytearray(data)
    for _ in range(luck.choice((1, 1, 2, 5))):
        at = luck.randrange(len(body))
        match luck.randrange(6):
            case 0:
                body[at] = luck.randrange(256)
            case 1:
                del body[at : at + luck.randrange(1, 9)]
            case 2:
                body[at:at] = luck.randbytes(luck.randrange(1, 9))
            case 3:
                body[at : at + 4] = struct.pack("!i", luck.choice((-1, 0, 1, 5, 2**31 - 1, 2**16)))
            case 4:
                body[at:at] = body[: luck.randrange(40)]
            case _:
                body[at] ^= 1 << luck.randrange(8)
        if not body:
            return b"X"
    return bytes(body)


_WORDS = (b"SELECT ", b"(", b")", b"'", b'"', b"$1", b"::oid", b";", b",", b"--", b"/*", b"*", b"FROM ",
          b"pg_class ", b"FETCH ", b"c ", b"NULL", b"1", b"[", b"]", b"AS ", b".", b"$$", b"E'",
          b"BEGIN", b"\\", b"ALL ", b"CAST(", b"WITH x AS (", b"LIMIT 0", b"{", b"COPY ")  # fmt: skip


def misspelt(
    body: bytes, luck: random.Random, other: Sequence[bytes] = _WORDS, blank: bytes = b" "
) -> bytes:
    """Words put in, left out or doubled, without touching lengths or ends of strings."""
    text, end = body.partition(b"\0")[::2]
    words = text.split(blank)
    for _ in range(luck.choice((1, 1, 2, 4))):
        at = luck.randrange(len(words))
        words[at : at + luck.choice((0, 1, 2))] = luck.choice(
            ([luck.choice(other)], [], [luck.choice(words)] if words else [])
        )
        words = words or [luck.choice(other)]
    return blank.join(words) + b"\0" + end


def beyond_logins(records: Sequence[LogRecord]) -> list[LogRecord]:
    """What was logged by dpsql or below it, but for log-ins that failed."""
    own = [r for r in records if r.name.startswith(("uvicorn", "asyncio", "dpsql"))]
    return [r for r in own if not isinstance(getattr(r, "event", None), LoginFailed)]
