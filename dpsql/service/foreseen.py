"""What EXPLAIN says about stored answers: which are used, from when, and what the rest costs."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.plan.priced import PricedPlan
from dpsql.plan.show import number
from dpsql.release.recall import Had, Outlook


def foreseen(priced: PricedPlan, outlook: Outlook) -> tuple[str, ...]:
    """A line for each stored piece that is used, then what is left to pay; nothing for none."""
    lines = [_line(priced, had) for had in outlook.had if had.kept is not None]
    if not lines:
        return ()
    cost = outlook.due.cost
    if not outlook.due.parts:
        return (*lines, "to pay: nothing")
    left = f"to pay: epsilon {number(cost.epsilon)}, delta {number(cost.delta)}"
    return (*lines, f"{left}, rho {number(cost.rho)}")


def _line(priced: PricedPlan, had: Had) -> str:
    assert had.kept is not None
    since = f"the answer of {had.kept.since:%Y-%m-%d %H:%M} UTC"
    of = ", ".join(_names(priced, had))
    if had.refinement is not None:
        return f"refined: {of}: {since}, averaged with a new one; only the difference is paid"
    if had.added_up:
        return f"recalled: {of}: {since} for finer groups, added up; it costs nothing"
    return f"recalled: {of}: {since}, at no less accuracy; it costs nothing"


def _names(priced: PricedPlan, had: Had) -> Iterator[str]:
    """Which statistics a piece is, as the plan names them."""
    for slot in had.piece.slots:
        measurement = priced.parts[slot.part].measurement
        yield from (f"{measurement.name}.{measurement.columns[i].name}" for i in slot.columns)
        if not slot.columns:
            yield measurement.name
