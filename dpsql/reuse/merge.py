"""Assembles the released tables of a plan from its sources and the new measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dpsql.ledger.store import RecallKey
from dpsql.price.priced import PricedPlan
from dpsql.release.rows import ColumnNoise, NoisyRows, as_type, schema
from dpsql.reuse.encoding import StoredTable, to_bytes
from dpsql.reuse.match import AnswerSources
from dpsql.reuse.measured import DuePart
from dpsql.reuse.pieces import Slot
from dpsql.reuse.source import Columns, align_rows
from dpsql.reuse.summed import Summed


def merge(
    priced: PricedPlan, sources: AnswerSources, measured: Sequence[NoisyRows]
) -> tuple[tuple[NoisyRows, ...], dict[RecallKey, bytes]]:
    """The released tables, and the new pieces, which are to be stored.

    Claim: the result depends on released numbers only, so it costs nothing.
    Assumes: ``measured`` has its noise already.
    Argument: sources hold stored numbers, and ``measured`` holds noised ones; the function gets
        nothing else.
    """
    new = {d.slot.part: (d, rows) for d, rows in zip(sources.due.parts, measured, strict=True)}
    columns: dict[Slot, Columns] = {}
    keep: dict[RecallKey, bytes] = {}
    for source in sources.pieces:
        key, slots = source.recall_key(), source.piece.slots
        own = () if key is None else tuple(_columns(slot, *new[slot.part]) for slot in slots)
        tables = source.merge(own)
        if key is not None:
            keep[key] = to_bytes(map(_even, tables))
        columns |= zip(slots, tables, strict=True)
    summed = {
        s.part
        for source in sources.pieces
        if isinstance(source, Summed)
        for s in source.piece.slots
    }
    return tuple(_tables(priced, columns, summed)), keep


def _columns(slot: Slot, due: DuePart, rows: NoisyRows) -> Columns:
    """The columns of a slot, out of all columns of its measurement."""
    keys = len(due.priced.measurement.keys)
    at = [due.slot.columns.index(position) for position in slot.columns]
    table = rows.table.select([*range(keys), *(keys + i for i in at)])
    return Columns(table, tuple(rows.noise[i] for i in at))


def _even(columns: Columns) -> StoredTable:
    """Columns in the form in which they are stored; all rows of a column have the same noise."""
    return StoredTable(
        columns.table, tuple(None if n is None else n.laws[0] for n in columns.noise)
    )


def _tables(
    priced: PricedPlan, columns: Mapping[Slot, Columns], summed: set[int]
) -> Iterator[NoisyRows]:
    """The table of each measurement, assembled from its slots, with the plan's names and types."""
    for at, part in enumerate(priced.parts):
        mine = {slot: found for slot, found in columns.items() if slot.part == at}
        first, keys = next(iter(mine.values())).table, len(part.measurement.keys)
        arrays = dict(enumerate(first.columns[:keys]))
        noise: dict[int, ColumnNoise | None] = {}
        for slot, found in mine.items():
            table = align_rows(first, found.table, keys)
            for i, position in enumerate(slot.columns):
                arrays[keys + position], noise[position] = table.column(keys + i), found.noise[i]
        names = schema(part.measurement.key_fields + part.measurement.columns)
        typed = [_typed(arrays[i], field.type) for i, field in enumerate(names)]
        table = pa.Table.from_arrays(typed, schema=names)
        noises = tuple(noise[i] for i in range(len(noise)))
        yield NoisyRows(part.measurement.name, table, noises, at in summed)


def _typed(array: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_floating(array.type) and pa.types.is_integer(wanted):
        array = pc.round(array)
    return as_type(array, wanted)
