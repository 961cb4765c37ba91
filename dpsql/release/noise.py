"""Turns exact rows into noisy rows. This is the only place where sealed values are opened.

Claim: the returned table is the output of the mechanisms of the priced measurement on the exact
    integers, and of nothing else.
Assumes: the integers have the priced sensitivities (``bound.sensitivity``); the randomness is
    independent of everything else (``privacy.entropy``).
Argument: noise is added to each integer exactly, in integers, and values are chosen by exact
    integers (``release.choose``). Groups that are not public are dropped unless their noisy number
    of units reaches the threshold. All later steps (scaling to the value's units, rounding, sorting
    by key) are functions of noisy values and public keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.catalog.statistic import Total
from dpsql.diagnostics.refusal import EngineFailed
from dpsql.engines.exact_rows import ExactRows, unseal
from dpsql.engines.incident import record_incident
from dpsql.execution import check, take
from dpsql.price.priced import Chosen, Halves, Noised, PricedMeasurement
from dpsql.privacy.entropy import Randomness
from dpsql.release.choose import choose_values
from dpsql.release.rows import ColumnNoise, NoisyRows, as_type, schema

NoisyIntegers = npt.NDArray[np.int64] | npt.NDArray[np.object_]
_SAFE = 1 << 61


class WrongShape(Exception):
    """An engine answered a measurement with rows of another form than the statement asks for."""


def noise(rows: ExactRows, part: PricedMeasurement, entropy: Randomness) -> NoisyRows:
    """The released table of a measurement; rows of another form are a failure of the engine.

    If reading ends early, the unread rows are closed here. A traceback that kept them would keep
    the engine's statement open, and stopping that statement later would stop the next one of this
    thread.
    """
    failure: EngineFailed
    try:
        with closing(rows):
            return _noised(unseal(rows), part, entropy)
    except EngineFailed as error:  # raised in a later part, with rows in its traceback
        failure = EngineFailed(error.incident)
    except Exception as error:  # noqa: BLE001 (any message may quote rows)
        failure = record_incident("read the answer", error)
    raise failure


def _noised(tables: Iterator[pa.Table], part: PricedMeasurement, entropy: Randomness) -> NoisyRows:
    """All parts of the table, noised one after the other.

    Claim: groups that are not shown take no memory, however many there are. Whether the shown
        groups take too much memory depends only on the number of released groups.
    Assumes: the engine gives its rows in parts of a bounded size.
    Argument: each part is noised and reduced to its shown groups before the next part is read.
        Memory is counted for shown groups only.
    """
    measurement, released, count = part.measurement, list[pa.Table](), 0
    for table in tables:
        check()
        count += table.num_rows
        shown = _noised_part(table, part, entropy)
        released.append(shown)
        if measurement.cells is None:  # public groups were counted before the charge
            take(0, shown.num_rows, shown.num_columns)
    _expect(count, part)
    whole = pa.concat_tables(released)
    if part.selection is not None:
        whole = _sorted(whole, len(measurement.keys))
    return NoisyRows(measurement.name, whole, column_noise(part))


def _noised_part(table: pa.Table, part: PricedMeasurement, entropy: Randomness) -> pa.Table:
    kept, units = _selected(table, part, entropy)
    measurement = part.measurement
    keys = [kept.column(f"k{i}") for i in range(len(measurement.keys))]
    values: list[pa.Array] = []
    twins = HalfNoise(entropy)
    for i, item in enumerate(part.noised):
        check()
        column = kept.column(f"p{i}")
        if isinstance(item, Chosen):
            values.append(choose_values(column, item, entropy))
            continue
        if item.halves is not None:
            twin = integers(kept.column(f"p{item.halves.other}"))
            values.append(twins.released(i, integers(column), twin, item))
            continue
        if units is not None and part.selection is not None and part.selection.shares == i:
            noisy: NoisyIntegers = units
        else:
            noisy = add_noise(integers(column), item, entropy)
        values.append(decode_steps(noisy, item))
    target = schema(measurement.key_fields + measurement.columns)
    arrays = [as_type(c, f.type) for c, f in zip([*keys, *values], target, strict=True)]
    return pa.Table.from_arrays(arrays, schema=target)


def column_noise(part: PricedMeasurement) -> tuple[ColumnNoise | None, ...]:
    """The noise of each released column, according to the plan."""
    found = (part.noise(i) for i in range(len(part.noised)))
    return tuple(None if noise is None else ColumnNoise((noise,)) for noise in found)


def _expect(count: int, part: PricedMeasurement) -> None:
    cells = part.measurement.cells
    if cells is not None and count != cells.count:
        raise WrongShape("not one row for each public group")


def _selected(
    table: pa.Table, part: PricedMeasurement, entropy: Randomness
) -> tuple[pa.Table, NoisyIntegers | None]:
    """The groups that may be shown, and their noisy numbers of units."""
    selection = part.selection
    if selection is None:
        return table, None
    noisy = add_noise(integers(table.column("units")), selection.units, entropy)
    keep = np.asarray(noisy >= selection.threshold, dtype=bool)
    return table.filter(pa.array(keep)), noisy[keep]


def add_noise(exact: NoisyIntegers, item: Noised, entropy: Randomness) -> NoisyIntegers:
    """Exact integers plus noise, without overflow."""
    drawn = item.noise.sample(entropy, len(exact))
    if exact.dtype != object and _fits(exact) and _fits(drawn):
        return np.asarray(exact + drawn, dtype=np.int64)
    return np.asarray(exact.astype(object) + drawn.astype(object), dtype=object)


def _fits(values: NoisyIntegers) -> bool:
    return len(values) == 0 or bool(values.max() < _SAFE and values.min() > -_SAFE)


def integers(column: pa.ChunkedArray) -> NoisyIntegers:
    """A column of whole numbers, as 64-bit integers if they fit, else as Python's integers."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if array.null_count:
        raise WrongShape("a statistic is NULL")
    if pa.types.is_integer(array.type):
        return np.asarray(array.cast(pa.int64()).to_numpy(zero_copy_only=False))
    if pa.types.is_decimal128(array.type) and array.type.scale == 0:
        return _limbs(array)
    raise WrongShape("a statistic is not whole")


def _limbs(array: pa.Decimal128Array) -> NoisyIntegers:
    """128-bit integers, read from their two 64-bit halves without a Python object for each."""
    buffer = array.buffers()[1]
    halves = np.frombuffer(buffer, dtype=np.int64)
    halves = halves[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = halves[0::2], halves[1::2]
    if np.array_equal(high, low >> 63):
        return low.copy()
    return np.array([int(v) for v in array.to_pylist()], dtype=object)


@dataclass(slots=True)
class HalfNoise:
    """Totals and their numbers of rows, each pair released from the same two noised halves."""

    entropy: Randomness
    drawn: dict[int, tuple[NoisyIntegers, NoisyIntegers]] = field(default_factory=dict)

    def released(
        self, position: int, exact: NoisyIntegers, twin: NoisyIntegers, item: Noised
    ) -> pa.Array:
        """The released statistic at this position; the halves are noised once for both statistics.

        Claim: both columns are functions of the two noised halves.
        Assumes: a statistic and its twin are noised together: they share their halves.
        Argument: the first of the two calls draws the noise of both halves; the second call finds
            the noised halves in ``drawn``.
        """
        assert item.halves is not None
        is_total = isinstance(item.statistic, Total)
        if item.halves.other not in self.drawn:
            pair = (exact, twin) if is_total else (twin, exact)
            self.drawn[position] = tuple(
                add_noise(half, item, self.entropy) for half in halves(*pair, item.halves)
            )  # type: ignore[assignment]
        one, other = self.drawn.get(item.halves.other) or self.drawn[position]
        if is_total:
            return pa.array((one - other).astype(np.float64) * float(item.step), pa.float64())
        rows = np.rint((one + other).astype(np.float64) * float(item.step))
        return pa.array(np.clip(rows, -(2.0**62), 2.0**62).astype(np.int64), pa.int64())


def halves(
    total: NoisyIntegers, count: NoisyIntegers, of: Halves
) -> tuple[NoisyIntegers, NoisyIntegers]:
    """The sums of distances to both ends of the range, exact up to the steps of the halves."""
    most = sum(float(np.abs(v).max(initial=0)) * f for v, f in ((total, of.one), (count, of.reach)))
    if most >= _SAFE:
        total, count = total.astype(object), count.astype(object)
    rounding = (1 << of.coarse) >> 1
    scaled, rows = total * of.one, count * of.reach
    return (rows + scaled + rounding) >> of.coarse, (rows - scaled + rounding) >> of.coarse


def decode_steps(noisy: NoisyIntegers, item: Noised) -> pa.Array:
    """Noisy grid steps in the statistic's own units."""
    statistic, shift = item.statistic, item.shift
    whole = statistic.whole if isinstance(statistic, Total) else True
    if whole:
        return pa.array(_whole(noisy, shift), pa.int64())
    return pa.array(noisy.astype(np.float64) * float(item.step), pa.float64())


def _whole(noisy: NoisyIntegers, shift: int) -> npt.NDArray[np.int64]:
    """Grid steps as whole numbers, rounded to the nearest, kept within 64 bits."""
    if shift > 0:
        noisy = (noisy + (1 << (shift - 1))) >> shift
    elif shift < 0:
        noisy = noisy.astype(object) * (1 << -shift)
    if noisy.dtype == object:
        limit = 2**63 - 1
        noisy = np.array([max(-limit, min(limit, int(v))) for v in noisy], dtype=np.int64)
    return np.asarray(noisy, dtype=np.int64)


def _sorted(table: pa.Table, keys: int) -> pa.Table:
    """The table in key order, so that the order of rows reveals nothing about the data."""
    order = [(name, "ascending", "at_end") for name in table.column_names[:keys]]
    return table.take(pc.sort_indices(table, sort_keys=order))
