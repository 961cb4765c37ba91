"""Answers of one copy of the code: asked for as many rounds as are wanted, and kept in a file of state.

The file is named by suite, label, settings, the digest of the code and that of the suite, so a run that was
interrupted goes on, and no answer of other code or of another suite is taken for one of this.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.labels import Label
from benchmarks.accuracy.suites import Question, Suite

ROOT = Path(__file__).parents[2]
LINE = 'limits: {threads: 1, max_cells: 1000000}\nsource: {engine: duckdb, path: "%s"}\n'


class CannotAsk(Exception):
    """A copy of the code cannot open the policy of a run."""


@dataclass(frozen=True)
class Code:
    """A copy of the package, which stays as it is while the tree that it was made from is edited."""

    name: str
    digest: str
    tree: Path


def code(wanted: str, place: Path) -> Code:
    """A copy of the package of a tree (a folder) or of a commit."""
    folder = Path(wanted)
    made = place / "trees" / f"new-{os.getpid()}"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    if (folder / "dpsql").is_dir():
        name = _git(folder, "describe", "--always", "--dirty") or folder.name
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(folder / "dpsql", made / "dpsql", ignore=ignored)
    else:
        name = _git(ROOT, "rev-parse", "--short", f"{wanted}^{{commit}}")
        if not name:
            raise CannotAsk(f"{wanted} is neither a folder that has dpsql nor a commit")
        packed = subprocess.run(
            ["git", "archive", name, "dpsql"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(made, filter="data")
    found = digest(made)
    tree = place / "trees" / found[:12]
    if tree.exists():
        shutil.rmtree(made)
    else:
        made.rename(tree)
    return Code(name, found, tree)


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def digest(tree: Path) -> str:
    """Of all modules of the package."""
    found = hashlib.sha256()
    for path in sorted((tree / "dpsql").rglob("*.py")):
        found.update(path.relative_to(tree).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


@dataclass(frozen=True)
class Run:
    """A suite under a label and settings, asked of one copy of the code."""

    suite: Suite
    label: Label
    settings: Sequence[str]
    groups: int | None
    code: Code
    place: Path

    @property
    def file(self) -> Path:
        """Where answers are kept."""
        more = [*self.settings, *([f"groups = {self.groups}"] if self.groups else [])]
        set_ = [re.sub(r"[^\w.]+", "_", word) for word in more]
        name = "-".join([self.suite.name, self.label.name, *set_, self.code.digest[:12]])
        return self.place / "state" / f"{name}-{self.suite.digest[:12]}.jsonl"

    def answers(self) -> dict[str, list[Mapping[str, Any]]]:
        """What is kept, by question; a last line that was cut off is dropped."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        if self.file.exists():
            text = self.file.read_text()
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                self.file.write_text(whole)
            for line in map(json.loads, whole.splitlines()):
                found.setdefault(line["id"], []).append(line)
        return found

    def ask(self, data: Path, draws: int, wanted: Iterable[Question]) -> None:
        """Ask each question until it has so many answers."""
        questions = {q.id: q.sql for q in wanted}
        asked = Counter({q: len(lines) for q, lines in self.answers().items()})
        if all(asked[q] >= draws for q in questions):
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        policy = LINE % data.absolute() + self.suite.policy + self.label.policy(self.groups)
        job = {
            "file": str(self.file.absolute()), "tree": str(self.code.tree.absolute()),
            "policy": policy, "questions": questions, "asked": asked, "draws": draws,
            "settings": list(self.settings),
        }  # fmt: skip
        paths = os.pathsep.join([job["tree"], str(ROOT)])
        done = subprocess.run(
            [sys.executable, "-P", str(Path(__file__).with_name("ask.py"))], input=json.dumps(job),
            text=True, env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        if done.returncode:
            raise CannotAsk(f"{self.code.name}, {self.label.name}: {done.stderr.strip()[-300:]}")
