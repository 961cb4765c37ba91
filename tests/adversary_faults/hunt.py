"""An adversary's command, run against a planted fault until it has found something.

The command says what it found: it ends with 1, and its output (or a file that it writes) has lines of
JSON with a key ``finding``. What it is otherwise, is its own matter.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.adversary_faults.fault import Fault
from tests.adversary_faults.plant import ROOT, environment, plant

COMMAND = "{python} -m tests.adversary --seconds {seconds} --seed {seed} --json --first"
"""May also name {findings}, a file that it writes its lines to."""
GRACE = 60.0
"""Seconds beyond its own that it has to end."""
ENDING = 5.0
"""Seconds that it has to end once it has found something."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """What became of one fault."""

    fault: str
    area: str
    found: bool
    by: str
    """What the first finding says of the judge that made it."""
    seconds: float
    """Until the first finding; until the end, where there was none."""
    work: float
    """Seconds of processors in that time, of all its processes: on a busy machine far fewer."""
    seed: int
    ended: int | None
    finding: str = ""
    attacked: str = "both"
    """Where: inside one process, at endpoints, or both by turns."""


def hunt(fault: Fault, folder: Path, command: str, seconds: float, seed: int) -> Hunt:
    """Plant the fault, and let the adversary look for it; it is stopped at its first finding."""
    plant(fault, folder)
    return _watched(fault, folder, command, seconds, seed)


def _watched(fault: Fault, folder: Path, command: str, seconds: float, seed: int) -> Hunt:
    findings = folder / "findings.jsonl"
    findings.unlink(missing_ok=True)
    words = {
        "python": sys.executable,
        "seconds": f"{seconds:g}",
        "seed": seed,
        "findings": findings,
    }
    argv = [word.format(**words) for word in shlex.split(command)]
    begun, worked = time.monotonic(), _worked()
    process = subprocess.Popen(
        argv, env={**environment(folder), "TMPDIR": str(folder)}, cwd=ROOT, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    timer = threading.Timer(seconds + GRACE, _end, (process,))
    timer.start()
    first, took = "", 0.0
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if finding(line) is not None:
                first, took = line.strip(), time.monotonic() - begun
                with suppress(subprocess.TimeoutExpired):
                    process.wait(ENDING)
                break
        else:
            process.wait()
    finally:
        timer.cancel()
        _end(process)
        process.stdout.close()
        process.wait()
    took = took or time.monotonic() - begun
    first = first or next(_lines(findings), "")
    return Hunt(
        fault.name, fault.area, bool(first), judge(first), round(took, 1), round(_worked() - worked, 1),
        seed, process.returncode, first[:2_000], attacked(command),
    )  # fmt: skip


def attacked(command: str) -> str:
    """Where a command looks.

    >>> attacked("python -m tests.adversary --only inside"), attacked(COMMAND)
    ('inside', 'both')
    """
    return command.partition("--only ")[2].partition(" ")[0] or "both"


def _worked() -> float:
    """Seconds of processors that children had who have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _end(process: subprocess.Popen[str]) -> None:
    """It, and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _lines(place: Path) -> Iterator[str]:
    if place.exists():
        yield from (line for line in place.read_text("utf-8").splitlines() if finding(line))


def finding(line: str) -> dict[str, Any] | None:
    """What a line says was found; None for any other line.

    >>> finding('{"finding": "moved farther than priced", "judge": "movement"}')["judge"]
    'movement'
    >>> finding("3000 statements, no finding")
    """
    if '"finding"' not in line:
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "finding" in found else None


def judge(line: str) -> str:
    """Who found it, as far as the line says."""
    found = finding(line) or {}
    inner = found.get("finding")
    inner = inner if isinstance(inner, dict) else {}
    known = (found.get("judge"), inner.get("judge"), inner.get("kind"), found.get("kind"))
    return str(next((one for one in known if one), "")) if line else ""


class State:
    """The hunts so far, in a file of the state folder."""

    def __init__(self, folder: Path) -> None:
        """Made when the first hunt is kept."""
        self._place = folder / "hunts.jsonl"

    def hunts(self) -> dict[tuple[str, int], Hunt]:
        """By fault and seed; the last one counts."""
        if not self._place.exists():
            return {}
        rows = map(json.loads, self._place.read_text("utf-8").splitlines())
        return {(row["fault"], row["seed"]): Hunt(**row) for row in rows}

    def keep(self, found: Hunt) -> None:
        """One more."""
        self._place.parent.mkdir(parents=True, exist_ok=True)
        with self._place.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(found)) + "\n")


def table(hunts: Iterable[Hunt], faults: Iterable[Fault] = ()) -> str:
    """Fault, area, where it was attacked, found by, seconds; and how many, the median and the slowest.

    Of ``faults`` those that nobody hunted are there too.
    """
    known = {hunt.fault: hunt for hunt in hunts}
    rows = [_row(hunt) for hunt in known.values()]
    rows += [(f.name, f.area, "", "not tried", "", "") for f in faults if f.name not in known]
    rows.sort(key=lambda row: (row[1], row[0]))
    head = ("fault", "area", "attacked", "found by", "seconds", "of processors")
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    lines.insert(1, "|---|---|---|---|---|---|")
    found = sorted((one for one in known.values() if one.found), key=lambda one: one.seconds)
    said = f"{len(found)} of {len(rows)} found"
    if found:
        works = sorted(one.work for one in found)
        said += (
            f"; median {found[len(found) // 2].seconds:.0f} s ({works[len(works) // 2]:.0f} s of processors),"
            f" slowest {found[-1].seconds:.0f} s ({found[-1].fault})"
        )
    return "\n".join([*lines, "", said])


def _row(one: Hunt) -> tuple[str, ...]:
    by = (one.by or "yes") if one.found else "not found"
    return one.fault, one.area, one.attacked, by, f"{one.seconds:.0f}", f"{one.work:.0f}"


def names(text: str) -> set[tuple[str, str]]:
    """The faults of a table with their areas.

    >>> names(table([], [Fault("no noise", "noise", (), "")]))
    {('no noise', 'noise')}
    """
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {(row[0], row[1]) for row in rows[1:]}
