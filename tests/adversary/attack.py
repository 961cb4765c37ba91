"""The same steps in two worlds: what a case is made of."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.adversary.books import charges
from tests.adversary.model import Case, Charge, Face, Relation, Run, Step, Unopened, World
from tests.adversary.pairs import other
from tests.adversary.place import COPIES, POLICY, put_in_place, write, write_earlier
from tests.adversary.seams import Recorder, check, prepare
from tests.adversary.watched import Inside

PIN = b"the same bytes for both"


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder that goes in the end."""
    path = Path(tempfile.mkdtemp(prefix="adversary-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_both(pairs: Sequence[tuple[World, Path]]) -> None:
    """Write worlds to their folders, with prepared copies where these can be made in each of them.

    Whether rows share a key decides that. Only the owner learns it, and nobody asks before it is so.
    Where a world has an earlier database, copies are made of that, and it is checked.
    """
    for world, place in pairs:
        (write_earlier if world.earlier else write)(world, place)
    wanted = all(world.prepared for world, _ in pairs)
    if not (wanted and all(prepare(place / POLICY) for _, place in pairs)):
        for _, place in pairs:
            (place / COPIES).unlink(missing_ok=True)
    for world, place in pairs:
        if world.earlier:
            check(place / POLICY)
            put_in_place(place)


def run(face: Face, world: World, steps: Sequence[Step], place: Path) -> Run:
    """All steps in a world that is written. What is charged is read from the ledger after each."""
    try:
        session = face.open(world, place)
    except Unopened as error:
        return Run(world, (), opened=error.failure, folder=place)
    transcripts, charged = [], list[Charge]()
    try:
        last = charges(place, 0, -1)[1]
        for number, step in enumerate(steps):
            transcripts.append(session.ask(step))
            new, last = charges(place, last, number)
            charged.extend(new)
    finally:
        session.close()
    return Run(world, tuple(transcripts), tuple(charged), folder=place)


def attack(
    world: World, relation: Relation, owners: Sequence[str], steps: Sequence[Step],
    sampled: bool = True,
) -> Case:  # fmt: skip
    """Both worlds inside this process, with the same randomness and the first one's integers."""
    right = other(world, relation, tuple(owners))
    with folder() as one, folder() as two:
        write_both(((world, one), (right, two)))
        recorder = Recorder(PIN, sampled=sampled, readings=world.readings)
        first = run(Inside(recorder), world, steps, one)
        replayed = Recorder(PIN, recorder.tables, sampled=False, readings=world.readings)
        second = run(Inside(replayed), right, steps, two)
    return Case("inside", relation, tuple(owners), tuple(steps), first, second, pinned=True)
