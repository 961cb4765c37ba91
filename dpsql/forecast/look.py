"""Exact figures of the data for its owner: what limits and ranges cut, and errors in percent.

Nothing here is private. An analyst who sees these figures learns what no noise protects.

Claim: no ledger, answer, setting or face that an analyst can reach is changed or read by this module.
Assumes: the services that it is given have a ledger of their own (``planner.open_planner``).
Argument: the plans without noise are made here and are run with these services alone, and figures
    are returned to the caller. ``serve``, ``service`` and ``dbapi`` import nothing of this package.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa

from dpsql.diagnostics.refusal import EngineFailed, Refused
from dpsql.engines.duckdb.exact_limits import ExactLimits
from dpsql.forecast.planner import Planner
from dpsql.forecast.predict import Prediction
from dpsql.forecast.settings import LEAST_ROWS, with_range, with_role, with_table
from dpsql.ledger.accounts import accounts_for
from dpsql.ledger.store import Note
from dpsql.pipeline import Payer, admit_part, measure
from dpsql.policy.model import Policy, QueryLimit
from dpsql.policy.version import version_of
from dpsql.price.priced import Chosen, Noised, PricedMeasurement
from dpsql.privacy.mechanisms import DiscreteLaplace
from dpsql.release.finish import finish
from dpsql.release.lookups import read_public_tables
from dpsql.release.noise import column_noise
from dpsql.release.rows import Release
from dpsql.service import Service, Session
from dpsql.service.searching import with_found_bounds

SILENT = Fraction(1, 10_000)
"""A scale at which noise is 0, but for one answer in more than there will ever be."""
FINE = Fraction(10**6)
"""An epsilon at which true values are asked for. They are rounded as values of answers are: half of
the widest range has ``grid.FINE_BITS`` bits."""
MOST_GROUPS = 10**6
"""More groups than one unit can be in."""
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ExactColumn:
    """Figures of one column of an answer; None where there is none, such as of a chosen value.

    ``typical`` is the median of the true values of all groups. ``noise`` is the width of the noise,
    19 times in 20, and ``cut`` is how far limits and ranges move the value: both as shares of the
    true value, in the median of all groups. ``rows``, ``groups`` and ``values`` say by which share
    the sum of all shown groups becomes smaller because of limits on rows of a unit, on groups of a
    unit, and ranges.
    """

    position: int
    typical: float | None = None
    noise: float | None = None
    cut: float | None = None
    rows: float | None = None
    groups: float | None = None
    values: float | None = None


@dataclass(frozen=True, slots=True)
class ExactFigures:
    """Exact figures of an answer, with the number of groups shown and of those that there are."""

    shown: int
    groups: int
    columns: tuple[ExactColumn, ...]


class Look:
    """Looks at the data of a planner's policy."""

    def __init__(self, planner: Planner, role: str, limits: ExactLimits) -> None:
        """``limits`` are those that cut nothing."""
        self._planner, self._role, self._limits = planner, role, limits
        self._found: dict[tuple[str, str, str], Release | None] = {}
        self._sessions = 0

    def figures(
        self, session: Session, policy: Policy, text: str, prediction: Prediction
    ) -> ExactFigures | None:
        """The figures of a question that ``session`` asks; None where they cannot be computed."""
        answered = [column.position for column in prediction.columns]
        true = self._without_limits(policy, text, session.settings.dialect)
        if true is None:
            return None
        try:
            release = self._release(session, policy, text, real=True)
        except (Refused, EngineFailed):
            return None
        stages = [_values(found, answered) for found in (release, *true)]
        columns = tuple(
            _column(i, position, release, stages) for i, position in enumerate(answered)
        )
        return ExactFigures(len(stages[0]), len(stages[0].keys() | stages[-1].keys()), columns)

    def _without_limits(self, policy: Policy, text: str, dialect: str) -> list[Release] | None:
        """The answers without limits on rows, then without any on groups, then without ranges."""
        found = []
        for lifted in self._lift(policy):
            key = version_of(lifted), text, dialect
            if key not in self._found:
                self._found[key] = self._try_release(self._session(lifted, dialect), lifted, text)
            release = self._found[key]
            if release is None:
                return None
            found.append(release)
        return found

    def _try_release(self, session: Session, policy: Policy, text: str) -> Release | None:
        try:
            return self._release(session, policy, text, real=False)
        except (Refused, EngineFailed):
            return None

    def _session(self, policy: Policy, dialect: str) -> Session:
        session = self._planner.service(policy).session(self._role)
        session.settings = replace(session.settings, dialect=dialect)  # the mean of nobody is NULL
        return session

    def _lift(self, policy: Policy) -> tuple[Policy, Policy, Policy]:
        """The policy without limits on rows, also without limits on groups, also without ranges."""
        query = QueryLimit(FINE, policy.roles[self._role].query.delta)
        rows = with_role(policy, self._role, query=query)
        for name, most in self._limits.rows.items():
            table = rows.tables[name]
            if table.max_rows_per_unit >= LEAST_ROWS:
                limit = max(most, LEAST_ROWS)
                table = replace(table, max_rows_per_unit=limit, max_rows_per_group=None)
                rows = with_table(rows, table)
        groups = ranges = with_role(rows, self._role, max_groups_per_unit=MOST_GROUPS)
        for (name, column), ends in self._limits.ranges.items():
            ranges = with_table(ranges, with_range(ranges.tables[name], column, ends))
        return rows, groups, ranges

    def _payer(self, service: Service, text: str) -> Payer:
        """Pays for a search from a session of its own, in the planner's ledger."""
        self._sessions += 1
        name, policy = f"look {self._sessions}", service.policy
        accounts = accounts_for(policy, self._role, name, now=service.clock())
        own = [account for account in accounts if account.holder == "session"]
        return Payer(own, Note(policy.version, self._role, name, text), policy.answers_key)

    def _release(self, session: Session, policy: Policy, text: str, *, real: bool) -> Release:
        """The answer without noise. ``real``: with searches, thresholds, and intervals of the noise."""
        service = self._planner.service(policy)
        priced, tools = session.prepare(text, suggest=False), service.tools
        with session.execution():
            if real and priced.searches:
                with with_found_bounds(priced, self._payer(service, text), service) as (found, _):
                    priced = found
            parts = [without_noise(part, whole=not real) for part in priced.parts]
            public = read_public_tables(priced, tools.reader, tools.postprocessor)
            statements = [admit_part(part, tools) for part in parts]
            rows = measure(parts, statements, public, tools)
            noisy = tuple(
                replace(each, noise=column_noise(part))
                for each, part in zip(rows, priced.parts, strict=True)
            )
            return finish(priced, noisy, tools.finishing, intervals=real)


def without_noise(part: PricedMeasurement, *, whole: bool) -> PricedMeasurement:
    """The measurement with noise that is always 0. ``whole``: every group of some unit is shown."""
    selection = part.selection
    if selection is not None:
        units = _silent(selection.units)
        assert isinstance(units, Noised)
        threshold = 1 if whole else selection.threshold
        selection = replace(selection, units=units, threshold=threshold)
    return replace(part, noised=tuple(map(_silent, part.noised)), selection=selection)


def _silent(item: Noised | Chosen) -> Noised | Chosen:
    if isinstance(item, Chosen):
        return replace(item, noise=replace(item.noise, scale=SILENT))
    return replace(item, noise=DiscreteLaplace(SILENT))


def _values(release: Release, answered: Sequence[int]) -> dict[Key, list[float | None]]:
    """The answered values of each group, by the values of the other columns."""
    lists = [release.table.column(i).to_pylist() for i in range(release.table.num_columns)]
    keys = [i for i in range(len(lists)) if i not in answered]
    return {
        tuple(lists[i][row] for i in keys): [_number(lists[i][row]) for i in answered]
        for row in range(release.table.num_rows)
    }


def _number(value: object) -> float | None:
    known = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float(value) if known and math.isfinite(value) else None  # type: ignore[arg-type]


def _column(
    i: int, position: int, release: Release, stages: Sequence[Mapping[Key, list[float | None]]]
) -> ExactColumn:
    """The figures of one column; ``stages`` lift one limit after another, and the last has none."""
    true = {key: v for key, row in stages[-1].items() if (v := row[i]) is not None}
    if not true:
        return ExactColumn(position)
    widths = _widths(release, position, list(stages[0]))
    noise = [widths[k] / abs(v) for k, v in true.items() if v and k in widths]
    moved = [
        abs(own - v) / abs(v)
        for k, v in true.items()
        if v and k in stages[0] and (own := stages[0][k][i]) is not None
    ]
    sums = [_sum(stage, i, true.keys() & stages[0].keys()) for stage in stages]
    lost = [
        (after - before) / abs(sums[-1]) if sums[-1] else None for before, after in pairwise(sums)
    ]
    return ExactColumn(
        position, statistics.median(true.values()), _median(noise), _median(moved), *lost
    )


def _sum(stage: Mapping[Key, list[float | None]], i: int, among: Collection[Key]) -> float:
    """The sum of a column over some groups."""
    return math.fsum(row[i] or 0.0 for key, row in stage.items() if key in among)


def _median(numbers: Sequence[float]) -> float | None:
    return statistics.median(numbers) if numbers else None


def _widths(release: Release, position: int, keys: Sequence[Key]) -> dict[Key, float]:
    """The half width of the interval of each group."""
    ends = release.intervals.get(position)
    if ends is None or release.table.num_rows != len(keys):
        return {}
    low, high = (_floats(end) for end in ends)
    pairs = zip(keys, low, high, strict=True)
    return {key: (b - a) / 2 for key, a, b in pairs if a is not None and b is not None}


def _floats(array: pa.Array) -> list[float | None]:
    return [_number(value) for value in array.to_pylist()]
