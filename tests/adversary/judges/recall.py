"""What was answered is given again; what varies was paid for.

Without ``fresh`` the same question of the same role gives the same numbers at no cost, whatever was
asked in between, unless more was paid for its numbers meanwhile. With it, numbers that differ were
paid for: a free answer whose numbers change is noise that the ledger does not know, and could be
averaged away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.adversary.faces.session import SETTING
from tests.adversary.judges.agreement import FREE, cells
from tests.adversary.model import Case, Finding, Transcript, finding

CHANGING = ("from dpsql.", "now(", "current_", "clock_timestamp", "localtime")
"""Words of statements whose answers change by themselves: the ledger's own tables, and the clock."""
OFF = {"off", "'off'", "false", "0"}


def free(transcript: Transcript) -> bool:
    """Whether the answer cost nothing."""
    return transcript.cost is None or not set(transcript.cost) - FREE


def repeated(transcripts: Sequence[Transcript]) -> Iterator[tuple[int, int, bool]]:
    """Numbers of answers to one question under one role's same settings, and whether they are fresh.

    No policy was read in between.
    """
    settings: dict[str, dict[str, str]] = {}
    seen: dict[Any, int] = {}
    for number, found in enumerate(transcripts):
        step, mine = found.step, settings.setdefault(found.step.role, {})
        if step.act == "reload":
            seen.clear()
        elif step.act == "reconnect":
            mine.clear()
        elif step.act == "set":
            note(mine, step.text)
        elif step.act == "ask" and found.error is None:
            if any(word in step.text.lower() for word in CHANGING):
                continue
            key = (step.text, repr(step.parameters), step.role, tuple(sorted(mine.items())))
            if key in seen:
                yield seen[key], number, mine.get("fresh", "off").lower() not in OFF
            seen[key] = number


def note(settings: dict[str, str], text: str) -> None:
    """Keep what a statement sets, or takes back."""
    changed = SETTING.match(text)
    if changed is not None:
        name, value = changed.groups()
        settings.pop(name.lower(), None)
        if value is not None:
            settings[name.lower()] = value


class Recall:
    """Looks at questions that were asked twice."""

    name = "recall"

    def judge(self, case: Case) -> Finding | None:
        """The first answer that changed for nothing, or was paid for twice."""
        for side in (case.left, case.right):
            for first, number, fresh in repeated(side.transcripts):
                one, other = side.transcripts[first], side.transcripts[number]
                if not free(other) and not fresh:
                    details = [f"first {one.cost}, then {other.cost}"]
                    return finding(self.name, case, number, "paid twice", details)
                between = side.transcripts[first + 1 : number + 1]
                if all(map(free, between)) and cells(one) != cells(other):
                    details = [f"{cells(one)} and {cells(other)}"[:2000]]
                    return finding(self.name, case, number, "changed for nothing", details)
        return None
