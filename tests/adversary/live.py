"""Attacks on running endpoints: the same steps through every face, and scripts in their order.

Each attack is a function that yields findings. ``ATTACKS`` lists all of them, with the seconds that
each takes about; the runner and the tests take them from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.adversary import canaries, shop, worlds
from tests.adversary.books import charges
from tests.adversary.dice import Dice
from tests.adversary.faces.cli import CommandFace
from tests.adversary.faces.dbapi import ModuleFace
from tests.adversary.faces.extended import extended_faces
from tests.adversary.faces.http import HttpClient, HttpFace
from tests.adversary.faces.protocol import Conversation
from tests.adversary.faces.servers import Servers
from tests.adversary.faces.session import OpenWorld, is_absent
from tests.adversary.faces.simple import simple_face
from tests.adversary.judges.agreement import BESIDE, Agreement
from tests.adversary.judges.canaries import Canaries, Closed, leaks
from tests.adversary.judges.defects import Defects
from tests.adversary.judges.payment import Payment
from tests.adversary.judges.recall import Recall
from tests.adversary.model import (
    Case,
    Charge,
    Face,
    Finding,
    Judge,
    Run,
    Step,
    Transcript,
    World,
    finding,
)
from tests.adversary.place import POLICY, write
from tests.adversary.sequences import SCRIPTS, Script
from tests.adversary.statements import series

QUERIES = ("SELECT", "WITH", "VALUES")
GENERATED_STEPS = 24
TYPED_ONE_IN = 40
"""Of many statements the command line is asked these: a process for each takes a second."""
AUDIT = Payment(audit=True)
"""A process of its own: once for each ledger, after the last face."""
TURNS = 2
JUDGES: tuple[Judge, ...] = (Defects(), Payment(), Recall(), Agreement())


def faces(servers: Servers) -> tuple[Face, ...]:
    """Every way to dpsql, the module first: others are held against it."""
    return (
        ModuleFace(), simple_face(servers), *extended_faces(servers), HttpFace(servers), CommandFace(),
    )  # fmt: skip


def run_in(
    face: Face,
    world: World,
    steps: Sequence[Step],
    folder: Path,
    heard: dict[str, bytes] | None = None,
) -> Run:
    """All steps through a face in a world that is written already, with what each was charged.

    ``heard`` gets every byte that the face was sent, if the face keeps them.
    """
    session = face.open(world, folder)
    transcripts, charged = [], list[Charge]()
    try:
        last = _last_charge(folder)
        for number, step in enumerate(steps):
            transcripts.append(session.ask(step))
            new, last = charges(folder, last, number)
            charged.extend(new)
    finally:
        session.close()
    if heard is not None and isinstance(session, OpenWorld):
        heard[face.name] = session.heard()
    return Run(world, tuple(transcripts), tuple(charged), folder=folder)


def case_of(face: str, one: Run, other: Run) -> Case:
    """Two runs of the same steps in one world."""
    steps = tuple(t.step for t in one.transcripts)
    return Case(face, "same", (), steps, one, other)


def judged(case: Case) -> Iterator[Finding]:
    """What the judges of live runs find."""
    for judge in JUDGES:
        found = judge.judge(case)
        if found is not None:
            yield found


def hold_faces_together(
    world: World, steps: Sequence[Step], folder: Path, chosen: Sequence[Face]
) -> Iterator[Finding]:
    """The same steps through each face, beside the first one, whose answers are stored by then."""
    write(world, folder)
    first, *others = chosen
    yield from judged(case_of(first.name, *(run_in(first, world, steps, folder),) * 2))
    told = known = run_in(first, world, steps, folder)
    for face in others:
        told = run_in(face, world, steps, folder)
        yield from judged(case_of(f"{face.name}{BESIDE}{first.name}", known, told))
    yield from _audited(case_of(first.name, told, told))


def hold_generated(seed: str, folder: Path, chosen: Sequence[Face]) -> Iterator[Finding]:
    """A generated world and its statements, through each face.

    The endpoint answers statements about nothing from PostgreSQL's catalog, where the module has its
    own dialect alone. So only statements about tables of the policy are held together. A ``?`` is
    written ``$1``, which all faces read; without its value it is refused by all alike.
    """
    ground = worlds.make(seed)
    names = re.compile(rf"\b({'|'.join(each.name for each in ground.tables)})\b")
    written = [
        step for step in series(ground, Dice(seed), GENERATED_STEPS)
        if step.act in ("ask", "explain") and step.text.lstrip("( ").upper().startswith(QUERIES)
        and names.search(step.text)
    ]  # fmt: skip
    steps = [replace(step, text=step.text.replace("?", "$1")) for step in written]
    steps += [replace(step, parameters=()) for step in written if "?" in step.text]
    yield from hold_faces_together(shop.with_password(ground.world), steps, folder, chosen)


def _audited(case: Case) -> Iterator[Finding]:
    """What the auditor finds in the ledger behind a case."""
    found = AUDIT.judge(case)
    if found is not None:
        yield found


def play(script: Script, face: Face, folder: Path, audit: bool = False) -> Iterator[Finding]:
    """A script through one face. Its policy is read anew, with a data version of its own.

    So nothing that was answered before is recalled, and one endpoint does for all scripts.
    """
    world = shop.shop(f"{script.name} {face.name}", basic=script.basic)
    if not (folder / POLICY).exists():
        write(world, folder)
    steps = (Step("reload", world.policy), *script.steps(world))
    run = run_in(face, world, steps, folder)
    if any(is_absent(each) for each in run.transcripts):
        raise ValueError(f"{face.name} cannot play {script.name}: take it off the script's faces")
    case, told = case_of(face.name, run, run), run.transcripts[1:]
    if not script.expects(told):
        yield finding(script.name, case, len(told), script.means, [said(each) for each in told])
    yield from judged(case)
    if audit:
        yield from _audited(case)


def said(each: Transcript) -> str:
    """One step and what came of it, in a line."""
    came = each.error or each.rows[:3] or each.text
    return f"{each.step.act} {each.step.text[:80]!r}: {came}, cost {each.cost}"


def look_for_marks(
    folder: Path, servers: Servers, chosen: Sequence[Face], turn: int
) -> Iterator[Finding]:
    """Attempts to read what is around the data, through each face, while the stranger is connected.

    Each turn makes some of the attempts, so that it is short; ``TURNS`` of them make all.

    Every byte that came back is looked at, and so are the log, standard error and the metrics.
    """
    world = canaries.plant(folder)
    server, heard = servers.at(world, folder), dict[str, bytes]()
    run_in(simple_face(servers), world, canaries.BEFORE, folder)
    stranger = canaries.STRANGER
    named = [("application_name", canaries.MARKS["application"])]
    other = Conversation(server.address, stranger.name, stranger.password, options=named)
    steps = canaries.attempts(folder)[turn % TURNS :: TURNS]
    runs = {
        face.name: run_in(
            face,
            world,
            steps[::TYPED_ONE_IN] if face.name == CommandFace.name else steps,
            folder,
            heard,
        )
        for face in chosen
    }
    other.close()
    owner = HttpClient(server.http_address, servers.token(folder, "owner"), bytearray())
    heard["metrics"] = owner.request("GET", "/metrics")[1]
    owner.close()
    heard["standard error"] = server.said.encode()
    heard["log"] = b"".join(path.read_bytes() for path in folder.glob("*.log*"))
    for name, run in runs.items():
        watching = (Canaries(), Closed(), Defects(), Payment())
        found = [judge.judge(case_of(name, run, run)) for judge in watching]
        yield from (each for each in found if each is not None)
    whole = case_of("all", *(next(iter(runs.values())),) * 2)
    for source, place, around in leaks(heard):
        yield finding("canaries", whole, 0, f"{source} holds the mark of {place}", [around])


def _last_charge(folder: Path) -> int:
    """The number of the last entry so far."""
    return charges(folder, 0, -1)[1]


def play_all(
    chosen: Sequence[Face], folder: Path, scripts: Sequence[Script] = SCRIPTS
) -> Iterator[Finding]:
    """Every script through every face that can play it."""
    for script in scripts:
        place = folder / ("basic" if script.basic else "zcdp")
        able = [face for face in chosen if face.name in script.faces]
        for face in able:
            yield from play(script, face, place, audit=face is able[-1])
