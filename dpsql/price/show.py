"""A priced plan as text, for EXPLAIN and golden files: stable, exact, and independent of data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from dpsql.bound import (
    Bounding,
    GroupCaps,
    NormClip,
    OneRow,
    PreparedRows,
    RowWeights,
    UnitTotals,
    VectorClip,
    WeightsAndGroups,
)
from dpsql.bound.found_limits import Amount, Norm
from dpsql.bound.row_weights import Weights
from dpsql.bound.vector_clip import norm_text
from dpsql.catalog.statistic import Cap, Mode, Quantile, Rows, Statistic, Total, Units, Values
from dpsql.exact import number
from dpsql.plan.empty_groups import least_units
from dpsql.policy.types import Scalar
from dpsql.price.notes import notes
from dpsql.price.priced import Chosen, Noised, PricedMeasurement, PricedPlan, Search
from dpsql.price.search import every_search
from dpsql.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    TruncatedGeometric,
)


@dataclass(frozen=True, slots=True)
class RunsIf:
    """A statement that may run, and the condition on the data under which it does."""

    condition: str
    sql: str

    def __str__(self) -> str:
        """The condition, in words."""
        return f"runs if: {self.condition}"


Statements = Callable[[PricedMeasurement], Sequence[RunsIf]]
"""Returns the statements that an engine may run for a measurement; the first has no condition.

Of the other statements, the first whose condition holds is run. Which one it is depends on the data
and is not shown.
"""


def show(priced: PricedPlan, statements: Statements) -> str:
    """The whole plan: measurements, noise, statements, cost."""
    lines = [line for search in every_search(priced) for line in search_lines(search, statements)]
    for part in priced.parts:
        lines += [*_measurement(part), *_statements(part, statements)]
    for public in priced.plan.publics:
        lines.append(f"public {public.name}: read exactly, free")
    lines += [f"note: {note}" for note in notes(priced)]
    lines.append(cost_line(priced))
    return "\n".join(lines)


def cost_line(priced: PricedPlan) -> str:
    """The cost of the answer, in one line."""
    cost = priced.price
    if not priced.parts:
        return "cost: nothing (no private table is read)"
    return (
        f"cost: epsilon {number(cost.epsilon)}, delta {number(cost.delta)}, rho {number(cost.rho)}"
    )


_AMOUNTS: dict[Amount, str] = {
    "units": "how many groups of a {unit} count",
    "rows": "how many rows of a {unit} count",
    "worth": "what the values of a {unit} add up to, in units of the largest value",
}
_NORMS: dict[Norm, str] = {1: "", 2: ", as a Euclidean norm over groups"}


def search_lines(search: Search, statements: Statements) -> Iterator[str]:
    """A search: its question, its cost, its mechanism and its measurements."""
    [part] = search.priced.parts
    [item] = part.noised
    assert isinstance(item, Chosen)
    cost, unit = number(search.priced.cost.epsilon), part.measurement.privacy.unit
    names = ", ".join(search.measurements)
    if search.size is None:
        low, high = map(number, search.rungs)
        yield f"search: a centre of the values of s{search.position}, from {low} to {high}; epsilon {cost}, once"
        yield f"      {noise_text(item)}"
        yield f"      {names}: the sum is taken around it, so that values of a {unit} cancel"
    else:
        most = number(search.rungs[-1])
        what, end = _AMOUNTS[search.size.amount].format(unit=unit), _NORMS[search.size.norm]
        yield (
            f"search: {what}{end}, one of {len(search.rungs)} limits up to {most};"
            f" epsilon {cost}, once"
        )
        scale, beyond = number(item.noise.scale * item.step), float(item.depth * item.step)
        yield (
            f"      exponential mechanism, scale {scale} units;"
            f" meant to leave about {beyond:.6g} units beyond it"
        )
        yield f"      {names}: errors below are for {most}, and become smaller with a smaller limit"
    yield from _statements(part, statements)


def _statements(part: PricedMeasurement, statements: Statements) -> Iterator[str]:
    own, *others = statements(part)
    yield "  sql, runs if no condition below holds:" if others else "  sql:"
    yield from (f"    {line}" for line in own.sql.splitlines())
    for other in others:
        yield f"  sql, {other}"
        yield from (f"    {line}" for line in other.sql.splitlines())


def _measurement(part: PricedMeasurement) -> Iterator[str]:
    measurement = part.measurement
    yield f"measurement {measurement.name}: per {measurement.privacy.unit}, {groups_text(part)}"
    yield f"  bounded by: {bounding_text(part)}"
    for column, item in zip(measurement.columns, part.noised, strict=True):
        yield f"  {column.name}: {statistic_text(item.statistic)}"
        yield f"      {noise_text(item)}"
    if part.selection is not None and part.selection.shares is None:
        yield f"  selection: number of units; {noise_text(part.selection.units)}"


def groups_text(part: PricedMeasurement) -> str:
    """The groups that are answered."""
    if not part.measurement.keys:
        return "one answer, no groups"
    if part.measurement.cells is None:
        assert part.selection is not None
        return f"groups that pass a threshold of {part.selection.threshold} units"
    groups = f"{part.measurement.cells.count} public groups"
    count = part.measurement.unit_count
    noise = None if count is None else part.noise(count.position)
    if noise is None:
        return groups
    return f"{groups}, of which those with at least {least_units(part.measurement, (noise,))} units take part"


def bounding_text(part: PricedMeasurement) -> str:
    """The stages that bound one unit's contribution."""
    return ", ".join((part.bounding.name, *_limits(part.bounding)))


def _limits(bounding: Bounding) -> Iterator[str]:
    match bounding:
        case OneRow():
            pass
        case PreparedRows(rows=rows):
            yield f"at most {rows} rows of a unit are read"
        case UnitTotals(per_group=per_group):
            yield f"at most {per_group} rows of a unit in a group"
        case GroupCaps(groups=groups, limit=limit, per_group=per_group):
            if limit:
                yield f"at most {groups} groups of a unit"
            yield f"at most {per_group} rows of a unit in a group"
        case RowWeights() | WeightsAndGroups():
            yield from _weighed(bounding)
        case NormClip(norm=norm):
            yield f"norm of a unit's counts at most {number(norm)}"
        case VectorClip():
            yield from _clipped(bounding)
        case _:
            assert_never(bounding)


def _clipped(clip: VectorClip) -> Iterator[str]:
    """The limits of each kind of statistic, over all groups together."""
    what = "in all" if clip.norm == 1 else "as a Euclidean norm"
    kinds = (clip.units, "groups"), (clip.rows, "rows"), (clip.worth, "times the largest value")
    for power, of in kinds:
        yield f"a unit counts as at most {norm_text(power, clip.norm)} {of} {what}"


def _weighed(bounding: RowWeights | WeightsAndGroups) -> Iterator[str]:
    yield _weight(bounding)
    if isinstance(bounding, WeightsAndGroups) and bounding.limit:
        yield f"at most {bounding.groups} groups of a unit"


def _weight(weights: Weights) -> str:
    if not weights.valued:
        return f"a unit weighs at most {weights.rows} rows"
    rows = number(Fraction(weights.rows))
    return f"a unit weighs at most what {rows} rows of the largest value do"


def statistic_text(statistic: Statistic) -> str:
    """What a statistic counts, sums or chooses."""
    where = "" if statistic.where is None else ", where a condition holds"
    match statistic:
        case Rows(cap=cap):
            return f"number of rows{_cap(cap, 'number')}{where}"
        case Units():
            return f"number of units{where}"
        case Values():
            return f"number of different values{where}"
        case Total(low=low, high=high, centre=centre, cap=cap, averaged=averaged):
            centred = "" if centre == 0 else f", less {number(centre)}"
            what = "means of units, of" if averaged else "sum of"
            part = _cap(cap, "mean" if averaged else "sum")
            return f"{what} values clamped to {number(low)} .. {number(high)}{part}{centred}{where}"
        case Mode():
            return f"commonest of a public list of values{where}"
        case Quantile(members=tuple()):
            return f"{_quantile(statistic)} of a public list of values{where}"
        case Quantile(low=bottom, high=top):
            ends = f"{_end(bottom)} .. {_end(top)}"
            return f"{_quantile(statistic)} of values clamped to {ends}{where}"
        case _:
            assert_never(statistic)


def _cap(cap: Cap | None, what: str) -> str:
    """How the contribution of a unit to a group is clamped."""
    return "" if cap is None else f", a unit's {what} to {number(cap[0])} .. {number(cap[1])}"


def _quantile(statistic: Quantile) -> str:
    """The rank that is asked for."""
    if statistic.extreme:
        return "approximate " + ("maximum" if statistic.fraction else "minimum")
    return f"quantile {number(statistic.fraction)}"


def _end(value: Scalar) -> str:
    return number(Fraction(value)) if isinstance(value, int | Fraction) else str(value)


def noise_text(item: Noised | Chosen) -> str:
    """Sensitivity, mechanism, scale and expected error, in the statistic's own units."""
    within = f"within {item.half_width:.6g} (95 %)"
    if isinstance(item, Chosen):
        best = "largest count" if isinstance(item.statistic, Mode) else "rank asked for"
        rows = f"rows of the {best} (95 %)"
        extreme = isinstance(item.statistic, Quantile) and item.statistic.extreme
        where = f"; {item.half_width:.6g} rows from the end" if extreme else ""
        within = f"within {item.half_width:.6g} {rows}{where}"
    return f"moved by at most {number(unit_influence(item))}; {law_text(item)}; {within}"


def unit_influence(item: Noised | Chosen) -> Fraction:
    """How far one unit can move the statistic, in the norm to which its noise is scaled."""
    match item.noise:
        case DiscreteLaplace() | TruncatedGeometric():
            return item.sensitivity.l1 * item.grain
        case Exponential():
            two_ways = 2 if isinstance(item.statistic, Quantile) else 1
            return item.sensitivity.l1 * item.step / two_ways
        case DiscreteGaussian():
            return Fraction(float(item.sensitivity.l2_squared) ** 0.5) * item.step
        case _:
            assert_never(item.noise)


def law_text(item: Noised | Chosen) -> str:
    """The law of the noise."""
    match item.noise:
        case Exponential(scale=scale, candidates=count):
            return f"exponential mechanism among {count}, scale {number(scale * item.step)} rows"
        case DiscreteLaplace(scale=scale):
            law = f"discrete Laplace, scale {number(scale * item.step)}"
            twin = item.halves
            return law if twin is None else f"{law} for each of two halves, with s{twin.other}"
        case TruncatedGeometric(epsilon=epsilon, bound=bound):
            return f"truncated geometric, scale {number(1 / epsilon)}, at most {bound}"
        case DiscreteGaussian():
            return f"discrete Gaussian, deviation {item.standard_deviation:.6g}"
        case _:
            assert_never(item.noise)
