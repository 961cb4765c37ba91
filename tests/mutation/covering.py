"""Which tests run which lines: made file by file, kept in the state folder, used for every change."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coverage import CoverageData

from tests.mutation.changes import Change
from tests.mutation.draw import FOLDERS
from tests.mutation.timing import LIMIT, PLACE
from tests.mutation.tree import Tree, pytest

JUDGES = {
    "unit": ("tests/unit", "tests/conformance", "tests/golden", "tests/grammar", "tests/wire"),
    "laws": ("tests/laws",),
}
"""The laws are statistics and neighbours; all else that is fast enough stands under ``unit``."""

LEFT_OUT = ("test_superset.py", "test_cube.py", "test_side_by_side.py", "test_wire_clients.py")
"""They need other programs, and are as good as the others without them."""


@dataclass(slots=True)
class Cover:
    """How long each test takes, and which tests run each line."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)

    def of(self, change: Change, folders: Sequence[str]) -> list[str]:
        """Tests that run a change: those named after its file first, then the fastest.

        What runs only when a module is imported is judged by all tests that run something of it.
        """
        file = self.lines.get(change.path, {})
        first, last = change.lines
        place = change.place
        found: set[str] = set()
        for line in range(place.line, place.end_line + 1):
            found |= file.get(line, set())
        if not found:
            for line in range(first, last + 1):
                found |= file.get(line, set())
        if not found:
            found = set().union(*file.values())
        word = Path(change.path).stem
        ours = [name for name in found if name.startswith(tuple(f"{f}/" for f in folders))]
        return sorted(ours, key=lambda name: (word not in name, self.seconds[name], name))

    def within(self, tests: Sequence[str], seconds: float, most: int) -> list[str]:
        """As many of the first tests as should end in time."""
        chosen, total = [], 0.0
        for name in tests[:most]:
            total += self.seconds[name] + 0.01
            if total > seconds:
                break
            chosen.append(name)
        return chosen


def files(tree: Tree) -> list[str]:
    """Test files, those first that judge most: of the folders that are changed, then in turn of all others."""
    near = tuple(f"tests/unit/{folder.split('/')[0]}/" for folder in FOLDERS)
    found: list[tuple[bool, int, str]] = []
    for folders in JUDGES.values():
        for folder in folders:
            paths = sorted((tree.folder / folder).rglob("test_*.py"))
            names = [path.relative_to(tree.folder).as_posix() for path in paths]
            found += ((not n.startswith(near), at, n) for at, n in enumerate(names))
    return [name for _, _, name in sorted(found) if Path(name).name not in LEFT_OUT]


def cover(tree: Tree, state: Path, seconds: float, until: float) -> Cover:
    """What is known, and what can be learnt of further files until a moment of the steady clock."""
    state.mkdir(parents=True, exist_ok=True)
    for name in files(tree):
        place = state / (name.replace("/", "+") + ".json")
        if place.exists() or time.monotonic() > until:
            continue
        place.write_text(json.dumps(_learnt(tree, name, state, seconds)), "utf-8")
        print(f"covered: {name}", flush=True)
    whole = Cover()
    for place in sorted(state.glob("*.json")):
        known = json.loads(place.read_text("utf-8"))
        whole.seconds |= known["seconds"]
        for path, lines in known["lines"].items():
            file = whole.lines.setdefault(path, {})
            for line, tests in lines.items():
                file.setdefault(int(line), set()).update(tests)
    return whole


def _learnt(tree: Tree, name: str, state: Path, seconds: float) -> dict[str, object]:
    """Lines of one file's tests, as far as they end in time and pass without any change."""
    data, times = state / "coverage", state / "times"
    for old in (data, times):
        old.unlink(missing_ok=True)
    folders = [f"--cov=dpsql/{folder}" for folder in FOLDERS]
    command = pytest(
        name, *folders, "--cov-context=test", "--cov-report=",
        "-p", "tests.mutation.timing", "--timeout=60",
    )  # fmt: skip
    tree.run(
        command, 3 * seconds + 60,
        {"COVERAGE_FILE": str(data.resolve()), PLACE: str(times.resolve()), LIMIT: str(seconds)},
    )  # fmt: skip
    passed: dict[str, float] = json.loads(times.read_text("utf-8")) if times.exists() else {}
    lines: dict[str, dict[int, list[str]]] = {}
    if data.exists():
        found = CoverageData(str(data))
        found.read()
        for measured in found.measured_files():
            path = Path(measured).relative_to(tree.folder.resolve()).as_posix()
            for line, contexts in found.contexts_by_lineno(measured).items():
                tests = {context.rpartition("|")[0] for context in contexts} & passed.keys()
                if tests:
                    lines.setdefault(path, {})[line] = sorted(tests)
    return {"seconds": passed, "lines": lines}
