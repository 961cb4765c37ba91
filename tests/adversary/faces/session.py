"""What all faces share: an open world, one client for each role, and steps handed to them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from tests.adversary.model import Failure, Step, Transcript, World
from tests.adversary.place import POLICY

ABSENT = "this face has no way to do that"
"""The words of a failure that says nothing about dpsql."""
UNSUPPORTED = "0A000"
SETTING = re.compile(
    r"\s*(?:SET|RESET)\s+dpsql\.(\w+)\s*(?:(?:=|TO)\s*(.+?))?\s*;?\s*\Z", re.IGNORECASE | re.DOTALL
)
"""``SET dpsql.name = value`` or ``RESET dpsql.name``."""
COST = re.compile(r"cost: epsilon (\S+?)(?:, delta (\S+?))?; left in (.*)\Z", re.DOTALL)
RECALLED = re.compile(r"recalled: .*?; left in (.*)\Z", re.DOTALL)
CODED = re.compile(r"(DP\d{3}): (.*)\Z", re.DOTALL)


class Client(Protocol):
    """One connection of one role. What fails is in the transcript; nothing is raised."""

    def ask(self, step: Step) -> Transcript:
        """The answer to a statement."""
        ...

    def explain(self, step: Step) -> Transcript:
        """What the face says a statement would do."""
        ...

    def set(self, step: Step) -> Transcript:
        """Change a setting of the connection."""
        ...

    def cancel(self, step: Step) -> Transcript:
        """Ask, and cancel after the step's seconds."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


def absent(step: Step) -> Transcript:
    """The transcript of a step that a face has no way to do."""
    return Transcript(step, error=Failure(UNSUPPORTED, ABSENT))


def is_absent(transcript: Transcript) -> bool:
    """Whether the face had no way to do the step."""
    return transcript.error is not None and transcript.error.words == ABSENT


def failure(words: str, fallback: str, *more: str | None, position: int | None = None) -> Failure:
    """A failure whose first line may begin with its code."""
    coded = CODED.match(words)
    code, headline = coded.groups() if coded else (fallback, words)
    return Failure(code, "\n".join(part for part in (headline, *more) if part), position)


def setting(step: Step) -> tuple[str, str | None] | None:
    """Name and value of a setting; without a value it is taken back."""
    found = SETTING.match(step.text)
    if found is None:
        return None
    value = found.group(2)
    return found.group(1), None if value is None else value.strip().strip("'")


def reloaded(policy: Path, text: str) -> None:
    """Put a new policy in the place of the old one, as the documentation says to."""
    new = policy.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(policy)


@dataclass
class OpenWorld:
    """A session of any face: ``connect`` makes a client, ``reload`` has the policy read again."""

    world: World
    folder: Path
    role: str
    connect: Callable[[str], Client]
    reload: Callable[[], bool]
    heard: Callable[[], bytes] = bytes
    """All that clients were told so far, byte by byte."""
    clients: dict[str, Client] = field(default_factory=dict)

    def ask(self, step: Step) -> Transcript:
        """Do a step, and time it."""
        start = time.perf_counter()
        transcript = self._done(step)
        return replace(transcript, seconds=time.perf_counter() - start)

    def close(self) -> None:
        """End all connections. The server stays, for the next case."""
        for client in self.clients.values():
            client.close()
        self.clients.clear()

    def _done(self, step: Step) -> Transcript:
        name = step.role or self.role
        if step.act == "wait":
            time.sleep(step.seconds)
            return Transcript(step)
        if step.act == "reload":
            reloaded(self.folder / POLICY, step.text)
            return Transcript(step, text="in force" if self.reload() else "refused")
        if step.act == "reconnect" and name in self.clients:
            self.clients.pop(name).close()
        if name not in self.clients:
            self.clients[name] = self.connect(name)
        client = self.clients[name]
        acts: dict[str, Callable[[Step], Transcript]] = {
            "ask": client.ask, "catalog": client.ask, "explain": client.explain, "set": client.set,
            "cancel": client.cancel, "reconnect": Transcript,
        }  # fmt: skip
        return acts[step.act](step)
