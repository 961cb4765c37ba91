"""True answers by plain DuckDB, and what each unit adds to each cell of them."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.accuracy.suites import Question

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
LEAST, LEAST_OF_RANK = 1e-4, 1e-3
"""Less error is none: cells that are exact would hide all others in a geometric mean."""


def written(key: Sequence[object]) -> str:
    """A cell's key, as text that both sides write the same.

    >>> written([40.0, None, dt.datetime(2015, 1, 1)])
    '40|NULL|2015-01-01'
    """
    return "|".join(_written(value) for value in key)


def _written(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case float() | decimal.Decimal() if value == int(value):
            return str(int(value))
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case _:
            return str(value)


def truth(connection: duckdb.DuckDBPyConnection, question: Question) -> dict[str, float]:
    """The exact answer by cell, as plain SQL has it; of private keys, which there are."""
    rows = connection.execute(question.sql).fetchall()
    return dict(sorted((written(row[:-1]), float(row[-1])) for row in rows if row[-1] is not None))


def digest(cells: Mapping[str, float]) -> dict[str, Any]:
    """The number of cells, and a checksum of keys and values to seven digits."""
    told = "\n".join(f"{key}\t{value:.7g}" for key, value in cells.items())
    return {"cells": len(cells), "sha256": hashlib.sha256(told.encode()).hexdigest()}


def rank_errors(values: Floats, ordered: Floats) -> Floats:
    """How far each value is from the middle of sorted rows, as a share of the rows; 0 for a median.

    >>> rank_errors(np.array([1.0, 2.0, 3.0, 9.0]), np.array([1.0, 2.0, 2.0, 3.0])).tolist()
    [-0.25, 0.0, 0.25, 0.5]
    """
    below, up_to = (np.searchsorted(ordered, values, side) / len(ordered) for side in SIDES)
    return np.maximum(below - 0.5, 0.0) + np.minimum(up_to - 0.5, 0.0)


def ordered_values(
    connection: duckdb.DuckDBPyConnection, question: Question
) -> dict[str, Floats] | None:
    """The sorted values of each cell of a median, by which its answers are judged; None for others."""
    if question.kind != "median":
        return None
    found: dict[str, list[float]] = {}
    for _, value, *key in connection.execute(question.rows).fetchall():
        found.setdefault(written(key), []).append(value)
    return {key: np.sort(np.array(values)) for key, values in found.items()}


@dataclass(frozen=True)
class Contributions:
    """Who adds what: an entry for each unit and cell, with the number of rows and the sum of values.

    Values are clamped to the range that the policy declares, ``truth`` is of values as they are.
    Cells whose truth is zero have no relative error, and are left out.
    """

    units: Ints
    cells: Ints
    rows: Floats
    sums: Floats
    truth: Floats
    row_units: Ints
    row_cells: Ints
    row_values: Floats

    @cached_property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.truth)

    def norms(self, values: Floats, order: int) -> Floats:
        """The L1 or L2 norm of what each unit adds to all cells."""
        if order == 1:
            return np.bincount(self.units, np.abs(values))
        return np.sqrt(np.bincount(self.units, values * values))

    def clipped(self, values: Floats, order: int, bound: float) -> Floats:
        """The sum in each cell once each unit's whole vector is scaled to at most ``bound``."""
        factors = np.minimum(1.0, bound / np.maximum(self.norms(values, order), 1e-300))
        return np.bincount(self.cells, values * factors[self.units], minlength=self.size)

    def added(self, question: Question) -> Floats:
        """What each entry adds to a count or a sum."""
        match question.kind:
            case "count":
                return self.rows
            case "sum":
                return self.sums
            case "distinct":
                return np.ones_like(self.rows)
            case "avg" | "median" | "found":
                raise ValueError(question.kind)


def contributions(connection: duckdb.DuckDBPyConnection, question: Question) -> Contributions:
    """The entries of a question, read from its rows."""
    exact = truth(connection, question)
    order = [key for key, value in exact.items() if value]
    rows = connection.execute(question.rows).fetchnumpy()
    keys = list(rows)[2:]
    columns = [_objects(rows[name]) for name in keys]
    _, units = np.unique(np.asarray(rows["u"]).astype(str), return_inverse=True)
    cells = _places(columns, order, len(units))
    values = np.asarray(rows["x"], dtype=np.float64)
    if question.range is not None:
        values = np.clip(values, *question.range)
    kept = cells >= 0
    units, cells, values = units[kept], cells[kept], values[kept]
    pairs, entries = np.unique(units * len(order) + cells, return_inverse=True)
    return Contributions(
        units=pairs // len(order), cells=pairs % len(order),
        rows=np.bincount(entries).astype(np.float64), sums=np.bincount(entries, values),
        truth=np.array([exact[key] for key in order]),
        row_units=units, row_cells=cells, row_values=values,
    )  # fmt: skip


def _objects(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as objects, None where they are missing."""
    return np.where(np.ma.getmaskarray(column), None, np.ma.getdata(column).astype(object))


def _places(columns: Sequence[npt.NDArray[Any]], order: Sequence[str], size: int) -> Ints:
    """The cell of each row; -1 for rows of cells that are left out."""
    where = {key: place for place, key in enumerate(order)}
    if not columns:
        return np.zeros(size, dtype=np.int64)
    seen: dict[tuple[object, ...], int] = {}
    found = np.empty(size, dtype=np.int64)
    for row, key in enumerate(zip(*columns, strict=True)):
        if key not in seen:
            seen[key] = where.get(written([_plain(value) for value in key]), -1)
        found[row] = seen[key]
    return found


def _plain(value: object) -> object:
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    return value.item() if isinstance(value, np.generic) else value
