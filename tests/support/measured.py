"""Exact measurements, looked at without noise: what the laws of sensitivity are about."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

from dpsql.bound import Bounding
from dpsql.bound.candidates import candidates
from dpsql.bound.reading import Reading, match_copies
from dpsql.bound.sensitivity import Sensitivity
from dpsql.catalog.statistic import Total
from dpsql.checks import run as check
from dpsql.engines.duckdb.parameters import parameters
from dpsql.engines.duckdb.write import write
from dpsql.engines.engine import Engine, Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.ir.alternatives import Alternative
from dpsql.plan.build import build
from dpsql.plan.nodes import Measurement, Plan
from dpsql.price import price
from dpsql.price.priced import Chosen, PricedMeasurement, Share
from dpsql.price.request import Request
from dpsql.release.noise import halves
from dpsql.rewrite import rules
from dpsql.rewrite.statement import statement_of
from dpsql.service import Service
from dpsql.sql.bind import bind
from dpsql.sql.parse import Source, parse
from support.corpus import World
from support.services import FreeLedger, service
from support.utilities import span

Exact = Mapping[tuple[object, ...], tuple[Any, ...]]
"""By group key: integers, and lists of bins where a value is chosen by rank."""
SALT = 20_250_601
UNITS = ("customer", "visit", "student", "pupil")


def request(groups: int, size: int, delta: Fraction = Fraction(1, 10**6)) -> Request:
    """A modest request, so that noise and grids are those of real queries."""
    return Request(Fraction(1), delta, groups=groups, sizes=dict.fromkeys(UNITS, size))


@functools.cache
def opened(world: World) -> Service:
    """The service whose policy the plans are made for."""
    return service(world.policy, world.data, world.change)


def plan_of(sql: str, world: World) -> Plan:
    """The plan of a query, before anything is priced."""
    return planned(sql, opened(world), world.dialect)


def planned(sql: str, here: Service, dialect: str = "postgres") -> Plan:
    """The same, of a query to a service."""
    catalog = here.catalog(next(iter(here.policy.roles)), here.clock())
    checked = check(bind(parse(Source(sql, dialect)), catalog))
    limits = here.policy.limits
    return build(
        checked, here.tools.enumerator, limits.max_cells, strict_timing=limits.strict_timing
    )


@dataclass
class Listening:
    """An engine that notes the values that statements are given."""

    engine: Engine
    heard: dict[str, Value] = field(default_factory=dict)

    def measure(self, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        self.heard |= parameters
        return self.engine.measure(sql, parameters)

    def __getattr__(self, name: str) -> object:
        return getattr(self.engine, name)


class Values(Mapping[str, Value]):
    """The salt, and what the query would hand to its statements: asked once, when it is looked up."""

    def __init__(self, ask: Callable[[], Mapping[str, Value]]) -> None:
        self._ask = functools.cache(ask)

    def __getitem__(self, name: str) -> Value:
        return SALT if name == "salt" else self._ask()[name]

    def __iter__(self) -> Iterator[str]:
        return iter({"salt", *self._ask()})

    def __len__(self) -> int:
        return len({"salt", *self._ask()})


@functools.cache
def constants(sql: str, world: World) -> Mapping[str, Value]:
    """Values for the parameters of a query's statements: what was released before is public."""
    return values_in(sql, opened(world), world.dialect)


def values_in(sql: str, here: Service, dialect: str = "postgres") -> Mapping[str, Value]:
    """The same, for a query to a service."""

    def heard() -> Mapping[str, Value]:
        listening = Listening(here._engine)
        ears = Service(here.policy, listening, FreeLedger(), clock=here.clock, facts=here.facts)  # type: ignore[arg-type]
        session = ears.session(next(iter(here.policy.roles)))
        session.execute(f"SET dpsql.dialect = '{dialect}'")
        session.execute(sql)
        return listening.heard

    return Values(heard)


@dataclass(frozen=True, slots=True)
class Way(PricedMeasurement):
    """A measurement with its statement, which a test may change."""

    sql: str = ""


def way(part: PricedMeasurement) -> Way:
    """The measurement with the statement that is its own."""
    if isinstance(part, Way):
        return part
    known = {f.name: getattr(part, f.name) for f in fields(part)}
    return Way(**known, sql=flat(write(statement_of(part).relation)))


def text_of(part: PricedMeasurement) -> str:
    """The statement of a measurement in one line."""
    return way(part).sql


def alternatives(part: PricedMeasurement) -> tuple[Alternative, ...]:
    """What may run instead of the measurement's own statement."""
    return statement_of(part).alternatives


def instead(part: PricedMeasurement, alternative: Alternative) -> Way:
    """The measurement with an alternative in the place of its own statement."""
    return replace(way(part), sql=flat(write(alternative.relation)))


def leave_out(monkeypatch: pytest.MonkeyPatch, rule: rules.Rule) -> None:
    """Make statements without a rewrite."""
    monkeypatch.setattr(rules, "RULES", tuple(r for r in rules.RULES if r is not rule))


def flat(sql: str) -> str:
    """A statement in one line; no constant of these tests has several."""
    return re.sub(r"(\() | (?=\))", r"\1", " ".join(line.strip() for line in sql.split("\n")))


def forced(
    measurement: Measurement, bounding: Bounding, share: Share, copies: Reading | None = None
) -> Way:
    """The measurement priced with a bounding of the test's choice."""
    return way(replace(price._draft(measurement, bounding, share), reading=copies))


def every_way(
    plan: Plan, wanted: Request, families: tuple[str, ...] = ("laplace", "gaussian")
) -> Iterator[Way]:
    """Each measurement with each bounding and each family of noise that could be chosen."""
    for share in price._shares(plan, wanted) if plan.measurements else ():
        if share.family not in families:
            continue
        for measurement in plan.measurements:
            size = wanted.size(measurement.privacy.unit)
            copies = match_copies(measurement, wanted.shelf)
            ranked = None if copies is None else copies.most
            for bounding in candidates(measurement, wanted.groups, size, ranked):
                yield forced(measurement, bounding, share, copies)


def exact(
    connection: duckdb.DuckDBPyConnection, priced: Sequence[PricedMeasurement],
    values: Mapping[str, Value] | None = None,
) -> list[Exact]:  # fmt: skip
    """The integers that noise would be added to; equal statements are run once."""
    given, parts = {"salt": SALT} if values is None else values, list(map(way, priced))
    found: dict[str, Exact] = {}
    for part in parts:
        if part.sql not in found:
            used = {name: given[name] for name in parameters(part.sql) if name in given}
            rows = connection.execute(part.sql, used or None).fetchall()
            keys = len(part.measurement.keys)
            found[part.sql] = {_key(row[:keys]): tuple(row[keys:]) for row in rows}
    return [found[part.sql] for part in parts]


def _key(values: tuple[object, ...]) -> tuple[object, ...]:
    """The key with NaN as text, since it does not equal itself."""
    return tuple("nan" if v != v else v for v in values)


@dataclass(frozen=True)
class Claim:
    """A column of the exact rows, and how far one unit may move it."""

    column: int
    what: str
    bound: Sensitivity
    chosen: Chosen | None = None


def claims(part: PricedMeasurement) -> Iterator[Claim]:
    """The priced sensitivity of every statistic, and of the number of units that selects."""
    for i, item in enumerate(part.noised):
        chosen = item if isinstance(item, Chosen) else None
        yield Claim(i, type(item.statistic).__name__, item.sensitivity, chosen)
    if part.selection is not None:
        yield Claim(len(part.noised), "units", part.selection.units.sensitivity)


def broken(part: PricedMeasurement, before: Exact, after: Exact) -> Iterator[str]:
    """The claims that a pair of neighbours disproves."""
    if part.measurement.cells is not None and before.keys() != after.keys():
        yield "public groups depend on the data"
    yield from _halves(part, before, after)
    for claim in claims(part):
        moved = list(_moves(before, after, claim))
        l1, squares = sum(moved), sum(m * m for m in moved)
        rounding = 0 if claim.chosen is None else Fraction(1, 10**9)
        if l1 > claim.bound.l1 * (1 + rounding):
            yield f"{claim.what}: L1 {l1} > {float(claim.bound.l1):.6g}"
        if squares > claim.bound.l2_squared * (1 + rounding):
            bound = math.sqrt(claim.bound.l2_squared)
            yield f"{claim.what}: L2 {math.sqrt(squares):.6g} > {bound:.6g}"


def _halves(part: PricedMeasurement, before: Exact, after: Exact) -> Iterator[str]:
    """Twins whose two halves move farther together than their price says.

    A group's halves are rounded to coarser steps, where it depends on all that is in the group
    whether they move by one step more: here they always do.
    """
    for i, item in enumerate(part.noised):
        of = None if isinstance(item, Chosen) else item.halves
        if of is None or not isinstance(item.statistic, Total):
            continue
        keys = sorted(before.keys() | after.keys(), key=repr)
        sides = []
        for side in (before, after):
            rows = [side.get(key, (0,) * len(part.noised)) for key in keys]
            numbers = (np.array([int(row[c] or 0) for row in rows]) for c in (i, of.other))
            sides.append(halves(*numbers, replace(of, coarse=0)))
        moved = sum(
            -(-abs(int(one) - int(other)) >> of.coarse)
            for pair in zip(*sides, strict=True)
            for one, other in zip(*pair, strict=True)
        )
        if moved > of.l1:
            yield f"halves: L1 {moved} > {float(of.l1):.6g}"


def _moves(before: Exact, after: Exact, claim: Claim) -> Iterator[float]:
    for key in before.keys() | after.keys():
        first, second = (
            side[key][claim.column] if key in side else None for side in (before, after)
        )
        if claim.chosen is None:
            yield abs(int(first or 0) - int(second or 0))
        elif first != second:
            yield span(first, second, claim.chosen)


def removed(
    connection: duckdb.DuckDBPyConnection, deletions: Iterable[str],
    parts: Sequence[PricedMeasurement], values: Mapping[str, Value] | None = None,
) -> list[Exact]:  # fmt: skip
    """What the parts measure after some deletions, which are then undone."""
    connection.execute("BEGIN")
    try:
        for deletion in deletions:
            connection.execute(deletion)
        return exact(connection, parts, values)
    finally:
        connection.execute("ROLLBACK")
