"""The change from a plain connection to an encrypted one."""

from __future__ import annotations

import asyncio
from ssl import SSLContext
from typing import cast

PROTOCOL_NAME = "postgresql"
"""What both sides must agree on (ALPN) when TLS begins without having been asked for."""
FIRST_BYTE = b"\x16"


async def encrypted(
    transport: asyncio.Transport, protocol: asyncio.Protocol, tls: SSLContext, hello: bytes
) -> asyncio.Transport | None:
    """Shake hands; None, or an ``OSError``, when that fails.

    ``hello`` is what a client began with that did not ask first.
    """
    loop = asyncio.get_running_loop()
    start = loop.start_tls(transport, protocol, tls, server_side=True)
    handshake = loop.create_task(start)
    await asyncio.sleep(0)  # it has begun: what it scheduled comes before this
    if hello:
        loop.call_soon(_hand_on, transport, hello)
    found = await handshake
    if found is None:
        return None
    agreed = found.get_extra_info("ssl_object").selected_alpn_protocol()
    if hello and agreed != PROTOCOL_NAME:
        found.abort()  # whoever is there did not mean to talk to a PostgreSQL server
        return None
    return found


def _hand_on(transport: asyncio.Transport, data: bytes) -> None:
    """Bytes that were read already go to whoever reads now."""
    reader = cast("asyncio.BufferedProtocol", transport.get_protocol())
    while data:
        buffer = memoryview(reader.get_buffer(len(data)))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        reader.buffer_updated(size)
        data = data[size:]
