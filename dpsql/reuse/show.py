"""Lines of EXPLAIN about stored answers: which are used, their time, and the cost of the rest."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.exact import number
from dpsql.price.priced import PricedPlan
from dpsql.reuse.match import AnswerSources
from dpsql.reuse.pieces import Piece


def explain_sources(priced: PricedPlan, sources: AnswerSources) -> tuple[str, ...]:
    """A line for each stored piece that is used, then the cost left to pay; no lines if none is."""
    named = ((source, ", ".join(_names(priced, source.piece))) for source in sources.pieces)
    lines = [line for source, names in named if (line := source.explain(names)) is not None]
    if not lines:
        return ()
    cost = sources.due.cost
    if not sources.due.parts:
        return (*lines, "to pay: nothing")
    left = f"to pay: epsilon {number(cost.epsilon)}, delta {number(cost.delta)}"
    return (*lines, f"{left}, rho {number(cost.rho)}")


def _names(priced: PricedPlan, piece: Piece) -> Iterator[str]:
    """The statistics of a piece, as the plan names them."""
    for slot in piece.slots:
        measurement = priced.parts[slot.part].measurement
        yield from (f"{measurement.name}.{measurement.columns[i].name}" for i in slot.columns)
        if not slot.columns:
            yield measurement.name
