"""When memory is given back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from dpsql.serve.upkeep import LONGEST, STEP, Upkeep

SMALL, LARGE = 10 * STEP, 30 * STEP


class Process:
    """A process of which so much is used, and so much is freed and kept."""

    def __init__(self) -> None:
        self.used, self.kept, self.given = float(SMALL), 0.0, 0

    def size(self) -> float:
        return self.used + self.kept

    def give_back(self) -> None:
        self.kept, self.given = 0.0, self.given + 1


@pytest.fixture
def process() -> Iterator[Process]:
    return Process()


def _looked(process: Process, upkeep: Upkeep, times: int) -> int:
    before = process.given
    for _ in range(times):
        upkeep.look()
    return process.given - before


def test_what_is_freed_is_given_back_at_once(process: Process) -> None:
    upkeep = Upkeep(process.size, process.give_back)
    assert _looked(process, upkeep, 10) == 0
    process.kept = LARGE
    assert _looked(process, upkeep, 1) == 1
    assert process.size() == SMALL
    assert _looked(process, upkeep, 10) == 0, "there is nothing to give back"


def test_what_is_used_is_tried_more_and_more_seldom(process: Process) -> None:
    upkeep = Upkeep(process.size, process.give_back)
    upkeep.look()
    process.used = LARGE
    assert _looked(process, upkeep, 1) == 1
    assert _looked(process, upkeep, 10 * LONGEST) < 20


def test_what_is_freed_long_after_it_has_grown_is_given_back_too(process: Process) -> None:
    upkeep = Upkeep(process.size, process.give_back)
    upkeep.look()
    process.used = LARGE
    _looked(process, upkeep, 10 * LONGEST)
    process.used, process.kept = SMALL, LARGE - SMALL
    _looked(process, upkeep, LONGEST)
    assert process.size() == SMALL


WORK = """
import gc, sys
import duckdb
from dpsql.diagnostics.operation.footprint import resident
from dpsql.serve.upkeep import give_back
def grow():
    kept = [[str(i)] for i in range(1_000_000)]
    for item in kept:
        item.append(item)
before = resident()
gc.disable()
grow()
grown = resident()
if sys.argv[1] == "give":
    give_back()
print(grown - before, resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell")
@pytest.mark.parametrize(("way", "gone"), [("give", True), ("keep", False)])
def test_what_refers_to_itself_goes_back_to_the_system(way: str, gone: bool) -> None:
    found = subprocess.run(
        [sys.executable, "-c", WORK, way], capture_output=True, text=True, check=True
    )
    grown, left = map(float, found.stdout.split())
    assert grown > 100e6
    assert (left < grown / 4) is gone


SORT = """
import sys, threading
import duckdb
from dpsql.diagnostics.operation.footprint import resident
from dpsql.engines.duckdb import allocator
root = duckdb.connect(":memory:", config={"threads": 2})
root.execute("SELECT 1").fetchall()
if sys.argv[1] == "give":
    allocator.keep_little(root)
before, worked, stay = resident(), threading.Barrier(5), threading.Event()
def work():
    with root.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT repeat(md5(i::VARCHAR), 20)) FROM range(40000) AS r(i)").fetchall()
    worked.wait()
    stay.wait()
for _ in range(4):
    threading.Thread(target=work).start()
worked.wait()
grown = resident()
if sys.argv[1] == "give":
    allocator.give_back()
print(grown - before, resident() - before)
stay.set()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell")
def test_what_an_engine_has_freed_goes_back_to_the_system() -> None:
    left = {}
    for way in ("give", "keep"):
        found = subprocess.run(
            [sys.executable, "-c", SORT, way], capture_output=True, text=True, check=True
        )
        left[way] = float(found.stdout.split()[1])
    assert left["give"] < 60e6
    assert left["keep"] > 1.5 * left["give"], "otherwise this shows nothing"
