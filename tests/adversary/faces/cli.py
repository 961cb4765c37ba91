"""The command line, one process for each statement."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.adversary.faces.http import answered, read
from tests.adversary.faces.server import run
from tests.adversary.faces.session import OpenWorld, absent, setting
from tests.adversary.model import Failure, Step, Transcript, World
from tests.adversary.place import POLICY

CODES = re.compile(rb"^(DP\d{3}): (.*)$", re.MULTILINE)
PLACE = re.compile(r"^  at line (\d+), column (\d+)$", re.MULTILINE)
PART = re.compile(r"^  (why:     |instead: )(.*(?:\n           .*)*)", re.MULTILINE)
FLAGS = {"epsilon": "--epsilon", "dialect": "--dialect", "session": "--session"}
"""Settings that the command has an option for; others go in a comment before the statement."""
IN_COMMENTS = {"max_error", "delta", "max_relative_error", "expected_size"}
EXITS = {"DP402": 4, "DP403": 4, "DP404": 4, "DP901": 1, "DP902": 1, "DP903": 1, "DP904": 1}
REFUSED = 3


@dataclass
class CommandClient:
    """What one person types, with the settings that they would repeat."""

    policy: Path
    role: str
    heard: bytearray
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def ask(self, step: Step) -> Transcript:
        """``dpsql query --format json``."""
        if step.parameters:
            return absent(step)
        done = self._run("query", "--format", "json", step=step)
        if done.returncode == 0:
            return answered(step, read(done.stdout))
        return self._failed(step, done)

    def explain(self, step: Step) -> Transcript:
        """EXPLAIN is a statement; ``dpsql explain`` shows the same for people."""
        if step.parameters:
            return absent(step)
        asked = Step("explain", f"EXPLAIN {step.text}")
        done = self._run("query", "--format", "json", step=asked)
        if done.returncode:
            return self._failed(step, done)
        return Transcript(step, text="\n".join(row[0] for row in read(done.stdout)["rows"]))

    def set(self, step: Step) -> Transcript:
        """Kept for the next commands."""
        found = setting(step)
        if found is None or found[0] not in {*FLAGS, *IN_COMMENTS}:
            return absent(step)
        name, value = found
        if value is None:
            self.settings.pop(name, None)
        else:
            self.settings[name] = value
        return Transcript(step)

    def cancel(self, step: Step) -> Transcript:
        """Ctrl-C after the step's seconds."""
        process = subprocess.Popen(
            [sys.executable, "-m", "dpsql", *self._words("query", "--format", "json", step=step)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        time.sleep(step.seconds)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
        self.heard += output + errors
        if process.returncode == 0:
            return answered(step, read(output))
        return Transcript(step, error=Failure("DP904", "the command was interrupted"))

    def close(self) -> None:
        """Nothing is open."""

    def _words(self, *words: str, step: Step) -> Sequence[str]:
        flags = [f for name, flag in FLAGS.items() if name in self.settings
                 for f in (flag, self.settings[name])]  # fmt: skip
        remarks = ", ".join(
            f"dpsql.{name} = {value}"
            for name, value in self.settings.items()
            if name in IN_COMMENTS
        )
        sql = f"/* {remarks} */ {step.text}" if remarks else step.text
        where = ["--policy", str(self.policy), "--role", self.role]
        return [*words, *where, *flags, "--", sql]

    def _run(self, *words: str, step: Step) -> subprocess.CompletedProcess[bytes]:
        done = run(*self._words(*words, step=step), environment=self.environment)
        self.heard += done.stdout + done.stderr
        return done

    def _failed(self, step: Step, done: subprocess.CompletedProcess[bytes]) -> Transcript:
        coded = CODES.search(done.stderr)
        said = done.stderr.decode()
        if coded is None:
            return Transcript(step, error=Failure(f"exit {done.returncode}", said))
        code = coded.group(1).decode()
        if done.returncode != EXITS.get(code, REFUSED):
            return Transcript(step, error=Failure(f"exit {done.returncode}", said))
        rest = said[coded.start() :]
        parts = [m.group(2).replace("\n           ", "\n") for m in PART.finditer(rest)]
        words = "\n".join((coded.group(2).decode(), *parts))
        return Transcript(step, error=Failure(code, words, _position(step.text, rest)))


@dataclass(frozen=True)
class CommandFace:
    """The command line on a folder."""

    environment: Mapping[str, str] = field(default_factory=dict)
    name: str = "cli"

    def open(self, world: World, folder: Path, role: str = "") -> OpenWorld:
        """Nothing is opened before the first statement."""
        heard = bytearray()

        def connect(name: str) -> CommandClient:
            return CommandClient(folder / POLICY, name, heard, self.environment)

        first = role or world.roles[0].name
        return OpenWorld(world, folder, first, connect, lambda: True, lambda: bytes(heard))


def _position(sql: str, said: str) -> int | None:
    """The character, from one, at the line and column that the command names."""
    place = PLACE.search(said)
    if place is None:
        return None
    line, column = int(place.group(1)), int(place.group(2))
    return sum(len(each) + 1 for each in sql.split("\n")[: line - 1]) + column
