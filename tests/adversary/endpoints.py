"""Attacks on running endpoints, one after the other, for as long as they are given.

The number of the next attack is kept in a folder, and so is what was found. Most attacks hold all
faces together in a generated world; some play scripts, look for marks, press a server or take times.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from tests.adversary.accounts import spend
from tests.adversary.crowds import crowd
from tests.adversary.doors import encrypted, knock, wait
from tests.adversary.faces.cli import CommandFace
from tests.adversary.faces.servers import Servers
from tests.adversary.judges.agreement import BESIDE
from tests.adversary.live import (
    TURNS,
    faces,
    hold_faces_together,
    hold_generated,
    look_for_marks,
    play_all,
)
from tests.adversary.model import Face, Finding
from tests.adversary.neighbours import compare
from tests.adversary.pressure import press
from tests.adversary.report import Voice, report
from tests.adversary.seeds import Seed, to_json
from tests.adversary.sequences import SCRIPTS
from tests.adversary.shrink import alike, shrink
from tests.adversary.timing import time_answers, time_conditions
from tests.adversary.words import repeat

Kind = Literal[
    "scripts", "accounts", "doors", "waits", "encrypted", "generated", "marks", "pressure", "times",
    "conditions", "neighbours", "crowds", "words",
]  # fmt: skip
ROUND: tuple[Kind, ...] = (
    "encrypted", "waits", "accounts", "words", "crowds", "doors", "marks", "scripts", "pressure", "marks", "scripts", "generated",
    "scripts", "neighbours", "scripts", "generated", "times", "marks", "scripts", "generated", "conditions", "scripts",
)  # fmt: skip
"""What is done in turn."""
ALONE: Mapping[Kind, Callable[[Path, Servers], Iterator[Finding]]] = {
    "accounts": spend,
    "doors": knock,
    "waits": wait,
    "encrypted": encrypted,
    "neighbours": compare,
    "pressure": press,
    "crowds": crowd,
    "words": repeat,
    "times": time_answers,
    "conditions": time_conditions,
}
"""Attacks that choose their ways to dpsql themselves."""
PARTS = 4
"""A turn of scripts plays so many-th of them, through one face."""
SHRINKING = 60.0


@dataclass
class Known:
    """What is known after so many attacks."""

    folder: Path
    seed: str = ""
    next: int = 0
    found: dict[str, str] = field(default_factory=dict)
    """Findings by what they say."""

    @classmethod
    def load(cls, folder: Path, seed: str = "") -> Known:
        """Go on from a folder."""
        path = folder / "endpoints.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        return cls(folder, seed, known.get("next", 0), known.get("found", {}))

    def save(self) -> None:
        """Write all of it or nothing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / "endpoints.new"
        new.write_text(json.dumps({"next": self.next, "found": self.found}, indent=1))
        new.replace(self.folder / "endpoints.json")


def attack(number: int, folder: Path, seed: str = "") -> Iterator[Finding]:
    """The attack of a number, with servers of its own in an empty folder."""
    lap, place = divmod(number, len(ROUND))
    kind = ROUND[place]
    turn = lap * ROUND.count(kind) + ROUND[:place].count(kind)
    with Servers() as servers:
        if kind in ALONE:
            yield from ALONE[kind](folder / kind, servers)
        else:
            yield from _through_faces(kind, turn, folder, servers, f"endpoint {seed}{number}")


def _through_faces(
    kind: Kind, turn: int, folder: Path, servers: Servers, name: str
) -> Iterator[Finding]:
    every = faces(servers)
    several = [face for face in every if face.name != CommandFace.name]
    if kind == "scripts":
        face = several[turn // PARTS % len(several)]
        yield from play_all([face], folder, SCRIPTS[turn % PARTS :: PARTS])
    elif kind == "marks":
        face = every[(1 + turn // TURNS) % len(every)]
        yield from look_for_marks(folder / "marks", servers, [face], turn)
    else:
        module, *others = several
        pair = [others[(2 * turn + step) % len(others)] for step in (0, 1)]
        yield from hold_generated(name, folder / "world", [module, *pair])


def attack_next(known: Known, voice: Voice) -> int:
    """The next attack; how much was found that was not known."""
    place, found, count = Path(tempfile.mkdtemp(prefix="adversary-")), 0, 0
    began, number = time.monotonic(), known.next
    known.next += 1
    try:
        for finding in attack(number, place, known.seed):
            found += 1
            count += _new(known, finding, voice)
            if count and voice.first:
                break
    except Exception as error:  # noqa: BLE001 (on a busy machine a server may not start in time)
        voice.say(f"endpoints {number}: not an attack: {error!r}")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    voice.say(f"endpoints {number}: {found} found in {time.monotonic() - began:.0f} s")
    known.save()
    return count


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


def _new(known: Known, finding: Finding, voice: Voice) -> bool:
    """Report what was not known, made small; all faces that show it are one."""
    what = finding.meaning.partition(" differ ")[2] or finding.meaning
    codes = re.findall(r"code='(\w*)'", " ".join(finding.details))
    sort = re.sub(r"\d+\.\d+|incident \w+", "", f"{finding.judge} {what} {codes}")
    if sort in known.found:
        return False
    voice.found(finding)
    name = blake2b(sort.encode(), digest_size=6).hexdigest()
    known.found[sort] = f"{name}.txt"
    if voice.first:
        return True
    seed = smaller(finding)
    text = report(finding, seed)
    (known.folder / "findings").mkdir(parents=True, exist_ok=True)
    (known.folder / "findings" / f"{name}.txt").write_text(text, encoding="utf-8")
    (known.folder / "findings" / f"{name}.json").write_text(to_json(seed), encoding="utf-8")
    voice.report(text)
    return True
