"""``python -m tests.endurance kills --kills 50``, ``python -m tests.endurance overspend``."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.endurance import kills, overspend
from tests.endurance.world import ledger_on


def main() -> int:
    """Zero when all was as claimed."""
    parser = argparse.ArgumentParser(prog="python -m tests.endurance")
    commands = parser.add_subparsers(dest="command", required=True)
    killing = commands.add_parser("kills", help="kill -9 at any moment; goes on where it ended")
    killing.add_argument("--kills", type=int, default=50, help="so many more")
    killing.add_argument("--seed", type=int, default=1, help="of the moments; of the first run")
    killing.add_argument("--folder", type=Path, default=Path("build/kills"))
    spending = commands.add_parser("overspend", help="spend accounts to the last, on both stores")
    spending.add_argument("--dataset", default="20")
    spending.add_argument("--share", default="8", help="epsilon of each role")
    chosen = parser.parse_args()
    if chosen.command == "kills":
        return kills.main(chosen.folder, chosen.kills, chosen.seed, "")
    failed = 0
    for store in ("sqlite", "postgres"):
        for composition in ("basic", "zcdp"):
            with tempfile.TemporaryDirectory(prefix="dpsql-overspend-") as folder:
                print(f"{store}, {composition}: ", end="", flush=True)
                place = Path(folder) / "world"
                ledger = ledger_on(store, f"overspend_{secrets.token_hex(4)}")
                failed += overspend.main(place, chosen.dataset, chosen.share, composition, ledger)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
