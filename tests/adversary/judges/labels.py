"""Labels of groups are the same bytes in both worlds, and a group of many units is in both."""

from __future__ import annotations

from tests.adversary.model import Case, Finding, Measured, finding
from tests.adversary.seams import same


class Labels:
    """Compares the labels that the engine gives to groups."""

    name = "labels"

    def judge(self, case: Case) -> Finding | None:
        """A label that is written otherwise, or a group that is there or not against the rules."""
        for number, pair in enumerate(
            zip(case.left.transcripts, case.right.transcripts, strict=False)
        ):
            for one, other in zip(pair[0].measured, pair[1].measured, strict=False):
                problem = self._compare(case, one, other)
                if problem:
                    return finding(self.name, case, number, problem, [one.statement])
        return None

    def _compare(self, case: Case, one: Measured, other: Measured) -> str:
        left, right = ({tuple(map(same, key)): key for key in m.keys} for m in (one, other))
        for measured, found in ((one, left), (other, right)):
            if len(found) != len(measured.keys):
                return "two groups have labels that are equal"
        for key, label in left.items():
            if right.get(key, label) != label:
                return f"a label is written as {label!r} and as {right[key]!r}"
        if one.shown is None and one.keys != other.keys:
            return "public groups are not the same, or in another order"
        lone = set(left) ^ set(right)
        if lone and case.relation in ("order", "same", "strays"):
            return f"groups depend on what must not matter: {sorted(lone)[:3]!r}"
        size = max(1, len(case.owners))
        for measured, found in ((one, left), (other, right)):
            units = next((c[2] for c in measured.columns if c[0] == "units"), None)
            for at, key in enumerate(found):
                if units is not None and key in lone and units[at] > size:
                    return f"a group of {units[at]} units is in one of two neighbours only: {key!r}"
        return ""
