"""The bytes of requests and answers, counted in the memory pool until they are read.

An answer is written piece by piece, so that it is in memory only once. It is sent as fast as the
client reads, and each piece is dropped when it has been sent.
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
"""Requests of more bytes than this are counted."""
ROWS = 10_000
"""The number of rows that are written at one time."""
PIECE = 1 << 18
"""The number of bytes that are sent to the client at one time."""
SEND_SECONDS = 60.0
"""The longest time in which a client may receive nothing of an answer."""


class Body:
    """A queue of bytes that are counted from when they are added until they are taken.

    It can be used as a file to write to.
    """

    closed = False

    def __init__(self, owner: Hashable) -> None:
        """The queue is empty at first. Its memory is counted for ``owner``."""
        self._pieces: deque[bytes] = deque()
        self._hold = Hold(POOL, Use.HTTP, owner)
        self.size = 0

    def write(self, data: bytes | pa.Buffer) -> int:
        """Add bytes. Raises ``Full`` if there is no memory for them."""
        with memoryview(data) as view:
            self._hold.resize(self._hold.bytes + view.nbytes)
            self._pieces += (bytes(view[at : at + PIECE]) for at in range(0, view.nbytes, PIECE))
            self.size += view.nbytes
            return view.nbytes

    def drop(self) -> None:
        """Drop the rest, which nobody takes."""
        self._pieces.clear()
        self._hold.release()

    def flush(self) -> None:
        """Do nothing, as writes are not buffered."""

    async def take(self) -> AsyncIterator[bytes]:
        """Yield each piece, and remove it from the queue."""
        while self._pieces:
            piece = self._pieces.popleft()
            yield piece
            self._hold.resize(max(0, self._hold.bytes - len(piece)))


class Prompt(StreamingResponse):
    """A response that ends the connection if the client receives nothing for some time."""

    def __init__(self, body: Body, media_type: str) -> None:
        """``body`` is complete."""
        length = {"content-length": str(body.size)}
        super().__init__(body.take(), media_type=media_type, headers=length)
        self._body = body

    async def stream_response(self, send: Send) -> None:
        """Send each piece in time, as the base class does, and drop what remains at the end."""
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
    """The response that carries a reply. Raises ``Full`` if there is no memory for it."""
    body = Body(owner)
    rows = POOL.hold(Use.HTTP, table_size(reply.table), owner, reply.table)  # until all is written
    if arrow:
        _write_arrow(reply, body)
    else:
        for text in plain.json_pieces(reply, ROWS):
            body.write(text.encode())
    del rows
    return Prompt(body, ARROW if arrow else "application/json")


def _write_arrow(reply: Reply, body: Body) -> None:
    """Write the reply as one IPC stream. Cost and notes are in the metadata of the schema."""
    told = {"cost": plain.cost(reply.cost), "recalled": reply.recalled, "notes": list(reply.notes)}
    table = plain.with_distinct_names(reply).replace_schema_metadata({"dpsql": json.dumps(told)})
    with pa.ipc.new_stream(body, table.schema) as writer:
        writer.write_table(table)


async def received(request: Request, owner: Hashable) -> tuple[bytes, Hold]:
    """The body of a request, and the hold that counts it. Refused if the body is too long."""
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
