"""The module in this process, seen through the seams: the face that most judges need."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dpsql
from tests.adversary.model import Column, Failure, Step, Transcript, Unopened, World
from tests.adversary.place import POLICY
from tests.adversary.seams import Recorder, watch

_INCIDENT = re.compile(r"incident [0-9a-f]{8}")
"""The number of an incident is drawn by chance."""


def failure(error: Exception, folder: Path) -> Failure:
    """An exception as what a client learns of it; its folder is not what a world differs by."""
    code = str(getattr(error, "code", "") or type(error).__name__)
    words = _INCIDENT.sub("incident", str(error).replace(str(folder), "<folder>"))
    return Failure(code, words, getattr(error, "position", None))


class Inside:
    """Opens worlds with ``dpsql.connect``; what the seams see is in the transcripts."""

    name = "inside"

    def __init__(self, recorder: Recorder | None = None) -> None:
        """Look through these seams; through new ones if none are given."""
        self.recorder = recorder or Recorder()

    def open(self, world: World, folder: Path, role: str = "") -> Watched:
        """Connect as the role."""
        return Watched(world, folder, role, self.recorder)


class Watched:
    """One connection for each role, and the seams around them all."""

    def __init__(self, world: World, folder: Path, role: str, recorder: Recorder) -> None:
        """Open the first connection: what is wrong with the policy shows here."""
        self.folder, self.recorder = folder, recorder
        self.first = role or world.roles[0].name
        self.connections: dict[str, dpsql.Connection] = {}
        self.stack, self.count = ExitStack(), 0
        self.stack.enter_context(watch(recorder))
        try:
            self._connection(self.first)
        except Exception as error:  # noqa: BLE001 (whatever a client meets is a result)
            self.stack.close()
            raise Unopened(failure(error, folder)) from None

    def ask(self, step: Step) -> Transcript:
        """What comes back for a step."""
        self.recorder.begin(self.count)
        self.count += 1
        began = time.perf_counter()
        said: dict[str, Any] = {}
        try:
            said = self._do(step)
        except Exception as error:  # noqa: BLE001
            said = {"error": failure(error, self.folder)}
        seconds = time.perf_counter() - began
        return Transcript(step, **said, seconds=seconds, measured=tuple(self.recorder.found))

    def close(self) -> None:
        """Close all connections, and look no more."""
        for connection in self.connections.values():
            connection.close()
        self.connections = {}
        self.stack.close()

    def _connection(self, role: str) -> dpsql.Connection:
        if role not in self.connections:
            self.connections[role] = dpsql.connect(self.folder / POLICY, role=role)
        return self.connections[role]

    def _do(self, step: Step) -> dict[str, Any]:
        role = step.role or self.first
        if step.act == "wait":
            time.sleep(step.seconds)
            return {}
        if step.act in ("reconnect", "reload"):
            old = self.connections.pop(role, None)
            if old is not None:
                old.close()
            if step.act == "reload":
                (self.folder / POLICY).write_text(step.text, encoding="utf-8")
            self._connection(role)
            return {}
        connection = self._connection(role)
        if step.act == "explain":
            return {"text": connection.explain(step.text, step.parameters)}
        cursor = connection.cursor()
        cursor.execute(step.text, step.parameters)
        return _told(cursor)


def _told(cursor: Any) -> dict[str, Any]:
    columns = tuple(Column(c[0], c[1]) for c in cursor.description or ())
    cost = cursor.cost
    return {
        "columns": columns,
        "rows": tuple(cursor.fetchall()),
        "notes": tuple(cursor.notes),
        "cost": (repr(cost["epsilon"]), repr(cost["delta"])),
        "remaining": repr(cursor.remaining),
        "recalled": cursor.recalled,
        "text": repr(sorted(cursor.intervals.items())),
    }
