"""HTTP with a token, by the standard library's client."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.adversary.faces.servers import Servers
from tests.adversary.faces.session import OpenWorld, absent, setting
from tests.adversary.model import Column, Failure, Step, Transcript, World

SECONDS = 60.0
OK = 200


def answered(step: Step, body: dict[str, Any]) -> Transcript:
    """The JSON of an answer, which HTTP and the command line share."""
    cost, remaining = body["cost"], json.dumps(body["remaining"], sort_keys=True, default=str)
    return Transcript(
        step,
        tuple(Column(each["name"], each["type"]) for each in body["columns"]),
        tuple(tuple(row) for row in body["rows"]),
        tuple(body.get("notes", ())),
        cost=(str(cost["epsilon"]), str(cost["delta"])),
        remaining=remaining,
        recalled=body["recalled"],
    )


def read(body: bytes) -> Any:
    """JSON whose numbers keep all their digits."""
    return json.loads(body, parse_float=Decimal)


@dataclass
class HttpClient:
    """Requests with one role's token; settings go with each of them."""

    address: tuple[str, int]
    token: str
    heard: bytearray
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Connect at the first request."""
        self._connection = http.client.HTTPConnection(*self.address, timeout=SECONDS)

    def ask(self, step: Step) -> Transcript:
        """POST /v1/query."""
        status, body = self.request("POST", "/v1/query", self._question(step))
        return answered(step, read(body)) if status == OK else self._failed(step, status, body)

    def explain(self, step: Step) -> Transcript:
        """POST /v1/explain."""
        status, body = self.request("POST", "/v1/explain", self._question(step))
        if status != OK:
            return self._failed(step, status, body)
        return Transcript(step, text="\n".join(read(body)["plan"]))

    def set(self, step: Step) -> Transcript:
        """Kept here: a request carries its settings."""
        found = setting(step)
        if found is None:
            return absent(step)
        name, value = found
        if value is None:
            self.settings.pop(name, None)
        else:
            self.settings[name] = value
        return Transcript(step)

    def cancel(self, step: Step) -> Transcript:
        """A client that goes away; what it asked is stopped, and nobody is there to be told."""
        body = json.dumps(self._question(step))
        self._connection.request("POST", "/v1/query", body, self._headers())
        assert self._connection.sock is not None
        self._connection.sock.settimeout(step.seconds)
        try:
            response = self._connection.getresponse()
            return answered(step, read(self._hear(response)))
        except TimeoutError:
            return Transcript(step, error=Failure("DP904", "the client went away"))
        except (KeyError, ValueError):
            return Transcript(step, error=Failure("HTTP", "another answer"))
        finally:
            self._connection.close()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """One request, once more on a new connection if the server has closed the old one."""
        sent = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, sent, self._headers())
            response = self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._connection.close()
            self._connection.request(method, path, sent, self._headers())
            response = self._connection.getresponse()
        return response.status, self._hear(response)

    def _hear(self, response: http.client.HTTPResponse) -> bytes:
        body = response.read()
        self.heard += repr(response.getheaders()).encode() + body
        return body

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def _question(self, step: Step) -> dict[str, Any]:
        given = [
            v if isinstance(v, bool | int | float | str | None) else str(v) for v in step.parameters
        ]
        asked: dict[str, Any] = {"sql": step.text, "settings": self.settings}
        if "session" in self.settings:
            asked["session"] = self.settings["session"]
            asked["settings"] = {k: v for k, v in self.settings.items() if k != "session"}
        return {**asked, "parameters": given} if given else asked

    def _failed(self, step: Step, status: int, body: bytes) -> Transcript:
        try:
            said = read(body)
            words = "\n".join(said[key] for key in ("headline", "why", "instead") if said[key])
            return Transcript(step, error=Failure(said["code"], words, said["position"]))
        except (ValueError, KeyError, TypeError):
            return Transcript(step, error=Failure(f"HTTP {status}", body.decode(errors="replace")))


@dataclass(frozen=True)
class HttpFace:
    """HTTP at the endpoint of a folder."""

    servers: Servers
    name: str = "http"

    def open(self, world: World, folder: Path, role: str = "") -> OpenWorld:
        """Take the role's token."""
        server, heard = self.servers.at(world, folder), bytearray()

        def connect(name: str) -> HttpClient:
            return HttpClient(server.http_address, self.servers.token(folder, name), heard)

        first = role or world.roles[0].name
        opened = OpenWorld(world, folder, first, connect, server.reload, lambda: bytes(heard))
        opened.clients[first] = connect(first)
        return opened
