"""Clients of the HTTP face, without sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.http.app import Face
from dpsql.service import Service


class Caller:
    """A client of an application, without sockets."""

    def __init__(self, app: Any, token: str = "") -> None:
        self._app, self._headers = app, {"Authorization": f"Bearer {token}"} if token else {}

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def talk() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://it") as client:
                headers = {**self._headers, **more.pop("headers", {})}
                return await client.request(method, path, headers=headers, **more)

        return asyncio.run(talk())

    def get(self, path: str) -> httpx.Response:
        return self.request("GET", path)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)


def caller(service: Service, role: str) -> Caller:
    """A client with a token of a role, of an application of its own."""
    made, token = users.with_token("robot", role)
    users.write(service.policy.front.users, [made])
    house = ServiceEndpoint(service, role_catalog)
    return Caller(Face(lambda: house.snapshots).app(), token)
