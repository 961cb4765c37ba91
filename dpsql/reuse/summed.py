"""A piece as sums of a stored release over finer groups, with no more noise than a new measurement.

Claim: the numbers are functions of released numbers and cost nothing. Each is the sum of the
    numbers released for the finer groups of which its group consists
    (``pieces.Coarse.from_finer``).
Assumes: the noise of stored groups is independent.
Argument: adding up released numbers is post-processing. It is done only where the sum has no more
    noise than a new measurement of the piece.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsql.execution import check, take
from dpsql.price.priced import PricedMeasurement
from dpsql.privacy.mechanisms.noise_sum import NoiseSum
from dpsql.release.postprocess_sql import write_sums, write_sums_of_groups
from dpsql.release.rows import ColumnNoise
from dpsql.reuse.encoding import StoredTable
from dpsql.reuse.pieces import AS_GOOD, Finer, Piece, widths
from dpsql.reuse.source import Columns
from dpsql.reuse.store import Store
from dpsql.reuse.stored import Stored, release_time


@dataclass(frozen=True, slots=True)
class Summed(Stored):
    """Sums of numbers that were released before; their number of terms may differ between rows."""

    def explain(self, names: str) -> str:
        """A line with the time of the finer release."""
        since = release_time(self.kept)
        return f"recalled: {names}: {since} for finer groups, added up; it costs nothing"


def find_summed(store: Store, piece: Piece) -> Summed | None:
    """The sums of the finer release with the least noise, if the sums have little enough."""
    coarse = piece.coarse
    if coarse is None:
        return None
    for kept in store.of_base(coarse.base, piece.family):
        if kept.key.noise[0] > piece.noise[0] * AS_GOOD:
            break
        how = coarse.from_finer(kept.key.about)
        tables = () if how is None else store.tables(kept)
        if how is not None and tables:
            columns = _sums(store, piece, how, tables[0])
            if columns is not None and piece.served_by(_most_noise(columns)):
                take(columns.table.nbytes)
                return Summed(piece, kept, (columns,))
    return None


def _sums(store: Store, piece: Piece, how: Finer, stored: StoredTable) -> Columns | None:
    """The sums over finer groups; None if a group of the piece has no finer group."""
    part = store.priced.parts[piece.slots[0].part]
    [law] = stored.noise
    assert law is not None
    keys = len(stored.table.column_names) - 1
    table = stored.table.rename_columns([*(f"k{i}" for i in range(keys)), "v"])
    found = store.postprocessor.run(*_query(part, how, table))
    counts = found.column("n").to_pylist()
    if not counts or not all(counts) or found.column("v").null_count:
        return None
    different = sorted(set(counts))
    of_row = np.searchsorted(np.array(different), np.array(counts))
    noise = ColumnNoise(tuple(law.repeated(n) for n in different), of_row)
    return Columns(found.drop_columns(["n"]), (noise,))


def _most_noise(columns: Columns) -> tuple[float, float]:
    [noise] = columns.noise
    assert noise is not None
    pairs = [_widths(law) for law in noise.laws]
    return max(sd for sd, _ in pairs), max(width for _, width in pairs)


def _widths(law: NoiseSum) -> tuple[float, float]:
    check()  # a sum of finer groups may have thousands of laws
    return widths(law)


def _query(part: PricedMeasurement, how: Finer, table: pa.Table) -> tuple[str, dict[str, pa.Table]]:
    """The query for the sums over the stored table, and the tables that it reads.

    It gives one row for each public group of the measurement, in key order.
    """
    whole = not pa.types.is_floating(table.column("v").type)
    cells = part.measurement.cells
    if not how.keys or cells is None:
        return write_sums(how.keys, how.conditions, whole=whole), {"finer": table}
    groups, tables = cells.beside()
    text = write_sums_of_groups(how.keys, how.conditions, groups, whole=whole)
    return text, {"finer": table, **tables}
