"""The change from a plain connection to an encrypted one."""

from __future__ import annotations

import asyncio
from ssl import SSLContext
from typing import cast

PROTOCOL_NAME = "postgresql"
"""What both sides must agree on (ALPN) when TLS begins without having been asked for."""
FIRST_BYTE = b"\x16"
GOODBYE_SECONDS = 10.0
"""For so long a closed connection waits for its client to say good-bye too, as TLS wants it."""


async def encrypted(
    transport: asyncio.Transport,
    protocol: asyncio.Protocol,
    tls: SSLContext,
    hello: bytes,
    agrees: str | None = PROTOCOL_NAME,
) -> asyncio.Transport | None:
    """Shake hands; None, or an ``OSError``, when that fails.

    ``hello`` is what a client began with that did not ask first; where ``agrees`` says so, it must
    want to speak that protocol.
    """
    handshake = asyncio.get_running_loop().create_task(_begin(transport, protocol, tls))
    try:
        await asyncio.sleep(0)  # it has begun: what it scheduled comes before this
        if hello:
            asyncio.get_running_loop().call_soon(_hand_on, transport, hello)
        found = await handshake
    finally:
        handshake.cancel()  # without this task nobody waits for it
    if found is None or found.is_closing():
        return None
    agreed = found.get_extra_info("ssl_object").selected_alpn_protocol()
    if hello and agrees is not None and agreed != agrees:
        found.abort()  # whoever is there did not mean to talk to this server
        return None
    return found


async def _begin(
    transport: asyncio.Transport, protocol: asyncio.Protocol, tls: SSLContext
) -> asyncio.Transport | None:
    """Not where the connection is lost by now: the handshake would wait for its end for ever."""
    if transport.is_closing():
        return None
    return await asyncio.get_running_loop().start_tls(
        transport, protocol, tls, server_side=True, ssl_shutdown_timeout=GOODBYE_SECONDS
    )


def _hand_on(transport: asyncio.Transport, data: bytes) -> None:
    """Bytes that were read already go to whoever reads now, if somebody does."""
    if transport.is_closing():
        return
    reader = cast("asyncio.BufferedProtocol", transport.get_protocol())
    while data:
        buffer = memoryview(reader.get_buffer(len(data)))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        reader.buffer_updated(size)
        data = data[size:]
