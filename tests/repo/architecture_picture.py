"""The picture of docs/architecture.md, made from what modules import: python -m tests.repo.architecture_picture."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from benchmarks.structure import PACKAGE, imports, modules

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
LEAVES = frozenset(("deadlines", "diagnostics", "effort", "exact", "execution", "memory"))
"""What nearly everything imports: the picture leaves it out, and the page says so."""
_REGION = re.compile(r"(<!-- made: picture -->\n).*?(<!-- end -->)", re.DOTALL)


def rewritten(text: str) -> str:
    """The page with the picture made anew."""
    return _REGION.sub(lambda m: f"{m[1]}```mermaid\n{picture()}\n```\n{m[2]}", text)


def picture() -> str:
    """Folders and top modules, with an arrow to each that is imported and not reached through another."""
    count = _between()
    above = {name for name, _ in count}
    direct = {name: {b for a, b in count if a == name} for name in above}
    lines = ["flowchart TD"]
    for upper in sorted(direct):
        for lower in sorted(direct[upper]):
            others = direct[upper] - {lower}
            if not any(lower in _reached(other, direct) for other in others):
                lines.append(f"  {upper} --> {lower}")
    return "\n".join(lines)


def _between() -> Counter[tuple[str, str]]:
    """How many imports lead from one part to another."""
    found = Counter[tuple[str, str]]()
    for name, targets in imports(modules(ROOT)).items():
        for target in targets:
            upper, lower = _part(name), _part(target)
            if upper != lower and not LEAVES & {upper, lower} and PACKAGE not in (upper, lower):
                found[upper, lower] += 1
    return found


def _part(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else PACKAGE


def _reached(part: str, direct: dict[str, set[str]]) -> set[str]:
    """All that a part imports, by way of others too."""
    found: set[str] = set()
    left = [part]
    while left:
        for lower in direct.get(left.pop(), set()) - found:
            found.add(lower)
            left.append(lower)
    return found


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
