"""Attacks on running endpoints, one after the other, for as long as they are given.

The number of the next attack is kept in a folder, and so is what was found. Most attacks hold all
faces together in a generated world; some play scripts, look for marks, press a server or take times.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from tests.adversary.faces.cli import CommandFace
from tests.adversary.faces.servers import Servers
from tests.adversary.judges.agreement import BESIDE
from tests.adversary.live import (
    faces,
    hold_faces_together,
    hold_generated,
    look_for_marks,
    play_all,
)
from tests.adversary.model import Face, Finding, Unopened
from tests.adversary.pressure import press
from tests.adversary.report import report
from tests.adversary.seeds import Seed, to_json
from tests.adversary.sequences import SCRIPTS
from tests.adversary.shrink import alike, shrink
from tests.adversary.timing import time_answers, time_conditions

ROUND = 16
"""Attacks of a round: these, by their place in it; all others are generated worlds."""
MARKS, PRESSURE, TIMES, CONDITIONS = 0, 5, 10, 15
PLAYED = (2, 7, 12)
SHRINKING = 60.0


@dataclass
class Known:
    """What is known after so many attacks."""

    folder: Path
    next: int = 0
    found: dict[str, str] = field(default_factory=dict)
    """Findings by what they say."""

    @classmethod
    def load(cls, folder: Path) -> Known:
        """Go on from a folder."""
        path = folder / "endpoints.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        return cls(folder, known.get("next", 0), known.get("found", {}))

    def save(self) -> None:
        """Write all of it or nothing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / "endpoints.new"
        new.write_text(json.dumps({"next": self.next, "found": self.found}, indent=1))
        new.replace(self.folder / "endpoints.json")


def attack(number: int, folder: Path) -> Iterator[Finding]:
    """The attack of a number, with servers of its own in an empty folder."""
    with Servers() as servers:
        chosen = [face for face in faces(servers) if face.name != CommandFace.name]
        match number % ROUND:
            case place if place in PLAYED:
                turn = number // ROUND * len(PLAYED) + PLAYED.index(place)
                yield from play_all(chosen, folder, [SCRIPTS[turn % len(SCRIPTS)]])
            case place if place == MARKS:
                yield from look_for_marks(folder / "marks", servers, faces(servers))
            case place if place == PRESSURE:
                yield from press(folder / "pressed", servers)
            case place if place == TIMES:
                yield from time_answers(folder)
            case place if place == CONDITIONS:
                yield from time_conditions(folder / "strict")
            case _:
                yield from hold_generated(f"endpoint {number}", folder / "world", chosen)


def explore(folder: Path, seconds: float) -> list[str]:
    """Attack until the time is over; the reports of what was found and was not known."""
    known, end, reports = Known.load(folder), time.monotonic() + seconds, list[str]()
    while time.monotonic() < end:
        place, found = Path(tempfile.mkdtemp(prefix="adversary-")), list[Finding]()
        try:
            found += attack(known.next, place)
            sys.stderr.write(f"endpoints {known.next}: {len(found)} found\n")
        except Unopened as error:
            sys.stderr.write(f"endpoints {known.next}: not opened: {error}\n"[:300])
        finally:
            shutil.rmtree(place, ignore_errors=True)
        for finding in found:
            reports += _new(known, finding)
        known.next += 1
        known.save()
    return reports


def smaller(finding: Finding) -> Seed:
    """The least that two faces still differ in; what is not about two faces is left as it is."""
    seed = Seed(finding.world, finding.relation, finding.owners, finding.steps)
    names = finding.face.split(BESIDE)
    if len(names) != 2:
        return seed
    with Servers() as servers:
        pair = [face for name in reversed(names) for face in faces(servers) if face.name == name]
        return shrink(seed, finding, _again(finding, pair), SHRINKING)


def _again(finding: Finding, pair: Sequence[Face]) -> Callable[[Seed], Finding | None]:
    """Whether the faces still differ so in a smaller world."""

    def still(seed: Seed) -> Finding | None:
        place = Path(tempfile.mkdtemp(prefix="adversary-"))
        try:
            found = list(hold_faces_together(seed.world, seed.steps, place / "world", pair))
            return next((each for each in found if alike(finding, each)), None)
        except Exception:  # noqa: BLE001 (what is no world or no policy any more finds nothing)
            return None
        finally:
            shutil.rmtree(place, ignore_errors=True)

    return still


def _new(known: Known, finding: Finding) -> list[str]:
    """The report of a finding that was not known, made small; all faces that show it are one."""
    what = finding.meaning.partition(" differ ")[2] or finding.meaning
    codes = re.findall(r"code='(\w*)'", " ".join(finding.details))
    sort = re.sub(r"\d+\.\d+|incident \w+", "", f"{finding.judge} {what} {codes}")
    if sort in known.found:
        return []
    seed = smaller(finding)
    text = report(finding, seed)
    name = blake2b(sort.encode(), digest_size=6).hexdigest()
    (known.folder / "findings").mkdir(parents=True, exist_ok=True)
    (known.folder / "findings" / f"{name}.txt").write_text(text, encoding="utf-8")
    (known.folder / "findings" / f"{name}.json").write_text(to_json(seed), encoding="utf-8")
    known.found[sort] = f"{name}.txt"
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    return [text]
