"""What a whole dashboard would cost: each statement after those before it, and what is stored.

Nothing is spent and no data is read. Answers that would be stored by then are rehearsed: they have
the groups and the noise of the real ones, and no numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from dpsql.diagnostics.refusal import Refused
from dpsql.ledger.store import Kept, Ledger
from dpsql.pipeline import kept_of
from dpsql.plan.due import DuePart
from dpsql.plan.priced import PricedPlan
from dpsql.plan.recall import pieces
from dpsql.privacy.cost import Cost
from dpsql.release.noise import column_noise
from dpsql.release.postprocess import PostProcessor
from dpsql.release.recall import Outlook, complete, foresee
from dpsql.release.rows import NoisyRows, schema


@dataclass(frozen=True, slots=True)
class Tile:
    """A statement of a batch: what it costs alone, and what is left of that."""

    statement: str
    alone: Cost
    due: Cost
    refused: Refused | None = None


@dataclass(slots=True)
class Rehearsal:
    """A ledger's store with what would be stored besides."""

    ledger: Ledger
    answers_key: str
    postprocessor: PostProcessor
    kept: list[Kept] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)

    def tile(self, statement: str, priced: PricedPlan) -> Tile:
        """The price of a plan; from now on its answer counts as stored."""
        wanted = pieces(priced, self.answers_key)
        families = {piece.family for piece in wanted}
        bases = {piece.coarse.base for piece in wanted if piece.coarse is not None}
        mine = [k for k in self.kept if k.key.family in families or k.key.base in bases]
        kin = (*kept_of(wanted, self.ledger), *mine)
        outlook = foresee(priced, wanted, kin, self._body, self.postprocessor)
        self._keep(priced, outlook)
        return Tile(statement, priced.cost, outlook.due.cost)

    def _body(self, key: str) -> bytes | None:
        return self.bodies.get(key) or self.ledger.recall(key)

    def _keep(self, priced: PricedPlan, outlook: Outlook) -> None:
        measured = [self._rows(part) for part in outlook.due.parts]
        for key, body in complete(priced, outlook, measured)[1].items():
            self.kept.append(Kept(key, datetime.min.replace(tzinfo=UTC)))
            self.bodies[key.key] = body

    def _rows(self, part: DuePart) -> NoisyRows:
        """Rows as a measurement would release them: its public groups, and zeros."""
        measurement = part.priced.measurement
        names = schema(measurement.key_fields + measurement.columns)
        keys, rows = self._keys(part)
        values = [
            pa.array([0] * rows).cast(f.type)
            if pa.types.is_primitive(f.type)
            else pa.nulls(rows, f.type)
            for f in names
        ][len(keys) :]
        arrays = [k.cast(f.type) for k, f in zip(keys, names, strict=False)] + values
        table = pa.Table.from_arrays(arrays, schema=names)
        return NoisyRows(measurement.name, table, column_noise(part.priced))

    def _keys(self, part: DuePart) -> tuple[Sequence[pa.ChunkedArray], int]:
        """Public groups; those that must pass a threshold are not known, and none is made up."""
        measurement = part.priced.measurement
        if measurement.cells is None:
            return [pa.nulls(0) for _ in measurement.keys], 0
        if not measurement.keys:
            return [], 1
        found = self.postprocessor.run(*measurement.cells.beside())
        return found.columns, found.num_rows


def whole(tiles: Sequence[Tile]) -> Tile:
    """A statement with the searches that come before it, as one; it is the last of them."""
    alone, due = total(tiles)
    return Tile(tiles[-1].statement, alone, due)


def total(tiles: Iterable[Tile]) -> tuple[Cost, Cost]:
    """What all statements cost alone, and together."""
    listed: Sequence[Tile] = list(tiles)
    return (
        sum((tile.alone for tile in listed), Cost.zero()),
        sum((tile.due for tile in listed), Cost.zero()),
    )
