"""Which tests reach which changes: learnt file by file, kept in the state folder, used for every judge."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation import probes
from tests.mutation.changes import Change
from tests.mutation.draw import FOLDERS
from tests.mutation.timing import LIMIT, PLACE, REACHED
from tests.mutation.tree import Tree

JUDGES = {
    "unit": ("tests/unit", "tests/wire", "tests/conformance", "tests/golden"),
    "laws": ("tests/laws",),
}
"""The laws are statistics and neighbours; what else is fast stands under ``unit``."""

LEFT_OUT = ("test_superset.py", "test_cube.py", "test_side_by_side.py", "test_wire_clients.py")
"""They need other programs, and are as good as the others without them."""

_NAMED = 0.1
"""What a second of a test counts for the order that is named after the file that is changed."""
_TOGETHER = 10
"""Files in one run, since a run takes as long to begin as the tests of most files."""


@dataclass(slots=True)
class Cover:
    """How long each test takes, and which tests reach each change."""

    seconds: dict[str, float] = field(default_factory=dict)
    reached: dict[str, set[str]] = field(default_factory=dict)
    """Tests by the name of a change."""

    def of(self, change: Change, folders: Sequence[str]) -> list[str]:
        """Tests that reach a change, the fastest first; one in a file of the same name is likely to say more.

        After them the other tests of their files: they may compare what the first test of a file made.
        """
        found = self.reached.get(change.name, set())
        near = {name.split("::")[0] for name in found}
        word = Path(change.path).stem
        ours = [
            name
            for name in self.seconds
            if name.startswith(tuple(f"{f}/" for f in folders)) and name.split("::")[0] in near
        ]
        weight = {name: _NAMED if word in name.split("::")[0] else 1.0 for name in ours}
        return sorted(
            ours, key=lambda name: (name not in found, self.seconds[name] * weight[name], name)
        )

    def within(self, tests: Sequence[str], seconds: float, most: int) -> list[str]:
        """As many of the first tests as should end in time; one at least, if it is not much longer."""
        chosen, total = [], 0.0
        for name in tests[:most]:
            total += self.seconds[name] + 0.005
            if total > seconds and (chosen or total > 3 * seconds):
                break
            chosen.append(name)
        return chosen


def files(tree: Tree) -> list[str]:
    """Test files, those first that judge most: of the folders that are changed, and whole suites."""
    near = (
        *(f"tests/unit/{folder.split('/')[0]}/" for folder in FOLDERS),
        "tests/conformance", "tests/wire", "tests/golden", "tests/laws", "",
    )  # fmt: skip
    folders = [folder for of_judge in JUDGES.values() for folder in of_judge]
    paths = [
        path for folder in folders for path in sorted((tree.folder / folder).rglob("test_*.py"))
    ]
    names = [path.relative_to(tree.folder).as_posix() for path in paths]
    left = [name for name in names if Path(name).name not in LEFT_OUT]
    return sorted(
        left, key=lambda name: next(i for i, of in enumerate(near) if name.startswith(of))
    )


def cover(tree: Tree, drawn: Sequence[Change], state: Path, seconds: float, until: float) -> Cover:
    """What is known, and what can be learnt of further files until a moment of the steady clock."""
    state.mkdir(parents=True, exist_ok=True)
    probed = Tree.at(state / "tree", tree.folder)
    if not (probed.folder / "dpsql_reached.py").exists():
        probes.insert(probed, drawn)
    places = {name: state / (name.replace("/", "+") + ".json") for name in files(tree)}
    missing = [name for name, place in places.items() if not place.exists()]
    for _, group in itertools.groupby(missing, lambda name: name.rpartition("/")[0]):
        while time.monotonic() < until and (names := tuple(itertools.islice(group, _TOGETHER))):
            for name, known in _learnt(probed, names, state, seconds).items():
                places[name].write_text(json.dumps(known), "utf-8")
            print(f"covered: {' '.join(names)}", flush=True)
    whole = Cover()
    for place in places.values():
        if place.exists():
            known = json.loads(place.read_text("utf-8"))
            whole.seconds |= known["seconds"]
            for test, keys in known["reached"].items():
                for key in keys:
                    whole.reached.setdefault(drawn[key].name, set()).add(test)
    return whole


def _learnt(
    tree: Tree, names: Sequence[str], state: Path, seconds: float
) -> dict[str, dict[str, dict[str, object]]]:
    """What the tests of some files reach, as far as they end in time and pass without any change."""
    times, reached = (state / "times").resolve(), (state / "reached").resolve()
    for old in (times, reached):
        old.unlink(missing_ok=True)
    tree.tests(
        [*names, "-p", "tests.mutation.timing", "--timeout=60"], len(names) * 7 * seconds + 60,
        {PLACE: str(times), LIMIT: str(seconds), REACHED: str(reached)},
    )  # fmt: skip
    found: dict[str, dict[str, dict[str, object]]] = {
        n: {"seconds": {}, "reached": {}} for n in names
    }
    if times.exists():
        for part, by_test in json.loads(times.read_text("utf-8")).items():
            for test, said in by_test.items():
                found[test.split("::")[0]][part][test] = said
    return found
