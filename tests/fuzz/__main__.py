"""``python -m tests.fuzz --seconds 600``: each target for so long, in a process of its own."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

NAMES = ("statement", "dialect", "messages", "strangers")
TARGET = "== target "
"""Stands before what the fuzzer says of a target."""


def _watch() -> None:
    """Branches of dpsql are watched, so what reaches new ones is kept and changed again."""
    import atheris

    with atheris.instrument_imports(include=["dpsql"]):
        import dpsql

        for module in pkgutil.walk_packages(dpsql.__path__, "dpsql."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        import tests.fuzz.targets  # noqa: F401 (it is watched too)


def _one(name: str, seconds: int, runs: tuple[int, int], seed: int) -> NoReturn:
    """The process ends with the fuzzer."""
    import atheris

    from tests.fuzz.targets import TARGETS, seeds

    count, every = runs
    folder = Path(tempfile.mkdtemp(prefix=f"dpsql-fuzz-{name}-"))
    known = list(seeds(name))[::every]
    for number, data in enumerate(known):
        (folder / str(number)).write_bytes(data)
    # The fuzzer begins with nothing and with each seed, and counts them as runs.
    most = count if count < 0 else 1 + len(known) + count
    arguments = [
        sys.argv[0], str(folder), f"-max_total_time={seconds}", "-timeout=30", "-rss_limit_mb=4096",
        f"-artifact_prefix={folder}/found-", "-print_final_stats=1",
        f"-seed={seed}", f"-runs={most}",
    ]  # fmt: skip
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()
    sys.exit(0)


def _in_forks(names: list[str], seconds: int, runs: list[tuple[int, int]], seed: int) -> int:
    """Each target in a fork, one after the other: that dpsql is watched takes longer than to fuzz a little."""
    _watch()
    failed = 0
    for name, some in zip(names, runs, strict=True):
        print(f"{TARGET}{name}", file=sys.stderr, flush=True)
        child = os.fork()
        if not child:
            _one(name, seconds, some, seed)
        failed += os.waitpid(child, 0)[1] != 0
    return failed


def main() -> int:
    """Zero when no target found anything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--target", choices=NAMES, nargs="+")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument(
        "--runs", type=int, nargs="+", help="at most so many changed inputs of each target"
    )
    parser.add_argument("--every", type=int, nargs="+", help="begin with each such seed")
    chosen = parser.parse_args()
    if chosen.target:
        count = len(chosen.target)
        runs = zip(chosen.runs or [-1] * count, chosen.every or [1] * count, strict=True)
        return _in_forks(chosen.target, chosen.seconds, list(runs), chosen.seed)
    failed = 0
    for name in NAMES:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--target",
            name,
            "--seconds",
            str(chosen.seconds),
        ]
        failed += subprocess.run(command, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
