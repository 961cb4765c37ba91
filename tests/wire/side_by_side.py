"""The table of clients and checks in README.md: python tests/wire/side_by_side.py rewrites it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
README = HERE / "README.md"
_REGION = re.compile(r"(<!-- made: clients -->\n).*?(<!-- end -->)", re.DOTALL)


def read_clients() -> None:
    """Register the checks of every client."""
    for path in sorted((HERE / "clients").glob("*.py")):
        if path.stem != "__init__":
            import_module(f"clients.{path.stem}")


def rewritten(text: str) -> str:
    """The text with its table made anew."""
    return _REGION.sub(lambda m: f"{m[1]}{table()}\n{m[2]}", text)


def table() -> str:
    """Clients with their checks, then the differences."""
    from differences import DIFFERENCES
    from sides import CHECKS

    counts = Counter(client for client, _ in CHECKS)
    differing = Counter(client for client, _ in DIFFERENCES)
    lines = ["| client | checks | as with PostgreSQL | other, for a reason |", "|---|---|---|---|"]
    lines += [
        f"| {client} | {count} | {count - differing[client]} | {differing[client]} |"
        for client, count in sorted(counts.items(), key=lambda item: item[0].lower())
    ]
    total, other = sum(counts.values()), len(DIFFERENCES)
    lines += [f"| all | {total} | {total - other} | {other} |", ""]
    lines += ["| what differs | why |", "|---|---|"]
    lines += [
        f"| {client}: `{name.replace('|', chr(92) + '|')}` | {why} |"
        for (client, name), why in sorted(DIFFERENCES.items())
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "support")]
    read_clients()
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
