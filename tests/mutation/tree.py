"""A copy of the repository, in which one change at a time is made and tried."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.changes import Change

ROOT = Path(__file__).parents[2]
PARTS = ("dpsql", "tests", "fixtures", "grammar", "benchmarks", "pyproject.toml", "README.md",
         "SECURITY.md", "CHANGELOG.md", "Makefile", "LICENSE", "requirements.lock")  # fmt: skip

_ALONE = (
    "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "-q",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
"""In the given order, in one process, without what pytest keeps for its next run; plugins are loaded already."""
_NEW = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
_MEMORY = 8 << 30
"""Bytes beyond those of the process: a change may ask for all that there is."""
_LIBRARIES = ("pytest", "hypothesis", "numpy", "pyarrow", "pyarrow.compute", "duckdb", "lark", "yaml",
              "jsonschema", "scipy.stats", "mpmath", "psycopg")  # fmt: skip


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
    def at(cls, folder: Path, root: Path = ROOT) -> Tree:
        """Made once; a copy that is there is the one that the results so far are of."""
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            leave = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
            for part in PARTS:
                source, target = root / part, folder / part
                if source.is_dir():
                    shutil.copytree(source, target, ignore=leave)
                elif source.exists():
                    shutil.copy2(source, target)
            (folder / "whole").write_text(_commit(root))
        return cls(folder)

    @property
    def commit(self) -> str:
        """Of the code, where it was copied from a repository."""
        return (self.folder / "whole").read_text("utf-8")

    def text(self, path: str) -> str:
        """A file without a change."""
        return (self.folder / path).read_text("utf-8")

    @contextlib.contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """One change, taken back afterwards; a run that was killed in it is mended by the next."""
        place, kept = self.folder / change.path, self.folder / "before_change"
        text = place.read_text("utf-8")
        kept.write_text(f"{change.path}\n{text}", "utf-8")
        self._write(place, change.applied(text))
        try:
            yield
        finally:
            self.mend()

    def mend(self) -> None:
        """Take back the change that is made, if there is one."""
        kept = self.folder / "before_change"
        if kept.exists():
            path, _, text = kept.read_text("utf-8").partition("\n")
            self._write(self.folder / path, text)
            kept.unlink()

    @staticmethod
    def _write(place: Path, text: str) -> None:
        """Without the compiled file, which may look as new as the text."""
        place.write_text(text, "utf-8")
        Path(importlib.util.cache_from_source(str(place))).unlink(missing_ok=True)

    def run(self, command: Sequence[str], seconds: float) -> Ended:
        """Run a command in the copy, with all that it starts in one group that ends in time."""
        process = subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, **self._environment()}, text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _end(process.pid)
            output, _ = process.communicate()
            return Ended(None, output)
        _end(process.pid)
        return Ended(process.returncode, output)

    def tests(
        self, arguments: Sequence[str], seconds: float, more: Mapping[str, str] | None = None
    ) -> Ended:
        """Run pytest in a fork of this process, which has loaded what is not ours already.

        A process of its own takes seconds to begin, which is longer than most tests take.
        """
        output = self.folder / "output"
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            self._child([*_ALONE, *arguments], output, more or {})
        until = time.monotonic() + seconds
        code = None
        while code is None and time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.02)
        _end(child)
        if code is None:
            os.waitpid(child, 0)
        return Ended(code, output.read_text("utf-8", "replace"))

    def _child(self, arguments: list[str], output: Path, more: Mapping[str, str]) -> None:
        code = 70
        try:
            import resource  # which Windows does not have

            os.setsid()
            os.chdir(self.folder)
            os.environ.update(self._environment() | dict(more))
            sys.dont_write_bytecode = False
            most = _data_size() + _MEMORY  # a fork has what its process had
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            nothing, said = os.open(os.devnull, os.O_RDONLY), os.open(output, _NEW, 0o600)
            for source, target in ((nothing, 0), (said, 1), (said, 2)):
                os.dup2(source, target)
            sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 (to the end)
            for name in [n for n in sys.modules if n.split(".")[0] in ("dpsql", "tests")]:
                del sys.modules[name]
            sys.path.insert(0, str(self.folder))
            code = int(_main(arguments))
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001 (it is printed where the caller reads)
            traceback.print_exc()
        finally:
            os._exit(code)

    def _environment(self) -> dict[str, str]:
        return {
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "",
            "HYPOTHESIS_PROFILE": "ci",
        }


def _data_size() -> int:
    """The bytes of data of this process, where the system tells."""
    status = Path("/proc/self/status")
    lines = status.read_text("utf-8").splitlines() if status.exists() else []
    sizes = [int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:")]
    return sizes[0] if sizes else 0


def _commit(root: Path) -> str:
    if (root / "whole").exists():
        return (root / "whole").read_text("utf-8")
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or "unknown"


def _main(arguments: list[str]) -> int:
    import pytest  # its plugins are named to it anew in each fork

    return int(pytest.main(arguments))


def load() -> None:
    """What tests import and no change touches: a fork has it."""
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
