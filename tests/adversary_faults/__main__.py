"""``python -m tests.adversary_faults --seconds 600``: how long the adversary takes to find each fault.

It goes on where an earlier run ended; a fault that was not found is not tried again with the same seed,
unless it is named. ``--list`` prints the faults, ``--show`` sees each of them at a public face where it is
planted, and sees nothing where it is not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.adversary_faults.every import BY_NAME
from tests.adversary_faults.fault import Fault
from tests.adversary_faults.hunt import COMMAND, State, hunt, table
from tests.adversary_faults.plant import environment, plant

PAGE = """\
# How long the adversary takes to find planted faults

Faults were planted in a copy of dpsql, one at a time. Somebody else wrote them, before the [adversary](adversary.md) was
tried on them. Where the adversary missed one, it was then widened in general ways: with other statements, worlds and
judges, none of which knows of a fault.

Each fault was attacked with seed 1 until something was found. *Attacked* says where: inside one process
(`--only inside`), at endpoints (`--only endpoints`), or both by turns, which is what `make faults` does.
*Seconds* are by the clock, with a limit of 240 to 400. The machine had two processors, and five to twenty other programs
worked all the time, so an attacker had a sixth to a half of one processor. *Of processors* is the processor time that it
used; waits for deadlines, of ten seconds or so, come on top. The adversary was widened between hunts, so not all faults were
attacked by the same version: the last hunt of each fault counts. Some faults are found by a side effect, and not by what
they were planted for. A fault that was not found in that time may be found later.

Four faults of keys, views and copies were found by new attacks in worlds of that sort alone. The attacks were made small and
are in `fixtures/adversary`, and every test run repeats them with and without the fault. Hunts in this table had no such
attacks to repeat.

`python -m tests.adversary_faults --table docs/planted_faults.md` writes this page from what `make faults` keeps.

{table}
"""
SHOWING = 180.0
"""Seconds for one fault to show."""


def show(fault: Fault, planted: bool) -> bool:
    """Whether a fault is seen, where it is planted or not."""
    with tempfile.TemporaryDirectory(prefix="planted-", ignore_cleanup_errors=True) as name:
        folder = plant(fault if planted else None, Path(name))
        ended = subprocess.run(
            [sys.executable, "-m", "tests.adversary_faults.shown", fault.name],
            env={**environment(folder), "TMPDIR": name}, cwd=folder, timeout=SHOWING, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
    if ended.returncode not in (0, 1) or "seen" not in ended.stdout:
        raise RuntimeError(f"{fault.name}: {ended.stderr[-2_000:]}")
    return ended.returncode == 1


def _show(chosen: list[Fault]) -> int:
    wrong = 0
    for fault in chosen:
        seen = show(fault, planted=True), show(fault, planted=False)
        wrong += seen != (True, False)
        said = "seen where it is planted alone" if seen == (True, False) else f"WRONG: {seen}"
        print(f"{fault.name}: {said}", flush=True)
    return int(wrong > 0)


def main() -> int:
    """Zero when every fault was found (with ``--show``: was seen)."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary_faults")
    parser.add_argument("--seconds", type=float, default=600, help="for each fault")
    parser.add_argument(
        "--fault", action="append", choices=list(BY_NAME), help="this one; may be repeated"
    )
    parser.add_argument("--area", help="only the faults of this area")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, default=Path("build/faults"))
    parser.add_argument(
        "--command", default=COMMAND, help="the adversary; {seconds}, {seed}, {findings}"
    )
    parser.add_argument(
        "--table", type=Path, help="hunt nothing, and write the table of all faults to this page"
    )
    parser.add_argument("--list", action="store_true", help="print the faults")
    parser.add_argument(
        "--show", action="store_true", help="see each fault by its own reproduction"
    )
    chosen = parser.parse_args()
    faults = [BY_NAME[name] for name in chosen.fault or BY_NAME]
    faults = [fault for fault in faults if chosen.area in (None, fault.area)]
    if chosen.list:
        for fault in faults:
            print(f"{fault.area}: {fault.name}. {fault.gain} ({fault.origin})")
        return 0
    if chosen.show:
        return _show(faults)
    state = State(chosen.state)
    if chosen.table is not None:
        kept = [one for (_, seed), one in state.hunts().items() if seed == chosen.seed]
        here = [one for one in kept if one.fault in BY_NAME]
        chosen.table.write_text(PAGE.format(table=table(here, BY_NAME.values())), "utf-8")
        return 0
    for fault in faults:
        if chosen.fault or (fault.name, chosen.seed) not in state.hunts():
            with tempfile.TemporaryDirectory(prefix="planted-", ignore_cleanup_errors=True) as name:
                found = hunt(fault, Path(name), chosen.command, chosen.seconds, chosen.seed)
            state.keep(found)
            said = f"found by {found.by or 'it'}" if found.found else "NOT found"
            print(f"{fault.name}: {said} after {found.seconds:.0f} s", flush=True)
    names = {fault.name for fault in faults}
    hunts = [
        one for (name, seed), one in state.hunts().items() if name in names and seed == chosen.seed
    ]
    print(table(hunts))
    return int(len(hunts) < len(faults) or not all(one.found for one in hunts))


if __name__ == "__main__":
    sys.exit(main())
