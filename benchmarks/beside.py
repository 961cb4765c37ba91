"""This version beside another: ``python -m benchmarks.beside TREE [--rounds N] [speed options]``.

Both run ``benchmarks.speed`` on the same data, in turns, each in a process of its own. A case's figure is
the ratio of what both take beside plain DuckDB; of several rounds the median counts. A case that is
slower by more than 5 % in both kinds of time ends it with status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
SLOWER = 1.05
Case = tuple[str, int]


def measure(tree: Path, arguments: list[str], data: Path) -> dict[Case, tuple[float, float]]:
    """The ratios to plain DuckDB of each case: of time that passes, and of processors' work."""
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            [sys.executable, "-m", "benchmarks.speed", "--data", str(data), "--out", out, *arguments],
            cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        cases = json.loads((Path(out) / "speed.json").read_text())["figures"]
    return {
        (case["about"], case["size"]): (case["wall"]["median"], case["cpu"]["median"])
        for case in cases
    }


def main() -> int:
    """Print a line for each case: the ratio of this version to the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tree", type=Path, help="the root of another checkout")
    parser.add_argument("--rounds", type=int, default=3, help="how often each version runs")
    parser.add_argument("--data", type=Path, help="keep made data in this folder")
    chosen, arguments = parser.parse_known_args()
    found: dict[Case, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as place:
        data = (chosen.data or Path(place)).absolute()
        for _ in range(chosen.rounds):
            other = measure(chosen.tree.absolute(), arguments, data)
            here = measure(ROOT, arguments, data)
            for case in here.keys() & other.keys():
                (wall, cpu), (other_wall, other_cpu) = here[case], other[case]
                found[case].append((wall / other_wall, cpu / other_cpu))
    print(f"{'case':52} {'rows':>12} {'wall':>7} {'cpu':>7}  each round: wall")
    slower = 0
    for (about, size), ratios in sorted(found.items()):
        wall, cpu = (statistics.median(r[kind] for r in ratios) for kind in (0, 1))
        rounds = " ".join(f"{ratio:.2f}" for ratio, _ in ratios)
        slower += min(wall, cpu) > SLOWER
        print(f"{about:52} {size:12,} {wall:6.2f}x {cpu:6.2f}x  {rounds}")
    print(f"{slower} of {len(found)} cases are slower by more than {SLOWER - 1:.0%}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
