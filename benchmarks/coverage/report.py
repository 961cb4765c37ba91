"""Outcomes as a table for people, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from benchmarks.coverage.corpus import Corpus
from benchmarks.coverage.outcome import DIFFERENT, EQUAL, FAILED, REFUSED, Outcome

Found = Mapping[str, Sequence[Outcome]]


def table(corpora: Sequence[Corpus], found: Found) -> str:
    """One line for each corpus."""
    lines = [
        "| corpus | queries | answered | equal | goal | refused, by code | slowest planning |",
        "| --- | --: | --: | --: | --: | --- | --: |",
    ]
    return "\n".join([*lines, *(_line(c, found[c.name]) for c in corpora)])


def _line(corpus: Corpus, outcomes: Sequence[Outcome]) -> str:
    states = Counter(o.state for o in outcomes)
    codes = Counter(o.code for o in outcomes if o.state == REFUSED)
    said = ", ".join(f"{code}: {n}" for code, n in sorted(codes.items())) or "none"
    if states[FAILED]:
        said += f"; failed: {states[FAILED]}"
    slowest = max(outcomes, key=lambda o: o.planning_ms)
    return (
        f"| {corpus.title} | {len(outcomes)} | {states[EQUAL] + states[DIFFERENT]}"
        f" | {states[EQUAL]} | {corpus.goal} | {said}"
        f" | {slowest.planning_ms:.1f} ms ({slowest.query.split()[0]}) |"
    )


def details(corpora: Sequence[Corpus], found: Found) -> str:
    """Every query that is not answered and equal, with what was said."""
    lines = []
    for corpus in corpora:
        for o in found[corpus.name]:
            if o.state == REFUSED:
                lines.append(f"{corpus.name} {o.query}: {o.code} {o.said}")
                lines.append(f"    instead: {o.instead}")
            elif o.state != EQUAL:
                lines.append(f"{corpus.name} {o.query}: {o.state}: {o.said}")
    return "\n".join(lines)


def as_json(found: Found) -> str:
    """Everything."""
    return json.dumps({name: [asdict(o) for o in outcomes] for name, outcomes in found.items()})
