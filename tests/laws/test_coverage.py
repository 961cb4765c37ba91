"""What people ask is answered as recorded, and every refusal says why and what to write instead.

The record is fixtures/coverage/outcomes.txt; ``--rewrite`` renews it.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.coverage.corpus import CORPORA, Corpus  # noqa: E402
from benchmarks.coverage.outcome import (  # noqa: E402
    DIFFERENT,
    EQUAL,
    FAILED,
    REFUSED,
    Outcome,
    opened,
)

LEAST = {"tpch": 18, "clickbench": 29, "bi": 140}
"""Answers that there must be. ClickBench's other 14 ask for rows, visitors, or MIN of a text."""
RECORD = ROOT / "fixtures" / "coverage" / "outcomes.txt"


@functools.cache
def _outcomes(name: str) -> tuple[Outcome, ...]:
    corpus = next(c for c in CORPORA if c.name == name)
    with opened(corpus, corpus.small) as asked:
        return tuple(asked.outcome(query, plans=1) for query in corpus.queries)


def _recorded() -> dict[str, dict[str, str]]:
    """For each corpus what became of each query."""
    found: dict[str, dict[str, str]] = {}
    for line in RECORD.read_text().splitlines() if RECORD.exists() else ():
        corpus, query, outcome = line.split(" | ")
        found.setdefault(corpus, {})[query] = outcome
    return found


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda c: c.name)
def test_every_query_has_its_recorded_outcome(corpus: Corpus, rewrite: bool) -> None:
    recorded = _recorded()
    now = {o.query: o.recorded for o in _outcomes(corpus.name)}
    if rewrite:
        recorded[corpus.name] = now
        lines = [
            f"{c.name} | {q} | {s}\n" for c in CORPORA for q, s in recorded.get(c.name, {}).items()
        ]
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text("".join(lines))
    said = {o.query: o.said for o in _outcomes(corpus.name)}
    wrong = [
        f"{query}: {now.get(query)} instead of {recorded[corpus.name].get(query)}: {said.get(query)}"
        for query in now.keys() | recorded[corpus.name].keys()
        if now.get(query) != recorded[corpus.name].get(query)
    ]
    assert not wrong, "renew with --rewrite where it is right:\n" + "\n".join(wrong)


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda c: c.name)
def test_answers_are_right_and_refusals_help(corpus: Corpus) -> None:
    outcomes = _outcomes(corpus.name)
    assert not [f"{o.query}: {o.said}" for o in outcomes if o.state in (DIFFERENT, FAILED)]
    for o in outcomes:
        if o.state == REFUSED:
            assert o.code, o.query
            assert o.why, o.query
            assert o.instead, o.query
    assert sum(o.state == EQUAL for o in outcomes) >= LEAST[corpus.name]
