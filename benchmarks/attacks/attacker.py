"""One process of an attack, at low priority: what became of its statements is printed as JSON."""

from __future__ import annotations

import argparse
import os
import resource
import sys
from dataclasses import replace
from pathlib import Path

import benchmarks.attacks.scenarios
from benchmarks.attacks.hostile import Hostile
from benchmarks.attacks.registry import ATTACKS
from benchmarks.attacks.world import Place

NICE = 15
ADDRESS = "127.0.0.2"
"""Attacks come from elsewhere than the other client: a server may tell addresses apart."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=ATTACKS)
    parser.add_argument("place", type=Path)
    parser.add_argument("seed", type=int)
    chosen = parser.parse_args()
    os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("ready", flush=True)
    place = replace(Place.read(chosen.place), source=ADDRESS)
    hostile = Hostile(place, float(sys.stdin.readline()), chosen.seed)
    ATTACKS[chosen.name].run(hostile)
    print(hostile.report(), flush=True)
    os._exit(0)  # threads that still wait for the server are left


__all__ = ["benchmarks"]
if __name__ == "__main__":
    sys.exit(main())
