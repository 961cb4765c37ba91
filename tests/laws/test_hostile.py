"""Hostile statements: what differs between a database and its neighbour is never shown.

Every statement of fixtures/hostile runs on a database that breaks its own declarations and on the
same without one person: same error, same columns and types, same charge, same EXPLAIN. What is
refused costs nothing and never reaches the engine. What is answered must keep the priced claims.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import pytest
from support.corpus import SHOP
from support.datasets import FIXTURES, folder, policy_text, script
from support.hostile import HOSTILE, Hostile
from support.measured import broken, every_way, exact, removed, request
from support.services import FreeLedger, Seeded, noon
from test_neighbours import DIRTY, shop_units

from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb import DuckDB
from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.plan.priced import PricedMeasurement, PricedPlan
from dpsql.policy.load import load
from dpsql.policy.source import SourceDescription
from dpsql.service import Service, Session
from dpsql.service.settings import Settings

VICTIMS = (106, 101)
WATCHED = (101, 104, 105, 106, 107)
COUNT = "SELECT COUNT(*) FROM orders"
"""What is asked once a setting was changed."""
CLASSES = sorted({h.kind for h in HOSTILE})


@dataclass
class Spy:
    """The real engine, with what was asked of it."""

    engine: DuckDB
    measured: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    heard: dict[str, Value] = field(default_factory=dict)

    @property
    def prepared(self) -> str | None:
        return self.engine.prepared

    def describe(self) -> SourceDescription:
        return self.engine.describe()

    def measure(self, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        self.measured.append(sql)
        self.heard |= parameters
        return self.engine.measure(sql, parameters)

    def read_public(self, sql: str) -> pa.Table:
        self.read.append(sql)
        return self.engine.read_public(sql)

    def finds_none(self, sql: str) -> bool:
        return self.engine.finds_none(sql)

    def close(self) -> None:
        self.engine.close()


@dataclass(frozen=True)
class Side:
    """A database as an analyst meets it, and what the meeting left behind."""

    session: Session
    spy: Spy
    ledger: FreeLedger

    def meet(self, sql: str) -> Seen:
        """Send a statement and note everything but the values."""
        self.spy.measured.clear()
        self.spy.read.clear()
        self.ledger.charges.clear()
        self.session.settings = Settings(fresh=True)
        said = _said(lambda: self.session.execute(sql))
        if self.session.settings != Settings(fresh=True):
            said = [said, _said(lambda: self.session.execute(COUNT))]
        charge = [(c.epsilon, c.delta, c.rho) for c in self.ledger.charges]
        plan = _said(lambda: self.session.explain(sql))
        return Seen(said, plan, charge, len(self.spy.measured), tuple(self.spy.read))


@dataclass(frozen=True)
class Seen:
    """What an analyst sees of a statement, and what the engine was asked."""

    said: object
    plan: object
    charge: list[object]
    measured: int
    read: tuple[str, ...]

    @property
    def refused(self) -> bool:
        said = self.said[1] if isinstance(self.said, list) else self.said
        return isinstance(said, str)


def _said(ask: Callable[[], object]) -> object:
    """A refusal as its whole text; an answer as its shape; anything else is a crash."""
    try:
        reply = ask()
    except Refused as refused:
        return str(refused)
    if isinstance(reply, str):
        return reply
    table = reply.table  # type: ignore[attr-defined]
    return tuple((c.name, c.kind) for c in reply.columns), table.schema.types  # type: ignore[attr-defined]


def side(name: str, without: int | None) -> Side:
    """The shop of every broken declaration, without one of its people."""
    place = folder() / f"hostile-{name}"
    place.mkdir()
    with duckdb.connect(str(place / "shop.duckdb")) as connection:
        connection.execute(script("dirty"))
        for deletion in () if without is None else shop_units(without):
            connection.execute(deletion)
    text = policy_text("shop").replace("{public: true}", "{public: true, key: country}")
    (place / "policy.yaml").write_text(text)
    policy, ledger = load(place / "policy.yaml"), FreeLedger()
    spy = Spy(DuckDB(policy.source.path, policy.limits))
    service = Service(policy, spy, ledger, clock=noon, entropy=Seeded(1))
    return Side(service.session("analyst"), spy, ledger)


@functools.cache
def sides() -> tuple[Side, ...]:
    return side("all", None), *(side(str(v), v) for v in VICTIMS)


def of(kind: str) -> list[Hostile]:
    return [h for h in HOSTILE if h.kind == kind]


def test_there_are_many_of_every_class() -> None:
    assert len(HOSTILE) >= 300
    assert {p.stem for p in (FIXTURES / "hostile").glob("*.sql")} == set(CLASSES)
    assert all(len(of(kind)) >= 15 for kind in CLASSES)


@pytest.mark.parametrize("kind", CLASSES)
def test_neighbours_look_the_same(kind: str) -> None:
    wrong = []
    everyone, *neighbours = sides()
    for i, hostile in enumerate(of(kind)):
        first, other = everyone.meet(hostile.sql), neighbours[i % 2].meet(hostile.sql)
        if other != first:
            wrong.append(f"{hostile}: {first} / {other}")
        if first.refused and (first.measured or first.charge):
            wrong.append(f"{hostile}: refused, but it reached the engine or was charged")
        if not first.refused and first.measured and len(first.charge) != 1:
            wrong.append(f"{hostile}: measured without a charge")
        if hostile.never and not first.refused:
            wrong.append(f"{hostile}: answered: {hostile.sql[:200]}")
    assert not wrong, "\n".join(wrong)


@functools.cache
def _dirty() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute(script(DIRTY[SHOP.data]))
    return connection


def _parts(priced: PricedPlan) -> list[PricedMeasurement]:
    """Every way to bound the measurements whose exact rows are numbers; the chosen one else."""
    ways = every_way(priced.plan, request(3, 1), ("gaussian",))
    return [p for p in ways if not any(hasattr(n, "buckets") for n in p.noised)]


@pytest.mark.parametrize("kind", CLASSES)
def test_what_is_answered_keeps_its_claims(kind: str) -> None:
    found, here = [], sides()[0]
    for hostile in of(kind):
        here.spy.heard.clear()
        if here.meet(hostile.sql).refused or not here.spy.measured:
            continue
        parts = _parts(here.session.prepare(hostile.sql))
        values: Mapping[str, Value] = here.spy.heard | {"salt": 20_250_601}
        before = exact(_dirty(), parts, values)
        for unit in WATCHED:
            after = removed(_dirty(), shop_units(unit), parts, values)
            for part, one, other in zip(parts, before, after, strict=True):
                found += [
                    f"{hostile} without {unit}: {b}\n{part.sql}" for b in broken(part, one, other)
                ]
    assert not found, "\n".join(found[:5])


def test_an_oracle_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cast that fails on one person's row is an error on one side alone."""
    failing = re.compile("TRY_CAST")
    real = DuckDB.measure

    def unguarded(self: DuckDB, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        bare = failing.sub("CAST", sql) + "" if "106" in sql else sql
        return real(self, bare, parameters)

    monkeypatch.setattr(DuckDB, "measure", unguarded)
    sql = "SELECT COUNT(*) FROM customers WHERE customer_id = 106 AND CAST(CAST(age AS TEXT) || 'x' AS INTEGER) > 1"
    met = [_met(s, sql) for s in sides()]
    assert met[0] != met[1]


def _met(here: Side, sql: str) -> str:
    try:
        here.meet(sql)
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    return "answered"
