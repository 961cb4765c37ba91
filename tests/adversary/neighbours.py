"""Two endpoints over neighbouring databases, asked the same over the wire, with the same noise.

The exact integers are the same number in both (see ``pinned.py``). So whatever still differs in rows,
types, notes, costs, codes, words or plans tells the databases apart and was not paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.adversary import shop
from tests.adversary.faces.servers import Servers
from tests.adversary.judges.sameness import Sameness
from tests.adversary.live import faces, run_in
from tests.adversary.model import Case, Finding, Step, World
from tests.adversary.place import write

VICTIM = "person:7"
PROGRAM = ("-m", "tests.adversary.pinned")
BY_RANK = ("MEDIAN", "MODE", "PERCENTILE", "MIN(", "MAX(")
"""Values that are chosen from bins, which are no integers: the judge of choices looks at them."""
FACES = ("simple", "extended binary", "http")


def questions() -> tuple[Step, ...]:
    """What the shop is asked, and every plan."""
    return tuple(s for s in shop.questions() if not any(word in s.text for word in BY_RANK))


def pair() -> tuple[World, World]:
    """The shop, and the shop without one person."""
    whole = shop.shop("neighbours")
    return whole, replace(whole, rows=tuple(r for r in whole.rows if r.owner != VICTIM))


def compare(
    folder: Path, _: Servers, worlds: tuple[World, World] | None = None,
    program: Sequence[str] = PROGRAM,
) -> Iterator[Finding]:  # fmt: skip
    """The same steps through each face of both endpoints."""
    worlds, steps = worlds or pair(), questions()
    places = (folder / "with", folder / "without")
    for world, place in zip(worlds, places, strict=True):
        write(world, place)
    with Servers(program=program) as servers:
        for face in faces(servers):
            if face.name in FACES:
                runs = [run_in(face, w, steps, p) for w, p in zip(worlds, places, strict=True)]
                case = Case(face.name, "without", (VICTIM,), steps, *runs, pinned=True)
                found = Sameness().judge(case)
                if found is not None:
                    yield found
