"""A suite's figures: a line for each question, then what they come to, and which goals are missed."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.accuracy.labels import Label
from benchmarks.accuracy.oracle import Tuned
from benchmarks.accuracy.score import Score
from benchmarks.accuracy.suites import Question, Suite

MEAN, WITHIN, WORST, WORSE = 1.6, 0.75, 4.2, 1.2
ERRORS = {"known": {"F08": 0.20, "F09": 0.20, "F14": 0.13}}
FOUND = {"known": {"K01": 140}}
"""Goals under the label (1, 1e-6)."""


@dataclass(frozen=True)
class Figure:
    """A question with its scores: of this code, of the code before, and of bounds tuned by an oracle."""

    question: Question
    now: Score
    before: Score | None
    tuned: Tuned | None

    @property
    def over(self) -> float | None:
        """The error as a multiple of the oracle's."""
        return _over(self.now.error, None if self.tuned is None else self.tuned.error)

    @property
    def worse(self) -> float | None:
        """The error as a multiple of that before; None for keys."""
        if self.question.kind == "found":
            return None
        return _over(self.now.error, None if self.before is None else self.before.error)

    @property
    def covered(self) -> float | None:
        """The coverage; None for keys, whose groups are chosen by what is released."""
        return None if self.question.kind == "found" else self.now.covered

    def line(self) -> str:
        """One line of the table."""
        name = f"{self.question.id} {self.question.about}"
        if self.now.refused:
            return f"{name:46} {self.now.cells:5} refused: {self.now.refused}"
        if self.question.kind == "found":
            before = "" if self.before is None else f", before {_number(self.before.found)}"
            return f"{name:46} {self.now.cells:5} found {_number(self.now.found)}{before}"
        now, tuned = self.now, self.tuned
        return (
            f"{name:46} {now.cells:5} {_percent(now.error):>9} ±{_percent(now.spread):>5}"
            f" {_percent(None if tuned is None else tuned.error):>9} {_times(self.over):>6}"
            f" {_percent(None if self.before is None else self.before.error):>9} {_times(self.worse):>6}"
            f" {_percent(now.worst):>9} {_percent(now.bias):>8} {_share(now.covered):>5} {_share(now.open):>5}"
            f" {_share(now.missing):>5}"
        )


HEADER = (
    f"{'question':46} {'cells':>5} {'error':>9} {'±':>6} {'oracle':>9} {'over':>6} {'before':>9} {'ratio':>6}"
    f" {'worst':>9} {'bias':>8} {'cover':>5} {'open':>5} {'miss':>5}"
)


@dataclass(frozen=True)
class Table:
    """All figures of a suite under a label."""

    suite: Suite
    label: Label
    figures: Sequence[Figure]

    @property
    def overs(self) -> list[float]:
        """How many times the oracle's error each question has."""
        return [figure.over for figure in self.figures if figure.over is not None]

    @property
    def covered(self) -> list[float]:
        """The coverage of each question that has intervals."""
        return [f.covered for f in self.figures if f.covered is not None]

    def summary(self) -> dict[str, Any]:
        """What the questions come to."""
        worse = [f.worse for f in self.figures if f.worse is not None]
        return {
            "questions": len(self.figures),
            "refused": [f.question.id for f in self.figures if f.now.refused],
            "over_oracle": {
                "mean": _geometric(self.overs), "largest": max(self.overs, default=None),
                "within_twice": _part(self.overs, 2.0),
            },
            "coverage": {
                "least": min(self.covered, default=None),
                "median": statistics.median(self.covered) if self.covered else None,
                "below_.94": [f.question.id for f in self.figures if _below(f.covered, 0.94)],
            },
            "over_before": {
                "mean": _geometric(worse), "largest": max(worse, default=None),
                "worse": [f.question.id for f in self.figures if (f.worse or 0) > WORSE],
            },
        }  # fmt: skip

    def missed(self) -> Iterator[str]:
        """Which goals are missed, and by how much."""
        for figure in self.figures:
            if figure.now.refused:
                yield f"{figure.question.id} is refused"
        found = self.summary()
        mean, largest, within = (
            found["over_oracle"][k] for k in ("mean", "largest", "within_twice")
        )
        if mean is not None and mean > MEAN:
            yield f"mean error over the oracle's {mean:.2f}x, goal {MEAN}x"
        if largest is not None and largest > WORST:
            yield f"largest error over the oracle's {largest:.2f}x, goal {WORST}x"
        if within is not None and within < WITHIN:
            yield f"{within:.0%} within twice the oracle's error, goal {WITHIN:.0%}"
        for figure in self.figures:
            if figure.worse is not None and figure.worse > WORSE:
                yield f"{figure.question.id}: {figure.worse:.2f}x the error before, goal {WORSE}x"
        yield from self._coverage(found["coverage"])
        if self.label.name == "label":
            yield from self._of_questions()

    def _coverage(self, found: Mapping[str, Any]) -> Iterator[str]:
        least, median = self.label.covered
        if found["median"] is not None and found["median"] < median:
            yield f"median coverage {found['median']:.3f}, goal {median}"
        for figure in self.figures:
            if _below(figure.covered, least):
                yield f"{figure.question.id}: coverage {figure.covered:.3f}, goal {least}"

    def _of_questions(self) -> Iterator[str]:
        errors, found = ERRORS.get(self.suite.name, {}), FOUND.get(self.suite.name, {})
        for figure in self.figures:
            name, now = figure.question.id, figure.now
            if name in errors and now.error is not None and now.error > errors[name]:
                yield f"{name}: error {now.error:.1%}, goal {errors[name]:.0%}"
            if name in found and now.found is not None and now.found < found[name]:
                yield f"{name}: {now.found:.0f} keys found, goal {found[name]}"

    def lines(self) -> Iterator[str]:
        """The whole table."""
        yield HEADER
        for figure in self.figures:
            yield figure.line()
        found = self.summary()
        over, covered, before = (found[k] for k in ("over_oracle", "coverage", "over_before"))
        yield (
            f"error over the oracle's: mean {_times(over['mean'])}, within twice {_share(over['within_twice'])},"
            f" largest {_times(over['largest'])}"
        )
        yield f"coverage: least {_share(covered['least'])}, median {_share(covered['median'])}"
        if before["mean"] is not None:
            yield f"error over that before: mean {_times(before['mean'])}, largest {_times(before['largest'])}"
        yield from (f"missed: {text}" for text in self.missed())

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "summary": _rounded(self.summary()),
            "missed": list(self.missed()),
            "questions": {f.question.id: _record(f) for f in self.figures},
        }


def _record(figure: Figure) -> dict[str, Any]:
    now, tuned, before = figure.now, figure.tuned, figure.before
    told = {
        "error": now.error, "spread": now.spread, "oracle": None if tuned is None else tuned.error,
        "over": figure.over, "before": None if before is None else before.error, "worst": now.worst,
        "bias": now.bias, "covered": figure.covered, "open": now.open, "missing": now.missing,
        "found": now.found if figure.question.kind == "found" else None, "refused": now.refused,
    }  # fmt: skip
    if figure.question.kind == "found":
        told = {key: told[key] for key in ("found", "refused")}
    return {key: _rounded(value) for key, value in told.items() if value is not None}


def dumps(record: Mapping[str, Any]) -> str:
    """The record as JSON with a line for each question."""
    text = json.dumps(record, indent=1)
    return re.sub(r"\n {4,}|\n {3}(?=})", " ", text).replace("{ ", "{").replace(" }", "}") + "\n"


def _rounded(value: Any) -> Any:
    """Four digits are enough, and keep files small."""
    match value:
        case float():
            return float(f"{value:.4g}")
        case dict():
            return {key: _rounded(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_rounded(inner) for inner in value]
        case _:
            return value


def _over(error: float | None, other: float | None) -> float | None:
    return None if error is None or not other else error / other


def _geometric(values: Sequence[float]) -> float | None:
    return math.exp(statistics.mean(map(math.log, values))) if values else None


def _part(values: Sequence[float], most: float) -> float | None:
    return sum(value <= most for value in values) / len(values) if values else None


def _below(value: float | None, least: float) -> bool:
    return value is not None and value < least


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.3g}%"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}".lstrip("0") if value < 1 else f"{value:.2f}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.0f}"
