"""Whatever a strategy leaves out of a number, its cuts say so; the law notices one that says nothing.

Each statistic is computed under the strategy and without any, over data where units break all limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest
from support.corpus import SHOP
from support.datasets import in_memory
from support.measured import exact, forced
from test_bounding_faults import FORCED, _parts
from test_ranks import copied, ways

from dpsql.bound import STRATEGIES, GroupCaps, OneRow, PreparedRows, WeightsAndGroups
from dpsql.catalog.statistic import Rows, Statistic, Total
from dpsql.plan.nodes import Measurement
from dpsql.price import notes
from dpsql.price.priced import Chosen, PricedMeasurement

DISTINCT = "SELECT COUNT(DISTINCT placed) FROM orders"
PREPARED = "SELECT channel, COUNT(*), SUM(amount) FROM orders GROUP BY channel"
MUCH = 1e-3
"""What rounding leaves out is less."""
EVERYTHING = GroupCaps(groups=10**4, limit=False, per_group=10**4)
"""Leaves out nothing of these data."""
Cases = Sequence[tuple[PricedMeasurement, duckdb.DuckDBPyConnection]]


def cases() -> Cases:
    """Every strategy with small limits, and what reads a copy."""
    dirty = in_memory("dirty")
    found = [
        (part, dirty)
        for bounding, queries in FORCED.values()
        for sql in queries
        for part in _parts(sql, bounding)
        if part.share.family == "laplace"
    ]
    for bounding in (GroupCaps(1, limit=False, per_group=3), WeightsAndGroups(3, 1, limit=False)):
        found += [(part, dirty) for part in _parts(DISTINCT, bounding)]
    read = [p for p in ways(PREPARED, SHOP) if isinstance(p.bounding, PreparedRows)]
    small = [replace(p, bounding=replace(p.bounding, rows=7)) for p in read]
    found += [
        (forced(p.measurement, p.bounding, p.share, p.reading), copied(SHOP, ())) for p in small
    ]
    return found


def cut(
    part: PricedMeasurement, connection: duckdb.DuckDBPyConnection
) -> Iterator[tuple[int, Statistic]]:
    """The statistics from which the strategy leaves something out."""
    exactly = replace(part.share, family="laplace", label=Fraction(10**9), rho=None)
    whole = forced(_uncapped(part.measurement), EVERYTHING, exactly)
    mine, full = exact(connection, [part, whole])
    for i, statistic in enumerate(part.measurement.statistics):
        one, other = part.noised[i], whole.noised[i]
        assert not isinstance(one, Chosen)
        assert not isinstance(other, Chosen)
        for key in mine.keys() | full.keys():
            value = float((mine[key][i] or 0) * one.grain) if key in mine else 0.0
            true = float((full[key][i] or 0) * other.grain) if key in full else 0.0
            if abs(value - true) > MUCH * max(1, abs(true)):
                yield i, statistic
                break


def _uncapped(measurement: Measurement) -> Measurement:
    """The measurement without caps that the query asks for."""
    free = tuple(
        replace(s, cap=None) if isinstance(s, Rows | Total) else s for s in measurement.statistics
    )
    return replace(measurement, statistics=free)


def said(part: PricedMeasurement, statistic: Statistic) -> list[str]:
    """What a reader is told where this statistic is the only one."""
    alone = replace(part.measurement, statistics=(statistic,))
    return list(notes._cuts(replace(part, measurement=alone)))


def unsaid(found: Cases) -> tuple[list[str], set[type]]:
    """Cuts that no note names, and the strategies of all cuts."""
    silent, kinds = [], set()
    for part, connection in found:
        for i, statistic in cut(part, connection):
            kinds.add(type(part.bounding))
            if not said(part, statistic):
                silent.append(f"{part.bounding}: s{i} {statistic}")
    return silent, kinds


def test_what_is_cut_is_said() -> None:
    silent, kinds = unsaid(cases())
    assert not silent, "\n".join(silent)
    assert kinds == set(STRATEGIES) - {OneRow}, "the law sees a cut of each strategy"


@pytest.mark.parametrize("strategy", set(STRATEGIES) - {OneRow}, ids=lambda s: s.name)
def test_a_strategy_that_forgets_its_cuts_is_noticed(
    strategy: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategy, "cuts", ())
    silent, _ = unsaid([case for case in cases() if isinstance(case[0].bounding, strategy)])
    assert silent
