"""The Python module, as a notebook uses it: ``dpsql.connect`` in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpsql
from tests.adversary.faces.session import OpenWorld, absent
from tests.adversary.model import Column, Failure, Step, Transcript, Unopened, World
from tests.adversary.place import POLICY


def failed(error: Exception) -> Failure:
    """What the exception says, in the words of the other faces."""
    if isinstance(error, dpsql.Refused):
        parts = (error.headline, error.why, error.instead)
        return Failure(error.code, "\n".join(p for p in parts if p), error.position)
    code = getattr(error, "code", "") or type(error).__name__
    return Failure(code, str(error).removeprefix(f"{code}: "))


@dataclass
class ModuleClient:
    """One connection of the module."""

    policy: Path
    role: str
    heard: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        """Connect."""
        self._connection = dpsql.connect(self.policy, role=self.role)

    def ask(self, step: Step) -> Transcript:
        """Execute, and fetch everything."""
        try:
            cursor = self._connection.execute(step.text, step.parameters)
            return self._told(step, cursor)
        except Exception as error:  # noqa: BLE001 (whatever fails is what this face says)
            return self._failed(step, error)

    def explain(self, step: Step) -> Transcript:
        """The plan."""
        try:
            text = self._connection.explain(step.text, step.parameters)
        except Exception as error:  # noqa: BLE001
            return self._failed(step, error)
        self.heard += text.encode()
        return Transcript(step, text=text)

    def set(self, step: Step) -> Transcript:
        """A setting is a statement."""
        return self.ask(step)

    def cancel(self, step: Step) -> Transcript:
        """PEP 249 has no cancelling."""
        return absent(step)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _failed(self, step: Step, error: Exception) -> Transcript:
        """All that the exception carries is heard, with whatever it was raised from."""
        link: BaseException | None = error
        while link is not None:
            self.heard += f"{link!r} {link} {vars(link)!r}".encode()
            link = link.__cause__ or link.__context__
        return Transcript(step, error=failed(error))

    def _told(self, step: Step, cursor: Any) -> Transcript:
        if cursor.description is None:
            return Transcript(step)
        columns = tuple(Column(each[0], each[1]) for each in cursor.description)
        rows = tuple(tuple(row) for row in cursor.fetchall())
        self.heard += repr((columns, rows, cursor.notes, cursor.intervals)).encode()
        cost = (str(cursor.cost["epsilon"]), str(cursor.cost["delta"]))
        remaining = json.dumps(cursor.remaining, sort_keys=True)
        return Transcript(
            step, columns, rows, tuple(cursor.notes), cost=cost, remaining=remaining,
            recalled=cursor.recalled,
        )  # fmt: skip


class ModuleFace:
    """The module in this process."""

    name = "dbapi"

    def open(self, world: World, folder: Path, role: str = "") -> OpenWorld:
        """Connect; clients keep what they heard in one place."""
        heard, policy = bytearray(), folder / POLICY
        first = role or world.roles[0].name

        def connect(name: str) -> ModuleClient:
            return ModuleClient(policy, name, heard)

        def reload() -> bool:
            """The module reads the policy when it connects."""
            for name, client in list(opened.clients.items()):
                client.close()
                opened.clients[name] = connect(name)
            return True

        opened = OpenWorld(world, folder, first, connect, reload, lambda: bytes(heard))
        try:
            opened.clients[first] = connect(first)
        except Exception as error:
            raise Unopened(failed(error)) from error
        return opened
