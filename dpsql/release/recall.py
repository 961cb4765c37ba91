"""What an answer is made of: stored pieces, sums of finer ones, merged ones, and new measurements.

Claim: whatever is taken from the store was released before, so using it again costs nothing; what
    is left is priced by ``plan.due``. Which is which follows from statement, policy and the store's
    released contents, never from a private row.
Argument: stored numbers are recalled as they are, added up, or averaged with new ones: all of it
    post-processing. Public groups are the same for equal questions, in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.execution import check, take
from dpsql.ledger.store import Kept, RecallKey
from dpsql.plan.due import Due, DuePart, Refinement, due, refined_together, refinement
from dpsql.plan.priced import Noise, Noised, PricedMeasurement, PricedPlan
from dpsql.plan.recall import AS_GOOD, Finer, Piece, Slot, key_of, widths
from dpsql.privacy.mechanisms.noise_sum import NoiseSum
from dpsql.release.postprocess import PostProcessor
from dpsql.release.rows import ColumnNoise, NoisyRows, as_type, schema
from dpsql.release.stored import StoredTable, from_bytes, to_bytes
from dpsql.sql.render import expression

Bodies = Callable[[str], bytes | None]
"""The release under a name; None if it was removed meanwhile."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Some released columns of one measurement, behind its keys."""

    table: pa.Table
    noise: tuple[ColumnNoise | None, ...]


@dataclass(frozen=True, slots=True)
class Had:
    """A piece and where it comes from: ``kept``, as it is or added up; None if it is measured.

    With a ``refinement`` it is measured once more, less exactly, and merged with ``kept``.
    """

    piece: Piece
    kept: Kept | None = None
    columns: tuple[Columns, ...] = ()
    added_up: bool = False
    refinement: Refinement | None = None

    @property
    def measured(self) -> bool:
        """Whether something must be measured for it."""
        return self.kept is None or self.refinement is not None


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where each piece of an answer comes from, and what is still due."""

    had: tuple[Had, ...]
    due: Due


def foresee(
    priced: PricedPlan,
    wanted: Sequence[Piece],
    kin: Sequence[Kept],
    bodies: Bodies,
    postprocessor: PostProcessor,
) -> Outlook:
    """How the pieces of a plan are had from what is kept (``kin``), at no less accuracy."""
    store = _Store(priced, kin, bodies, postprocessor)
    had = tuple(_in_pairs(priced, [store.find(piece) for piece in wanted]))
    refined: dict[tuple[int, int], Noise | None] = {}
    for found in had:
        if found.measured:
            noise = None if found.refinement is None else found.refinement.noise
            for slot in found.piece.slots:
                refined |= {(slot.part, position): noise for position in slot.columns}
                if priced.parts[slot.part].selection is not None:
                    refined[slot.part, -1] = None
    return Outlook(had, due(priced, refined))


def _in_pairs(priced: PricedPlan, had: list[Had]) -> list[Had]:
    """Halves that are both due are measured together: refined by one law, or else anew.

    Claim: what is due costs no more than the plan.
    Argument: a half by itself costs less than both; both by themselves could cost more.
    """
    places = {
        (slot.part, slot.columns[0]): i for i, h in enumerate(had) for slot in h.piece.slots[:1]
        if slot.columns
    }  # fmt: skip
    found = list(had)
    for (part, position), i in places.items():
        item = priced.parts[part].noised[position]
        twin = item.halves if isinstance(item, Noised) else None
        if twin is None or twin.other < position or (part, twin.other) not in places:
            continue
        j = places[part, twin.other]
        one, other = found[i], found[j]
        if not (one.measured and other.measured and (one.refinement or other.refinement)):
            continue
        both = None
        if one.refinement and other.refinement:
            twins = (position, _law_of(one)), (twin.other, _law_of(other))
            both = refined_together(priced.parts[part], twins)
        for k, refined in zip((i, j), both or (None, None), strict=True):
            found[k] = replace(found[k], refinement=refined) if both else Had(found[k].piece)
    return found


def _law_of(had: Had) -> NoiseSum:
    """The noise of the stored number that a piece is merged with."""
    [noise] = had.columns[0].noise
    assert noise is not None
    return noise.laws[0]


@dataclass(frozen=True, slots=True)
class _Store:
    """What is kept, looked through for one plan."""

    priced: PricedPlan
    kin: Sequence[Kept]
    bodies: Bodies
    postprocessor: PostProcessor

    def find(self, piece: Piece) -> Had:
        check()
        found = self._same(piece) or self._sum(piece) or self._refined(piece) or Had(piece)
        take(sum(columns.table.nbytes for columns in found.columns))
        return found

    def _family(self, piece: Piece) -> list[Kept]:
        family = [kept for kept in self.kin if kept.key.family == piece.family]
        return sorted(dict.fromkeys(family), key=lambda kept: sum(kept.key.noise))

    def _tables(self, kept: Kept) -> tuple[StoredTable, ...]:
        body = self.bodies(kept.key.key)
        return () if body is None else from_bytes(body)

    def _same(self, piece: Piece) -> Had | None:
        """A release of the piece that is at least as good."""
        for kept in self._family(piece):
            if piece.served_by(kept.key.noise) and (tables := self._tables(kept)):
                return Had(piece, kept, tuple(_columns(table) for table in tables))
        return None

    def _sum(self, piece: Piece) -> Had | None:
        """Finer groups that add up to the piece, with no more noise than it would have."""
        coarse = piece.coarse
        if coarse is None:
            return None
        finer = (k for k in self.kin if k.key.base == coarse.base and k.key.family != piece.family)
        for kept in sorted(dict.fromkeys(finer), key=lambda kept: sum(kept.key.noise)):
            if kept.key.noise[0] > piece.noise[0] * AS_GOOD:
                break
            how = coarse.from_finer(kept.key.about)
            tables = () if how is None else self._tables(kept)
            if how is not None and tables:
                columns = self._added(piece, how, tables[0])
                if columns is not None and piece.served_by(_widest(columns)):
                    return Had(piece, kept, (columns,), added_up=True)
        return None

    def _added(self, piece: Piece, how: Finer, stored: StoredTable) -> Columns | None:
        """The sums over finer groups; None if a group of the piece has none."""
        part = self.priced.parts[piece.slots[0].part]
        [law] = stored.noise
        assert law is not None
        keys = len(stored.table.column_names) - 1
        table = stored.table.rename_columns([*(f"k{i}" for i in range(keys)), "v"])
        found = self.postprocessor.run(*_sums(part, how, table))
        counts = found.column("n").to_pylist()
        if not counts or not all(counts) or found.column("v").null_count:
            return None
        different = sorted(set(counts))
        of_row = np.searchsorted(np.array(different), np.array(counts))
        noise = ColumnNoise(tuple(law.repeated(n) for n in different), of_row)
        return Columns(found.drop_columns(["n"]), (noise,))

    def _refined(self, piece: Piece) -> Had | None:
        """A release that is not good enough, and the new noise that makes it so."""
        slot = piece.slots[0]
        part = self.priced.parts[slot.part]
        if len(piece.slots) > 1 or len(slot.columns) != 1 or part.selection is not None:
            return None
        for kept in self._family(piece):
            for stored in self._tables(kept):
                [law] = stored.noise
                found = None if law is None else refinement(part, slot.columns[0], law)
                if found is not None:
                    return Had(piece, kept, (_columns(stored),), refinement=found)
        return None


def _columns(stored: StoredTable) -> Columns:
    return Columns(
        stored.table, tuple(None if n is None else ColumnNoise((n,)) for n in stored.noise)
    )


def _widest(columns: Columns) -> tuple[float, float]:
    [noise] = columns.noise
    assert noise is not None
    pairs = [_widths(law) for law in noise.laws]
    return max(sd for sd, _ in pairs), max(width for _, width in pairs)


def _widths(law: NoiseSum) -> tuple[float, float]:
    check()  # a sum of finer groups may have thousands of laws
    return widths(law)


def _sums(part: PricedMeasurement, how: Finer, table: pa.Table) -> tuple[str, dict[str, pa.Table]]:
    """Sums over the stored table for each public group of the measurement, in key order.

    A query, and the tables that it reads.
    """
    names = {-1 - i: f'"k{i}"' for i in range(table.num_columns - 1)}
    keys = [f"{expression(key, names)} AS k{i}" for i, key in enumerate(how.keys)]
    total = "sum(v)" if pa.types.is_floating(table.column("v").type) else _WHOLE_SUM
    items = ", ".join([*keys, f"{total} AS v", "count(*) AS n"])
    where = " AND ".join(expression(condition, names) for condition in how.conditions)
    group = ", ".join(str(i + 1) for i in range(len(keys)))
    text = f"SELECT {items} FROM finer" + (f" WHERE {where}" if where else "")
    cells = part.measurement.cells
    if not keys or cells is None:
        return text, {"finer": table}
    groups, tables = cells.beside()
    named = [f"k{i}" for i in range(len(keys))]
    match = " AND ".join(f"c.{k} IS NOT DISTINCT FROM a.{k}" for k in named)
    order = ", ".join(f"c.{k} ASC NULLS LAST" for k in named)
    text = (
        f"SELECT {', '.join(f'c.{k}' for k in named)}, a.v, a.n FROM ({groups}) AS c"
        f" LEFT JOIN ({text} GROUP BY {group}) AS a ON {match} ORDER BY {order}"
    )
    return text, {"finer": table, **tables}


_WHOLE_SUM = "TRY_CAST(sum(v) AS BIGINT)"


def complete(
    priced: PricedPlan, outlook: Outlook, measured: Sequence[NoisyRows]
) -> tuple[tuple[NoisyRows, ...], dict[RecallKey, bytes]]:
    """The released tables of a plan from stored pieces and new ones; the new ones, to be kept."""
    new = {d.slot.part: (d, rows) for d, rows in zip(outlook.due.parts, measured, strict=True)}
    columns: dict[tuple[int, tuple[int, ...]], Columns] = {}
    keep: dict[RecallKey, bytes] = {}
    for had in outlook.had:
        tables, slots = had.columns, had.piece.slots
        if had.measured:
            tables = tuple(_taken(slot, *new[slot.part]) for slot in slots)
            if had.refinement is not None:
                tables = (_average(had.columns[0], tables[0], had.refinement),)
            keep |= dict([_kept(had, tables)])
        columns |= {(s.part, s.columns[:1]): t for s, t in zip(slots, tables, strict=True)}
    return tuple(_assembled(priced, outlook, columns)), keep


def _taken(slot: Slot, due: DuePart, rows: NoisyRows) -> Columns:
    """The columns of a slot from a measurement that has them among others."""
    keys = len(due.priced.measurement.keys)
    at = [due.slot.columns.index(position) for position in slot.columns]
    table = rows.table.select([*range(keys), *(keys + i for i in at)])
    return Columns(table, tuple(rows.noise[i] for i in at))


def _average(stored: Columns, new: Columns, how: Refinement) -> Columns:
    """Both numbers of each group, by their weights; kept as it comes out, not rounded."""
    old = _rows_like(new.table, stored.table, new.table.num_columns - 1)
    one, other = (np.asarray(t.column(-1), dtype=np.float64) for t in (new.table, old))
    weight = float(how.weight)
    merged = pa.array(weight * one + (1 - weight) * other)
    name, last = new.table.column_names[-1], new.table.num_columns - 1
    return Columns(new.table.set_column(last, name, merged), (ColumnNoise((how.merged,)),))


def _rows_like(like: pa.Table, table: pa.Table, count: int) -> pa.Table:
    """The rows of ``table`` with the keys of ``like`` in its order: public groups are the same."""
    if like is table or all(like.column(i).equals(table.column(i)) for i in range(count)):
        return table
    place = {key: row for row, key in enumerate(_keys(table, count))}
    return table.take(pa.array([place[key] for key in _keys(like, count)], pa.int64()))


def _keys(table: pa.Table, count: int) -> list[tuple[Any, ...]]:
    """The key of each row; NaN, which does not equal itself, as a word."""
    columns = (table.column(i).to_pylist() for i in range(count))
    return list(zip(*([v if v == v else "NaN" for v in c] for c in columns), strict=True))


def _kept(had: Had, tables: Sequence[Columns]) -> tuple[RecallKey, bytes]:
    """Under which name a new piece is kept, and its bytes."""
    piece, key, noise = had.piece, had.piece.key, had.piece.noise
    if had.refinement is not None:
        merged = had.refinement.merged
        key, noise = key_of(piece.family, merged), widths(merged)
    stored = (
        StoredTable(t.table, tuple(None if n is None else n.laws[0] for n in t.noise))
        for t in tables
    )
    return RecallKey(key, piece.family, noise, piece.base, piece.about), to_bytes(stored)


def _assembled(
    priced: PricedPlan, outlook: Outlook, columns: Mapping[tuple[int, tuple[int, ...]], Columns]
) -> Iterator[NoisyRows]:
    """Each measurement of the plan from its pieces, under its own names and types."""
    slots = [slot for had in outlook.had for slot in had.piece.slots]
    for at, part in enumerate(priced.parts):
        mine = [(s, columns[at, s.columns[:1]]) for s in slots if s.part == at]
        first, keys = mine[0][1].table, len(part.measurement.keys)
        arrays = [first.column(i) for i in range(keys)]
        values: dict[int, tuple[pa.ChunkedArray, ColumnNoise | None]] = {}
        for slot, found in mine:
            table = _rows_like(first, found.table, keys)
            for i, position in enumerate(slot.columns):
                values[position] = table.column(keys + i), found.noise[i]
        arrays += [values[i][0] for i in range(len(values))]
        target = schema(part.measurement.key_fields + part.measurement.columns)
        typed = [_typed(array, f.type) for array, f in zip(arrays, target, strict=True)]
        noise = tuple(values[i][1] for i in range(len(values)))
        summed = any(h.added_up and any(s.part == at for s in h.piece.slots) for h in outlook.had)
        table = pa.Table.from_arrays(typed, schema=target)
        yield NoisyRows(part.measurement.name, table, noise, summed)


def _typed(array: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_floating(array.type) and pa.types.is_integer(wanted):
        array = pc.round(array)
    return as_type(array, wanted)
