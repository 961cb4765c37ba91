"""Types five commands at a terminal: from a CSV file of one's own to a first private answer.

python tests/support/first_answer.py [FILE.csv]    (without a file, one is made: rides of bicycles)
"""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RIDERS, RIDES = 1_500, 20_000
PATIENCE = 120.0
"""Seconds that one command may take."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A command, what is typed at its prompts, and what it printed."""

    command: str
    answers: tuple[str, ...]
    printed: str
    code: int
    seconds: float


RIDERS_ARE_PROTECTED, THIRTY_RIDES, HALF, AGREED = "1", "30", "0.5", ""
QUESTION = "SELECT station, COUNT(*) AS rides, AVG(minutes) AS minutes FROM rides GROUP BY station"


def commands(csv: Path, *, own: bool) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The commands for a file, each with the answers to its prompts.

    Nobody knows the columns of a person's own file, so its rows are counted, and nothing is asked.
    """
    question = f'SELECT COUNT(*) AS "rows" FROM "{csv.stem}"' if own else QUESTION
    asked, name = shlex.quote(question), shlex.quote(csv.name)
    ask = ("", ()) if own else (" --ask", (RIDERS_ARE_PROTECTED, THIRTY_RIDES, HALF, AGREED))
    return (
        (f"dpsql init {name} -o policy.yaml --suggest-bounds{ask[0]}", ask[1]),
        ("dpsql check policy.yaml", ()),
        (f"dpsql explain --policy policy.yaml {asked}", ()),
        (f"dpsql query --policy policy.yaml {asked}", ()),
        ("dpsql budget --policy policy.yaml", ()),
    )


def make_rides(path: Path) -> None:
    """A file of rides, each of a rider, with a zoned time."""
    stations = ("harbour", "market", "museum", "station")
    with path.open("w", encoding="utf-8") as file:
        file.write("ride_id,rider_id,station,minutes,started\n")
        for ride in range(RIDES):
            station, minutes = stations[ride % 7 % 4], 2 + ride * 37 % 89
            day = f"2025-{1 + ride % 12:02d}-{1 + ride % 28:02d}T08:30:00+02:00"
            file.write(f"{ride},{ride % RIDERS},{station},{minutes},{day}\n")


def type_all(csv: Path, *, own: bool = False) -> Iterator[Typed]:
    """Type every command in the folder of the file, each after the one before has ended."""
    for command, answers in commands(csv, own=own):
        yield _type(command, answers, csv.parent)


def _type(command: str, answers: Sequence[str], folder: Path) -> Typed:
    """Run a command at a terminal of its own; each prompt, which ends with `: `, gets an answer."""
    program, *arguments = shlex.split(command)
    assert program == "dpsql"
    start, (mine, its) = time.monotonic(), pty.openpty()
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "TERM": "dumb", "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsql", *arguments],
        stdin=its, stdout=its, stderr=its, cwd=folder, env=environment,
    )  # fmt: skip
    os.close(its)
    printed, left, seen = b"", list(answers), 0
    try:
        while time.monotonic() - start < PATIENCE:
            if not select.select([mine], [], [], 1.0)[0]:
                continue
            try:
                more = os.read(mine, 65536)
            except OSError:  # the terminal is closed: the command has ended
                break
            printed += more
            if left and printed[seen:].endswith(b": "):
                seen = len(printed)
                os.write(mine, f"{left.pop(0)}\n".encode())
        code = process.wait(timeout=10)
    finally:
        process.kill()
        process.wait()
        os.close(mine)
    text = printed.decode(errors="replace").replace("\r\n", "\n")
    return Typed(command, tuple(answers), text, code, time.monotonic() - start)


def main(arguments: Sequence[str]) -> int:
    """Print what a person sees; the last line says how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        if arguments:
            own = Path(arguments[0])
            csv = Path(folder) / own.name
            csv.write_bytes(own.read_bytes())
        else:
            csv = Path(folder) / "rides.csv"
            make_rides(csv)
        seconds = 0.0
        for typed in type_all(csv, own=bool(arguments)):
            seconds += typed.seconds
            print(f"$ {typed.command}\n{typed.printed}")
            if typed.code:
                return typed.code
    print(f"five commands, {seconds:.0f} seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
