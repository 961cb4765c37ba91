"""Whatever a client sees of two neighbours is the same, if the measured integers are.

Both runs drew the same bytes, and the second one used the first one's integers. So rows, labels,
types, their order, notes, costs, refusals and EXPLAIN must be equal, byte by byte.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from tests.adversary.model import Case, Failure, Finding, Transcript, finding

ALLOWED_BITS = frozenset({"DP603", "DP604"})
"""Refusals of a policy whose declarations the data breaks: the one bit that is no promise."""


_NOW = re.compile(r"20[2-9]\d-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC)?")
"""When a stored answer was paid for."""


def bits(value: Any) -> Any:
    """A value that is equal to another only if their bytes are."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, list | tuple):
        return tuple(map(bits, value))
    return type(value).__name__, repr(value)


def told(transcript: Transcript) -> dict[str, Any]:
    """All that a client could see, time aside."""
    return {
        "error": transcript.error,
        "columns": transcript.columns,
        "number of rows": len(transcript.rows),
        "rows": bits(transcript.rows),
        "notes": transcript.notes,
        "notices": transcript.notices,
        "cost": transcript.cost,
        "remaining": transcript.remaining,
        "recalled": transcript.recalled,
        "text": _NOW.sub("<now>", transcript.text),
    }


def broken(failure: Failure | None) -> bool:
    """Whether a world was refused because its data breaks the policy."""
    return failure is not None and any(code in repr(failure) for code in ALLOWED_BITS)


class Sameness:
    """Compares transcripts of pinned runs."""

    name = "sameness"

    def judge(self, case: Case) -> Finding | None:
        """The first thing that a client could tell the two worlds apart by."""
        if not case.pinned:
            return None
        left, right = case.left, case.right
        if left.opened != right.opened:
            if broken(left.opened) or broken(right.opened):
                return None
            return finding(self.name, case, 0, "one of two neighbours is not opened", [
                repr(left.opened), repr(right.opened),
            ])  # fmt: skip
        for number, pair in enumerate(zip(left.transcripts, right.transcripts, strict=True)):
            if any(t.error is not None and t.error.code in ALLOWED_BITS for t in pair):
                return None
            one, other = map(told, pair)
            for what, seen in one.items():
                if seen != other[what]:
                    meaning = f"neighbours differ in: {what}"
                    return finding(self.name, case, number, meaning, _shown(what, *pair))
        return None


def _shown(what: str, one: Transcript, other: Transcript) -> list[str]:
    if what == "rows":
        pairs = zip(one.rows, other.rows, strict=True)
        return [f"{a!r} and {b!r}" for a, b in pairs if bits(a) != bits(b)][:5]
    name = "rows" if what == "number of rows" else what
    return [repr(getattr(t, name))[:2000] for t in (one, other)]
