"""Answers and requests as bytes, counted in the pool until they are read.

An answer is written piece by piece, so that it is in memory once, and given to the client as that
reads; each piece is dropped when it has been sent.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Hashable

import pyarrow as pa
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Send

from dpsql.memory.pool import POOL, Full, Hold, Use
from dpsql.memory.sizes import table_size
from dpsql.serve.http.openapi import ARROW, LARGEST_BODY
from dpsql.serve.http.question import Unreadable
from dpsql.service import Reply, plain

FEW = 1 << 16
"""Bytes of a request from which it is counted."""
ROWS = 10_000
"""Rows that are written at one time."""
PIECE = 1 << 18
"""Bytes that are given to the client at one time."""
SEND_SECONDS = 60.0
"""For so long a client may take nothing of an answer."""


class Body:
    """Bytes that are counted as they are added, and until they are taken. Also a file to write to."""

    closed = False

    def __init__(self, owner: Hashable) -> None:
        """Nothing is in it yet. ``owner`` is whose memory it is."""
        self._pieces: deque[bytes] = deque()
        self._hold = Hold(POOL, Use.HTTP, owner)
        self.size = 0

    def write(self, data: bytes | pa.Buffer) -> int:
        """Add a piece; ``Full`` if there is no memory for it."""
        with memoryview(data) as view:
            self._hold.resize(self._hold.bytes + view.nbytes)
            self._pieces += (bytes(view[at : at + PIECE]) for at in range(0, view.nbytes, PIECE))
            self.size += view.nbytes
            return view.nbytes

    def drop(self) -> None:
        """Nobody takes the rest."""
        self._pieces.clear()
        self._hold.release()

    def flush(self) -> None:
        """There is nothing behind it."""

    async def take(self) -> AsyncIterator[bytes]:
        """Each piece, which is in it no more."""
        while self._pieces:
            piece = self._pieces.popleft()
            yield piece
            self._hold.resize(max(0, self._hold.bytes - len(piece)))


class Prompt(StreamingResponse):
    """Sent to a client that reads; one that takes nothing for a time is let go."""

    def __init__(self, body: Body, media_type: str) -> None:
        """The whole body is there."""
        length = {"content-length": str(body.size)}
        super().__init__(body.take(), media_type=media_type, headers=length)
        self._body = body

    async def stream_response(self, send: Send) -> None:
        """As there, each piece in time; what is left in the end is dropped."""
        try:
            await self._stream(send)
        finally:
            self._body.drop()

    async def _stream(self, send: Send) -> None:

        async def sent(message: Message) -> None:
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await send(message)
            except TimeoutError:
                raise ClientDisconnect from None

        await super().stream_response(sent)


def make_response(reply: Reply, owner: Hashable, *, arrow: bool) -> Response:
    """The reply as a response; ``Full`` if there is no memory for it."""
    body = Body(owner)
    rows = POOL.hold(Use.HTTP, table_size(reply.table), owner, reply.table)  # until it is written
    if arrow:
        _write_arrow(reply, body)
    else:
        for text in plain.json_pieces(reply, ROWS):
            body.write(text.encode())
    del rows
    return Prompt(body, ARROW if arrow else "application/json")


def _write_arrow(reply: Reply, body: Body) -> None:
    """One IPC stream; what it cost is in the schema's metadata."""
    told = {"cost": plain.cost(reply), "recalled": reply.recalled, "notes": list(reply.notes)}
    table = plain.with_distinct_names(reply).replace_schema_metadata({"dpsql": json.dumps(told)})
    with pa.ipc.new_stream(body, table.schema) as writer:
        writer.write_table(table)


async def received(request: Request, owner: Hashable) -> tuple[bytes, Hold]:
    """The body of a request, as long as it is short enough; and what counts it."""
    body, hold = bytearray(), Hold(POOL, Use.HTTP, owner)
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_BODY:
                said = f"Send at most {LARGEST_BODY} bytes."
                raise Unreadable(413, "the request is too large", said)
            if len(body) > FEW:
                hold.resize(2 * len(body))
    except Full:
        hold.release()
        raise Unreadable(503, "no memory is left for the request", "Send it later.") from None
    except BaseException:
        hold.release()
        raise
    return bytes(body), hold
