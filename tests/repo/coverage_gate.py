"""The coverage that must hold: python -m tests.repo.coverage_gate REPORT.json

Branches count. Everything together needs 95 %; where privacy is decided, every line and branch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.postgres_home import binaries

OVERALL = 95
WHOLE = tuple(
    f"dpsql/{part}/"
    for part in ("privacy", "ledger", "plan", "bound", "price", "rewrite", "declarations", "checks")
)


SERVER_ONLY = "dpsql/ledger/postgres"
"""Run by tests that need a PostgreSQL server; judged where there is one."""


def whole(name: str) -> bool:
    """Whether every line and branch of a file must be covered here."""
    return name.startswith(WHOLE) and (bool(binaries()) or not name.startswith(SERVER_ONLY))


def shortfalls(report: dict[str, Any]) -> Iterator[str]:
    """What is not covered although it must be."""
    total = report["totals"]["percent_covered"]
    if total < OVERALL:
        yield f"overall {total:.2f} % is covered; {OVERALL} % must be"
    for name, file in sorted(report["files"].items()):
        if whole(name.replace("\\", "/")):
            lines, branches = file["missing_lines"], file.get("missing_branches", [])
            if lines:
                yield f"{name}: lines {', '.join(map(str, lines))} are not covered"
            if branches:
                jumps = ", ".join(f"{a}->{b}" for a, b in branches)
                yield f"{name}: branches {jumps} are not covered"


def main(path: str) -> int:
    report = json.loads(Path(path).read_text())
    found = list(shortfalls(report))
    print(f"coverage with branches: {report['totals']['percent_covered']:.2f} %")
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
