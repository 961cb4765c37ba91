"""Attacks on `dpsql serve` by one log-in, one after the other, and what another log-in notices of them.

python -m benchmarks.attacks [--only NAME ..] [--seconds 4] [--out build/bench] [--resume]
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import benchmarks.attacks.scenarios
from benchmarks.attacks import endings, hung_ledger
from benchmarks.attacks.bounds import HEAD, MB, Bounds, Ending, Measurement, Samples
from benchmarks.attacks.registry import ATTACKS
from benchmarks.attacks.trial import Chosen, Recovery, run_attack, warm_up
from benchmarks.attacks.world import ServerProcess, make

OVER = 300 * MB
"""What the process tree may take beyond its budget."""


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.attacks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*ATTACKS, "endings", "hung-ledger"],
        metavar="NAME",
        help="these alone; --list names them",
    )
    parser.add_argument("--list", action="store_true", help="name all attacks, and end")
    parser.add_argument("--seconds", type=float, default=4, help="of each attack")
    parser.add_argument(
        "--patience", type=float, default=60, help="seconds in which memory must be given back"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the rows and of the attacks")
    parser.add_argument("--engine", type=int, default=512, help="limits.memory, in MB")
    parser.add_argument("--memory", type=int, default=1512, help="endpoint.memory, in MB")
    parser.add_argument(
        "--ceiling",
        type=int,
        default=4000,
        help="MB at which the server is killed, to save the machine",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("build/bench"), help="where attacks.json is written"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="keep what attacks.json has of a run with the same options",
    )
    return parser  # fmt: skip


class Run:
    """All attacks in turn on one server; where one has ended it, or left it too large, the next gets a new one."""

    def __init__(self, chosen: argparse.Namespace, folder: Path) -> None:
        self.chosen, self.folder = chosen, folder
        self.bounds = Bounds(memory=chosen.memory * MB + OVER)
        self.trial = Chosen(chosen.seconds, chosen.patience, chosen.seed, chosen.ceiling * MB)
        self.path, self.log = chosen.out / "attacks.json", chosen.out / "attacks.log"
        chosen.out.mkdir(parents=True, exist_ok=True)
        self.measured: list[Measurement] = []
        self.ended: list[Ending] = []
        self._served: ServerProcess | None = None
        self._base = self._servers = 0
        self._recoveries: list[Recovery] = []
        if chosen.resume and self.path.exists():
            self._take_up(json.loads(self.path.read_text()))

    def _terms(self) -> dict[str, Any]:
        """What two runs must have in common, so that one goes on with the other."""
        names = ("seconds", "patience", "seed", "engine", "memory", "ceiling")
        return {"version": version(), **{name: getattr(self.chosen, name) for name in names}}

    def _take_up(self, kept: dict[str, Any]) -> None:
        if kept["terms"] != self._terms():
            print(f"{self.path} is of another run: {kept['terms']}", file=sys.stderr)
            return
        for each in kept["attacks"]:
            samples = {
                k: Samples(**v) for k, v in each.items() if isinstance(v, dict) and "seconds" in v
            }
            self.measured.append(Measurement(**{**each, **samples}))
        self.ended = [Ending(**each) for each in kept["endings"]]

    def policy(self, ledger: str = "") -> Path:
        """A policy of its own for each server, with rows and a ledger of its own."""
        self._servers += 1
        folder, chosen = self.folder / str(self._servers), self.chosen
        return make(folder, chosen.seed, f"{chosen.engine}MB", f"{chosen.memory}MB", ledger)

    def server(self) -> ServerProcess:
        """The server, warm."""
        if self._served is None or self._served.ended:
            self._served = ServerProcess(self.policy(), self.log)
            self._base = warm_up(self._served)
            print(f"{'a warm server':28} {self._base / MB:8.0f}", flush=True)
        return self._served

    def attacks(self, names: Sequence[str]) -> None:
        """Each that is not measured yet."""
        known = {m.name for m in self.measured}
        for name in names:
            if name not in known:
                served = self.server()
                found = run_attack(ATTACKS[name], served, self._base, self.bounds, self.trial)
                if found.ended:
                    served.kill()
                if found.ended or not found.keeps_memory(self.bounds):
                    self.measure(found)
                else:
                    due = time.monotonic() - found.waited + self.trial.patience
                    since = time.monotonic() - found.waited
                    self._recoveries.append(Recovery(served, found, due, since))
                    self._served = None
                self.recover()

    def measure(self, found: Measurement) -> None:
        """One more attack, with all that there is to know of it."""
        self.measured.append(found)
        self.write()
        print(found.line(self.bounds), flush=True)

    def recover(self, *, wait: bool = False) -> None:
        """Servers that were left alone, and have recovered or had time for it."""
        while self._recoveries:
            for each in [r for r in self._recoveries if r.is_over(self.bounds)]:
                self._recoveries.remove(each)
                each.served.kill()
                self.measure(each.found)
            if not wait:
                return
            time.sleep(0.5)

    def endings(self) -> None:
        """SIGTERM, with each mix of attacks and without any, each on a server of its own."""
        known = {e.name for e in self.ended}
        for about in endings.MIXES:
            if about not in known:
                served = ServerProcess(self.policy(), self.log)
                self.add(endings.end_under_attack(served, about, self.bounds, self.trial.seed))
        if "idle TLS clients" not in known:
            self.add(endings.idle(ServerProcess(self.policy(), self.log), self.bounds))

    def hung_ledger(self) -> None:
        """A ledger server that hangs: an attack of its own, on a server of its own."""
        if "hung-ledger" in {m.name for m in self.measured}:
            return
        found = hung_ledger.run_attack(self.policy, self.log, self.bounds, self.trial)
        if found is not None:
            self.measure(found[0])
            self.add(found[1])

    def add(self, ended: Ending) -> None:
        """One more ending."""
        self.ended.append(ended)
        self.write()
        print(ended.line(), flush=True)

    def close(self) -> None:
        """Leave nothing running."""
        for served in (self._served, *(r.served for r in self._recoveries)):
            if served is not None and not served.ended:
                served.kill()

    def breaches(self) -> dict[str, list[str]]:
        """What does not hold, by what was tried."""
        found = {m.name: m.breaches(self.bounds) for m in self.measured}
        found |= {f"SIGTERM: {e.name}": e.breaches() for e in self.ended}
        return {name: broken for name, broken in found.items() if broken}

    def write(self) -> None:
        """All so far, as JSON."""
        made = {
            "terms": self._terms(), "bounds": asdict(self.bounds),
            "attacks": [asdict(m) for m in self.measured], "endings": [asdict(e) for e in self.ended],
            "breaches": self.breaches(),
        }  # fmt: skip
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(made, indent=1))
        beside.replace(self.path)


def version() -> str:
    """Of the software that is measured."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def main() -> int:
    chosen = options().parse_args()
    if chosen.list:
        for each in ATTACKS.values():
            print(f"{each.name:28} {each.about}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave no server behind
    start = time.monotonic()
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory(prefix="dpsql-attacks-") as folder:
        run = Run(chosen, Path(folder))
        try:
            only = chosen.only or [*ATTACKS, "hung-ledger", "endings"]
            run.attacks([name for name in only if name in ATTACKS])
            if "hung-ledger" in only:
                run.hung_ledger()
            if "endings" in only:
                run.endings()
            run.recover(wait=True)
        finally:
            run.close()
    broken = run.breaches()
    tried_ = len(run.measured) + len(run.ended)
    print(f"{tried_ - len(broken)} of {tried_} hold, {time.monotonic() - start:.0f} s, {run.path}")
    return 1 if broken else 0


__all__ = ["benchmarks"]
if __name__ == "__main__":
    sys.exit(main())
