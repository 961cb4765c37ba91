"""Records each HTTP request as an event of the operator's log: its login, its path, its outcome.

Claim: of a request, only the method, the path and the login that the client has proved are logged,
    and nothing else that the client has written.
Assumes: the application sets ``login`` only once it is proved.
Argument: a method or path that does not exist is logged as "other". Query strings, headers and
    bodies are not read.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpsql.diagnostics.operation.defects import defect
from dpsql.diagnostics.operation.events import HttpRequest, record

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
OTHER = "other"
UNANSWERED = 499
"""The status of a request whose client had left before it was answered."""


class Logged:
    """The application, with a record of each request."""

    def __init__(self, app: ASGIApp, paths: Collection[str]) -> None:
        """``paths`` are the paths that exist."""
        self._app, self._paths = app, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and record it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.monotonic(), UNANSWERED

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:  # noqa: BLE001 (the server would print it, with its own words)
            defect(error)
        finally:
            record(self._event(scope, status, 1_000 * (time.monotonic() - start)))

    def _event(self, scope: Scope, status: int, milliseconds: float) -> HttpRequest:
        method, path, client = scope["method"], scope["path"], scope.get("client")
        return HttpRequest(
            method if method in _METHODS else OTHER,
            path if path in self._paths else OTHER,
            status,
            milliseconds,
            login=scope.get("state", {}).get("login", ""),
            address=str(client[0]) if client else "",
        )
