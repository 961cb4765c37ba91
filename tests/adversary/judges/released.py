"""Counts are released as they were noised, rounded to the nearest; intervals hold as often as they say.

Looked at are counts whose noise is seen and that nothing stored is mixed with: the first answers of an
attack, and those under ``fresh``.
"""

from __future__ import annotations

import ast
import re

from tests.adversary.judges.recall import OFF, note
from tests.adversary.model import Case, Draw, Finding, Transcript, finding

COUNT = re.compile(
    r"SELECT (?:(?P<key>\w+), )?COUNT\(\*\)(?: AS \w+)? FROM \w+(?: WHERE \w+ > \d+)?(?(key) GROUP BY (?P=key))",
    re.IGNORECASE,
)
"""A statement whose numbers have one noise each."""
MISSED = 0.07
"""An interval of 95 % may miss so many of 4,000 draws, not more."""
SHIFTS = range(60)
"""Numbers are noised in parts of a whole: so many bits of them."""


class Released:
    """Looks at the first run alone."""

    name = "released"

    def judge(self, case: Case) -> Finding | None:
        """The first count or interval that is none."""
        settings: dict[str, str] = {}
        before = False
        for number, transcript in enumerate(case.left.transcripts):
            if transcript.step.act == "set" and transcript.error is None:
                note(settings, transcript.step.text)
            alone = not before or settings.get("fresh", "off").lower() not in OFF
            before = before or bool(transcript.measured)
            problem = _problem(transcript) if alone and not asks_more(settings) else ""
            if problem:
                return finding(self.name, case, number, problem, [repr(transcript.rows[:20])])
        return None


def asks_more(settings: dict[str, str]) -> bool:
    """Whether a setting changes what is released after the noise."""
    changing = {"nonnegative", "consistent", "search", "intervals", "empty_groups"}
    return bool(changing & settings.keys())


def _problem(transcript: Transcript) -> str:
    found = [draw for measured in transcript.measured for draw in measured.draws]
    if not COUNT.fullmatch(transcript.step.text.strip()) or len(found) != 1:
        return ""
    if transcript.error is not None or transcript.measured[0].shown is not None:
        return ""
    return _number(transcript, found[0]) or _interval(transcript, found[0])


def _number(transcript: Transcript, draw: Draw) -> str:
    values = sorted(row[-1] for row in transcript.rows if isinstance(row[-1], int))
    noised = sorted(e + n for e, n in zip(draw.exact, draw.noise, strict=False))
    if len(values) != len(noised) or len(values) != len(draw.exact):
        return ""
    near = [s for s in SHIFTS if _farthest(values, noised, s) <= 1]
    if not near:
        return "released counts are not the noised ones"
    if not any(_farthest(values, noised, s) <= 0.5 for s in near):
        return "released counts are not rounded to the nearest"
    return ""


def _farthest(values: list[int], noised: list[int], shift: int) -> float:
    """How far a value is from its noised number, in whole ones."""
    pairs = zip(values, noised, strict=True)
    return max((abs((v << shift) - n) / (1 << shift) for v, n in pairs), default=0.0)


def _interval(transcript: Transcript, draw: Draw) -> str:
    ends = dict(ast.literal_eval(transcript.text) or []) if transcript.text else {}
    values = [row[-1] for row in transcript.rows]
    if len(ends) != 1 or len(values) != 1 or not isinstance(values[0], int) or not draw.sample:
        return ""
    [[(low, high)]] = ends.values()
    if low is None or high is None:
        return ""
    noised = [draw.exact[0] + draw.noise[0]]
    fitting = [s for s in SHIFTS if _farthest(values, noised, s) <= 1]
    half = ((high - low) / 2 + 0.5) * (1 << max(fitting[:1] or [0]))
    missed = sum(abs(v) > half for v in draw.sample) / len(draw.sample)
    return f"an interval of {high - low} misses {missed:.0%} of draws" if missed > MISSED else ""
