"""The noise of an answer's columns, predicted for groups of many sizes from the priced plan alone.

A count or a sum has the same noise in every group. A mean, a ratio and other values that are computed
from noised numbers err less in larger groups. Their noise is drawn around made-up numbers, as the
intervals of answers are: in a group of n rows every count is n, and values are spread so that they
are at three quarters of their range in the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.catalog.statistic import Statistic, Total
from dpsql.ir.expressions import Column, Expression, alias, columns
from dpsql.price.notes import notes
from dpsql.price.priced import Chosen, PricedMeasurement, PricedPlan
from dpsql.privacy.cost import Cost
from dpsql.release import intervals as ends
from dpsql.release.finish import Finishing
from dpsql.release.lookups import Known, read_public_tables
from dpsql.release.noise import column_noise
from dpsql.release.rows import ARROW, NoisyRows

Floats = npt.NDArray[np.float64]
SIZES = tuple(digit * 10**power for power in range(10) for digit in (1, 2, 5))
"""The numbers of rows of the made-up groups."""
PLACE = Fraction(3, 4)
"""Where the mean of the values lies in their range.

Totals of values and of their powers at this place belong together: there are values that have them.
"""
Errs = Literal["value", "rank", "unknown"]


@dataclass(frozen=True, slots=True)
class PredictedColumn:
    """The noise of one column of an answer, 19 times in 20, in groups of ``SIZES`` rows.

    ``position`` is its place in the answer. It errs in its value, or in its rank among the rows of a group. ``shares`` are the widths as
    shares of the value, or of the number of rows. Both are empty where the error is not known
    beforehand, such as that of a total of groups.
    """

    position: int
    name: str
    errs: Errs
    widths: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def even(self) -> bool:
        """Whether the noise is equally wide in all groups."""
        return len(set(self.widths)) == 1

    @property
    def about(self) -> str:
        """What errs by a width: a value, or a rank."""
        return " rows of rank" if self.errs == "rank" else ""

    def width(self, size: int) -> float:
        """The width in a group of so many rows; between two of ``SIZES`` it is interpolated."""
        return self.widths[0] if self.even else _between(size, self.widths)

    def share(self, size: int) -> float:
        """The width as a share of the value in a group of so many rows, likewise."""
        return _between(size, self.shares)

    def rows_for(self, share: float) -> int | None:
        """The rows that a group must have for an error of at most ``share``; None if none is enough.

        It is rounded up to two digits.
        """
        above = [i for i, found in enumerate(self.shares) if not found <= share]
        last = above[-1] if above else -1
        if not self.shares or last == len(SIZES) - 1:
            return None
        if last < 0:
            return 1
        pair = slice(last, last + 2)
        logs, sizes = _logs(self.shares[pair]), np.log(SIZES[pair])
        exact = math.exp(float(np.interp(-math.log(share), -logs, sizes)))
        return _round_up(exact) if math.isfinite(logs[0]) else SIZES[last + 1]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is known of an answer before it is asked for.

    ``threshold`` is about how many units a group must have to be shown, where groups are not
    public. With ``searched``, a bound is found out first, and the noise may become smaller.
    """

    columns: tuple[PredictedColumn, ...]
    cost: Cost
    notes: tuple[str, ...] = ()
    threshold: int | None = None
    searched: bool = False


def predict(priced: PricedPlan, tools: Finishing) -> Prediction:
    """Predict the noise of each column of an answer that is not a key.

    Claim: the prediction is a function of the priced plan and of public rows.
    Assumes: a priced plan depends on statement, policy and settings alone.
    Argument: nothing else is read. The numbers around which noise is drawn are made up.
    """
    noises = ends.noises(priced)
    made = [_made_rows(part) for part in priced.parts]
    known = read_public_tables(priced, tools.reader, tools.postprocessor)
    for rows in made:
        known.add(rows)
    thresholds = [p.selection.threshold for p in priced.parts if p.selection is not None]
    return Prediction(
        tuple(_columns(priced, noises, known)), priced.price, notes(priced),
        max(thresholds, default=None), bool(priced.searches),
    )  # fmt: skip


def _columns(priced: PricedPlan, noises: ends.Noises, known: Known) -> list[PredictedColumn]:
    outputs, found = priced.plan.columns, list[PredictedColumn]()
    simulated = {w.position: w for w in ends.find_simulated_columns(priced, noises)}
    drawn = _simulated(priced, noises, list(simulated.values()), known)
    ranks = _ranks(priced)
    direct = ends.widths(priced, outputs, noises)
    unchanged = ends.direct(priced.plan.output, outputs)
    for i, (output, source) in enumerate(
        zip(outputs, ends.sources(priced.plan.output, outputs), strict=True)
    ):
        column = unchanged[i]
        if i in direct and column is not None:
            widths = np.full(len(SIZES), direct[i])
            found.append(_predicted(i, output.name, widths, _values_of(column, known)))
        elif i in simulated:
            low, high = drawn[i]
            found.append(_predicted(i, output.name, (high - low) / 2, (high + low) / 2))
        elif isinstance(source, Column) and source.number in ranks:
            widths = np.full(len(SIZES), ranks[source.number])
            shares = np.minimum(1.0, widths / np.array(SIZES))
            found.append(
                PredictedColumn(
                    i, output.name, "rank", tuple(map(float, widths)), tuple(map(float, shares))
                )
            )
        elif _is_measured(source, noises, ranks) and priced.parts:
            found.append(PredictedColumn(i, output.name, "unknown"))
    return found


def _is_measured(source: Expression | None, noises: ends.Noises, ranks: dict[int, float]) -> bool:
    """Whether an output is more than a key, as far as this is known."""
    if source is None:
        return True
    return bool(noises.of(source)) or any(c.number in ranks for c in columns(source))


def _predicted(position: int, name: str, widths: Floats, values: Floats) -> PredictedColumn:
    widths = np.where(np.isfinite(widths), widths, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(widths == 0, 0.0, widths / np.abs(values))
    shares = np.where(np.isfinite(shares), shares, np.inf)
    return PredictedColumn(
        position, name, "value", tuple(map(float, widths)), tuple(map(float, shares))
    )


def _simulated(
    priced: PricedPlan, noises: ends.Noises, wanted: list[ends.Simulated], known: Known
) -> dict[int, tuple[Floats, Floats]]:
    """Both ends of each simulated output, for all sizes."""
    if not wanted:
        return {}
    name = ends.table_of(priced.plan.output)
    table = ends.simulate(noises, wanted, known.tables[name], known.run)
    return {w.position: (_floats(table, w.low), _floats(table, w.high)) for w in wanted}


def _ranks(priced: PricedPlan) -> dict[int, float]:
    """The error of each column that is chosen by its rank, in rows."""
    return {
        column.number: item.half_width
        for part in priced.parts
        for column, item in zip(part.measurement.columns, part.noised, strict=True)
        if isinstance(item, Chosen)
    }


def _made_rows(part: PricedMeasurement) -> NoisyRows:
    """A made-up released table: one group of each size, whose keys are NULL."""
    measurement = part.measurement
    arrays = {
        alias(key): pa.nulls(len(SIZES), ARROW[key.shape.kind]) for key in measurement.key_fields
    }
    for column, item in zip(measurement.columns, part.noised, strict=True):
        kind = ARROW[column.shape.kind]
        if isinstance(item, Chosen):
            arrays[alias(column)] = pa.nulls(len(SIZES), kind)
        else:
            values = np.array(SIZES, np.float64) * _each(item.statistic)
            arrays[alias(column)] = pa.array(values).cast(kind, safe=False)
    return NoisyRows(measurement.name, pa.table(arrays), column_noise(part))


def _each(statistic: Statistic) -> float:
    """What one row adds to a statistic, in the mean."""
    if not isinstance(statistic, Total):
        return 1.0
    low, high, centre = statistic.low, statistic.high, statistic.centre
    return float(low + (high - low) * PLACE - centre)


def _values_of(column: Column, known: Known) -> Floats:
    """The made-up values of a released column."""
    table = next(t for t in known.tables.values() if alias(column) in t.column_names)
    return _floats(table, column)


def _floats(table: pa.Table, column: Column) -> Floats:
    return np.asarray(table.column(alias(column)).to_numpy(zero_copy_only=False), dtype=np.float64)


def _between(size: int, numbers: tuple[float, ...]) -> float:
    """A number for a size between two of ``SIZES``."""
    return math.exp(float(np.interp(math.log(size), np.log(SIZES), _logs(numbers))))


def _logs(numbers: tuple[float, ...]) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.array(numbers)))


def _round_up(number: float) -> int:
    """A number rounded up to two digits.

    >>> _round_up(2_860.4), _round_up(0.3), _round_up(97.0)
    (2900, 1, 97)
    """
    whole = math.ceil(number - 1e-9 * number)
    step: int = 10 ** max(0, len(str(whole)) - 2)
    return max(1, -(-whole // step) * step)
