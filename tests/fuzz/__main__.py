"""``python -m tests.fuzz --seconds 600``: each target for so long, in a process of its own."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = ("statement", "dialect", "messages", "strangers")


def _one(name: str, seconds: int, seed: int, runs: int, every: int) -> None:
    """Branches of dpsql are watched, so what reaches new ones is kept and changed again."""
    import atheris

    with atheris.instrument_imports(include=["dpsql"]):
        import dpsql

        for module in pkgutil.walk_packages(dpsql.__path__, "dpsql."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        from tests.fuzz.targets import TARGETS, seeds
    folder = Path(tempfile.mkdtemp(prefix=f"dpsql-fuzz-{name}-"))
    known = list(seeds(name))[::every]
    for number, data in enumerate(known):
        (folder / str(number)).write_bytes(data)
    # The fuzzer begins with nothing and with each seed, and counts them as runs.
    most = runs if runs < 0 else 1 + len(known) + runs
    arguments = [
        sys.argv[0], str(folder), f"-max_total_time={seconds}", "-timeout=30", "-rss_limit_mb=4096",
        f"-artifact_prefix={folder}/found-", "-print_final_stats=1",
        f"-seed={seed}", f"-runs={most}",
    ]  # fmt: skip
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()


def main() -> int:
    """Zero when no target found anything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--target", choices=NAMES)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument(
        "--runs", type=int, default=-1, help="at most so many changed inputs (-1: any)"
    )
    parser.add_argument("--every", type=int, default=1, help="begin with each such seed")
    chosen = parser.parse_args()
    if chosen.target:
        _one(chosen.target, chosen.seconds, chosen.seed, chosen.runs, chosen.every)
        return 0
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
