"""What answers to a question are worth: error with bias, coverage, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.accuracy.cells import LEAST, LEAST_OF_RANK, Floats, rank_errors

PARTS = 10


@dataclass(frozen=True)
class Score:
    """The answers to one question, all cells together.

    ``error`` is the geometric mean over cells of the root mean square error, as a share of the truth; of
    medians it is the error of rank, as a share of the rows, since nearby values may be far from another;
    ``spread`` is its standard error over answers, as a share of it. ``bias`` is that of the sum over cells.
    ``covered`` is the share of intervals that hold the truth, None where there are none; ``open`` the
    share of values without one. ``missing`` is the share of cells without a value; they count
    nowhere else. ``found`` is how many rows an answer has.
    """

    draws: int
    cells: int
    error: float | None = None
    spread: float | None = None
    worst: float | None = None
    bias: float | None = None
    covered: float | None = None
    open: float | None = None
    missing: float | None = None
    found: float | None = None
    refused: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    notes: tuple[str, ...] = ()


def score(
    lines: Sequence[Mapping[str, Any]],
    truth: Mapping[str, float],
    ordered: Mapping[str, Floats] | None = None,
) -> Score:
    """Of what a file of state has of a question; ``ordered`` has the sorted values of medians."""
    refused = [line["refused"] for line in lines if "refused" in line]
    if refused or not lines:
        return Score(len(lines), len(truth), refused=refused[0] if refused else "not asked")
    keys, exact = list(truth), np.array(list(truth.values()))
    values, low, high = (_table(lines, keys, column) for column in (1, 2, 3))
    bounded = ~(np.isnan(low) & np.isnan(high)) & ~np.isnan(values)
    inside = (np.nan_to_num(low, nan=-np.inf) <= exact) & (exact <= np.nan_to_num(high, nan=np.inf))
    if ordered is not None:
        ranks = [rank_errors(values[:, place], ordered[key]) for place, key in enumerate(keys)]
        values = np.where(np.isnan(values), np.nan, 1 + np.stack(ranks, axis=1))
        exact = np.ones(len(keys))
    sized, least = exact != 0, LEAST if ordered is None else LEAST_OF_RANK
    errors = _errors(values[:, sized], exact[sized])
    answered = ~np.isnan(values)
    shown = answered.any(axis=0)
    means = np.sum(np.where(answered, values, 0.0), axis=0) / np.maximum(answered.sum(axis=0), 1)
    return Score(
        len(lines), len(truth),
        error=_mean(errors, least), spread=_spread(values[:, sized], exact[sized], least),
        worst=float(np.nanmax(errors)) if np.isfinite(errors).any() else None,
        bias=_ratio(float((means - exact)[shown].sum()), float(np.abs(exact[shown]).sum())),
        covered=_ratio(float(inside[bounded].sum()), float(bounded.sum())),
        open=_ratio(float((answered & ~bounded).sum()), float(answered.sum())),
        missing=float((~answered).mean()),
        found=float(np.mean([len(line["rows"]) for line in lines])),
        epsilon=lines[0]["cost"].get("epsilon"), delta=lines[0]["cost"].get("delta"),
        notes=tuple(lines[0]["notes"]),
    )  # fmt: skip


def _table(lines: Sequence[Mapping[str, Any]], keys: Sequence[str], column: int) -> Floats:
    """A row for each answer, a column for each cell; NaN where there is nothing."""
    by_key = [{row[0]: row[column] for row in line["rows"]} for line in lines]
    return np.array([[found.get(key) for key in keys] for found in by_key], dtype=np.float64)


def _errors(values: Floats, exact: Floats) -> Floats:
    """The root mean square error of each cell as a share of its truth; NaN where it was never shown."""
    answered = ~np.isnan(values)
    squares = np.where(answered, values - exact, 0.0) ** 2
    counts = answered.sum(axis=0)
    means = squares.sum(axis=0) / np.maximum(counts, 1)
    return np.where(counts > 0, np.sqrt(means) / np.abs(exact), np.nan)


def _mean(errors: Floats, least: float) -> float | None:
    known = errors[~np.isnan(errors)]
    return float(np.exp(np.mean(np.log(np.maximum(known, least))))) if known.size else None


def _spread(values: Floats, exact: Floats, least: float) -> float | None:
    """A grouped jackknife: how the error moves while each tenth of the answers is left out."""
    parts = min(PARTS, len(values))
    if parts < 2:
        return None
    places = np.arange(len(values)) % parts
    without = [_mean(_errors(values[places != part], exact), least) for part in range(parts)]
    logs = np.log([error for error in without if error is not None])
    return float(np.sqrt((parts - 1) * np.var(logs))) if len(logs) == parts else None


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None
