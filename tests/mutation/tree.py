"""A copy of the repository, in which one change at a time is made and tried."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.changes import Change

ROOT = Path(__file__).parents[2]
PARTS = ("dpsql", "tests", "fixtures", "grammar", "benchmarks", "pyproject.toml", "README.md",
         "SECURITY.md", "CHANGELOG.md", "Makefile", "LICENSE", "requirements.lock")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command gave; no code if it had to be ended."""

    code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The copy; it holds the code as it was when the copy was made."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Tree:
        """Made once; a copy that is there is the one that the results so far are of."""
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            leave = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
            for part in PARTS:
                source, target = ROOT / part, folder / part
                if source.is_dir():
                    shutil.copytree(source, target, ignore=leave)
                elif source.exists():
                    shutil.copy2(source, target)
            (folder / "whole").touch()
        return cls(folder)

    def text(self, path: str) -> str:
        """A file without a change."""
        return (self.folder / path).read_text("utf-8")

    @contextlib.contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """One change, taken back afterwards; a run that was killed in it is mended by the next."""
        place, kept = self.folder / change.path, self.folder / "before_change"
        text = place.read_text("utf-8")
        kept.write_text(f"{change.path}\n{text}", "utf-8")
        place.write_text(change.applied(text), "utf-8")
        try:
            yield
        finally:
            self.mend()

    def mend(self) -> None:
        """Take back the change that is made, if there is one."""
        kept = self.folder / "before_change"
        if kept.exists():
            path, _, text = kept.read_text("utf-8").partition("\n")
            (self.folder / path).write_text(text, "utf-8")
            kept.unlink()

    def run(
        self, command: Sequence[str], seconds: float, more: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command in the copy, with all that it starts in one group that ends in time."""
        environment = {
            **os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_PROFILE": "ci", **(more or {}),
        }  # fmt: skip
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            output, _ = process.communicate()
            return Ended(None, output)
        _end(process)
        return Ended(process.returncode, output)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def pytest(*arguments: str) -> list[str]:
    """pytest as this package runs it: in the given order, alone, and without what it caches."""
    return [
        sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider",
        "-p", "no:xdist", "-q", *arguments,
    ]  # fmt: skip
