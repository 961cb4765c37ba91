"""Running endpoints by their folders, so that all cases of a world ask the same one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.adversary.faces.server import COMMAND, Server, ServerFailed, make_token
from tests.adversary.model import Failure, Unopened, World
from tests.adversary.place import POLICY

MOST_SERVERS = 4


class Servers:
    """At most so many endpoints at once; the one that was asked longest ago ends first."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, program: Sequence[str] = COMMAND
    ) -> None:
        """Start nothing yet; ``program`` is what Python runs as the command."""
        self._program = program
        self._environment = dict(environment or {})
        self._running: OrderedDict[Path, Server] = OrderedDict()
        self._tokens: dict[Path, dict[str, str]] = {}

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop all."""
        while self._running:
            self._running.popitem()[1].stop()

    @property
    def running(self) -> list[Server]:
        """The endpoints that run now."""
        return list(self._running.values())

    def at(self, world: World, folder: Path) -> Server:
        """The endpoint of a world, started if need be."""
        if folder not in self._running:
            try:
                self._running[folder] = Server(
                    folder / POLICY, self._environment, program=self._program
                )
            except ServerFailed as failed:
                raise Unopened(Failure("START", str(failed))) from failed
        self._running.move_to_end(folder)
        while len(self._running) > MOST_SERVERS:
            self._running.popitem(last=False)[1].stop()
        return self._running[folder]

    def token(self, folder: Path, role: str) -> str:
        """The token of a role for HTTP, made when it is first asked for."""
        known = self._tokens.setdefault(folder, {})
        if role not in known:
            known[role] = make_token(folder / POLICY, f"token-{role}", role)
            self._running[folder].reload()
        return known[role]

    def stop(self, folder: Path) -> int:
        """End the endpoint of a folder; its exit status."""
        return self._running.pop(folder).stop()
