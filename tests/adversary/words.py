"""Statements that are long, deep, or say the same over and over, one after the other in a process of its own.

A process that is kept busy by one of them, even where no other thread of it may run, is seen from outside.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.adversary import shop
from tests.adversary.accounts import seen
from tests.adversary.faces.servers import Servers
from tests.adversary.judges.defects import REFUSED
from tests.adversary.model import Finding
from tests.adversary.place import POLICY, write
from tests.adversary.pressure import MEGABYTE
from tests.adversary.sequences import FINE

LONGEST = 15.0
"""Seconds within which each is refused or answered."""
STARTING = 60.0
MANY_TIMES = 26
"""A pattern that goes two ways at each of so many places has taken 67 million."""
_OPENED = (
    ("(", ")"), ("ARRAY[", "]"), ("[", "]"), ("CASE WHEN ", " THEN 1 END"), ("NOT ", ""), ("- ", ""), ("CAST(", " AS INTEGER)"),
    ("COALESCE(", ")"), ("(SELECT ", ")"), ("EXTRACT(year FROM ", ")"), ("INTERVAL ", ""), ("x.", "x"), ("{'a': ", "}"),
)  # fmt: skip
_BEFORE = ("/**/", "/* */ ", "/*/**/*/", "--\n", "(", ";", "\t\n ", "WITH a AS (")
REPEATED = (
    *(f"SELECT {one * MANY_TIMES}1{other * MANY_TIMES} FROM people" for one, other in _OPENED),
    *(f"SELECT COUNT(*) FROM people WHERE {one * MANY_TIMES}ok{other * MANY_TIMES}" for one, other in _OPENED),
    *(f"{word * MANY_TIMES}{rest}" for word in _BEFORE for rest in ("SELECT 1", "x")),
    *(f"SELECT COUNT(*) {word * MANY_TIMES} FROM people" for word in _BEFORE[:4]),
)  # fmt: skip


def grown(part: str, times: int) -> str:
    """A text of a person, several times longer at each of so many levels."""
    inner = "SELECT id, city AS c FROM people"
    for _ in range(times):
        inner = f"SELECT id, {part} AS c FROM ({inner}) AS t"
    return f"SELECT COUNT(DISTINCT c) AS n FROM ({inner}) AS t"


def sums(count: int) -> str:
    """Several statistics of so many computed columns."""
    each = "SUM(score * {0}) AS a{0}, VAR_POP(score + {0}) AS b{0}, MEDIAN(money + {0}) AS c{0}"
    return f"SELECT {', '.join(each.format(n) for n in range(count))} FROM people"


LONG = (
    grown("c || c || c || c", 13), grown("REPLACE(c, 'l', 'xxxxxxxx') || c", 12), grown("CONCAT(c, c, c)", 14),
    sums(150), sums(900), "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(9000)) + " FROM people",
)  # fmt: skip
LARGE = (
    f"WITH t AS ({FINE}) SELECT {', '.join(f'{each}.n' for each in 'abcdefgh')}"
    f" FROM {', '.join(f't AS {each}' for each in 'abcdefgh')} LIMIT 14000000"
)
"""Rows of released numbers that take a gigabyte."""
MEMORY = 1300 * MEGABYTE
"""The most that the process may have had in the end: results are bounded by a quarter of a gigabyte."""
ASKED = """
import json, resource, sys, time, dpsql
cursor = dpsql.connect(sys.argv[1], role="analyst").cursor()
for sql in json.load(open(sys.argv[2])):
    began, code = time.perf_counter(), ""
    print("", flush=True)
    try:
        cursor.execute(sql)
    except Exception as error:
        code = getattr(error, "code", "") or type(error).__name__
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(json.dumps([time.perf_counter() - began, code, most]), flush=True)
"""


def repeat(folder: Path, _: Servers) -> Iterator[Finding]:
    """Each statement ends soon, and is refused by a code of dpsql's own or answered."""
    world = shop.shop("words", seconds=int(2 * LONGEST))
    write(world, folder)
    statements = (*REPEATED, *LONG, LARGE)
    (folder / "statements.json").write_text(json.dumps(statements))
    with (folder / "told").open("w") as told:
        child = subprocess.Popen(
            [sys.executable, "-c", ASKED, str(folder / POLICY), str(folder / "statements.json")], stdout=told
        )  # fmt: skip
        try:
            lines = _watched(child, folder / "told")
        finally:
            child.kill()
            child.wait()
    done = [json.loads(line) for line in lines if line]
    for sql, (seconds, code, memory) in zip(statements, done, strict=False):
        if seconds > LONGEST:
            yield seen(world, "a statement keeps its process busy", f"{seconds:.0f} s: {sql[:200]}")
        if memory > MEMORY:
            yield seen(world, "a result takes all memory", f"{memory // MEGABYTE} MB: {sql[:200]}")
            break
        if code and REFUSED.fullmatch(code) is None:
            yield seen(world, f"dpsql fails with {code}", sql[:200])
    if len(done) < len(statements) and any(line == "" for line in lines):
        yield seen(
            world,
            "a statement keeps its process busy",
            f"without an end: {statements[len(done)][:200]}",
        )


def _watched(child: subprocess.Popen[bytes], told: Path) -> list[str]:
    """What it says, until it ends or has said nothing for too long."""
    lines, since = list[str](), time.monotonic()
    while child.poll() is None:
        time.sleep(0.1)
        new = told.read_text().splitlines()
        if len(new) != len(lines):
            lines, since = new, time.monotonic()
        if time.monotonic() - since > (2 * LONGEST if lines else STARTING):
            break
    return told.read_text().splitlines()
