"""Cases of which one thing is made wrong, for tests of judges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.adversary.model import Case, Draw, Measured, Run, Step
from tests.adversary.registry import JUDGES

STEPS = (
    Step("ask", "SELECT COUNT(*) AS n FROM t"),
    Step("ask", "SELECT c AS g, SUM(x) AS n FROM t GROUP BY 1"),
    Step("ask", "SELECT x AS g, COUNT(*) AS n FROM t GROUP BY 1"),
    Step("ask", "SELECT MEDIAN(x) AS n FROM t"),
    Step("explain", "SELECT AVG(x) FROM t"),
    Step("ask", "SELECT u FROM t"),
)
TOTAL, LISTED, HIDDEN, CHOSEN, EXPLAINED, REFUSED = range(6)


def said(case: Case) -> dict[str, str]:
    """What each judge finds."""
    found = {judge.name: judge.judge(case) for judge in JUDGES}
    return {name: finding.meaning for name, finding in found.items() if finding is not None}


def in_right(case: Case, step: int, **values: Any) -> Case:
    """The second run with another transcript of a step."""
    return replace(case, right=changed(case.right, step, **values))


def changed(run: Run, step: int, **values: Any) -> Run:
    """A run with another transcript of a step."""
    transcripts = list(run.transcripts)
    transcripts[step] = replace(transcripts[step], **values)
    return replace(run, transcripts=tuple(transcripts))


def measured(case: Case, step: int, change: Callable[[Measured], Measured]) -> Case:
    """The first run with another measurement."""
    found = tuple(map(change, case.left.transcripts[step].measured))
    return replace(case, left=changed(case.left, step, measured=found))


def drawn(case: Case, step: int, change: Callable[[Draw], Draw]) -> Case:
    """The first run with other noise."""
    return measured(case, step, lambda m: replace(m, draws=tuple(map(change, m.draws))))
