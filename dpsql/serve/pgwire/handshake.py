"""Changes a plain connection into an encrypted one."""

from __future__ import annotations

import asyncio
from ssl import SSLContext
from typing import cast

PROTOCOL_NAME = "postgresql"
"""The protocol on which both sides must agree (ALPN) if TLS begins without a request."""
FIRST_BYTE = b"\x16"
GOODBYE_SECONDS = 10.0
"""The time for which a closed connection waits for the client to close TLS too."""


async def encrypted(
    transport: asyncio.Transport,
    protocol: asyncio.Protocol,
    tls: SSLContext,
    hello: bytes,
    agrees: str | None = PROTOCOL_NAME,
) -> asyncio.Transport | None:
    """Carry out the TLS handshake. Returns None or raises ``OSError`` if it fails.

    ``hello`` has the first bytes of a client that began TLS without a request. Such a client must
    agree on the protocol ``agrees``, unless that is None.
    """
    handshake = asyncio.get_running_loop().create_task(_begin(transport, protocol, tls))
    try:
        await asyncio.sleep(0)  # so that the callbacks it schedules come before _hand_on
        if hello:
            asyncio.get_running_loop().call_soon(_hand_on, transport, hello)
        found = await handshake
    finally:
        handshake.cancel()  # if this task was cancelled, nobody waits for the handshake
    if found is None or found.is_closing():
        return None
    agreed = found.get_extra_info("ssl_object").selected_alpn_protocol()
    if hello and agrees is not None and agreed != agrees:
        found.abort()  # the client did not mean to talk to a PostgreSQL server
        return None
    return found


async def _begin(
    transport: asyncio.Transport, protocol: asyncio.Protocol, tls: SSLContext
) -> asyncio.Transport | None:
    """Begin the handshake, unless the connection is lost: it would then wait for ever."""
    if transport.is_closing():
        return None
    return await asyncio.get_running_loop().start_tls(
        transport, protocol, tls, server_side=True, ssl_shutdown_timeout=GOODBYE_SECONDS
    )


def _hand_on(transport: asyncio.Transport, data: bytes) -> None:
    """Pass bytes that were read already to the protocol that reads now."""
    if transport.is_closing():
        return
    reader = cast("asyncio.BufferedProtocol", transport.get_protocol())
    while data:
        buffer = memoryview(reader.get_buffer(len(data)))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        reader.buffer_updated(size)
        data = data[size:]
