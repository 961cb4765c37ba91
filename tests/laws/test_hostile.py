"""Hostile statements: what differs between a database and its neighbour is never shown.

Every statement of fixtures/hostile runs on a database that breaks its own declarations and on the
same without one person: same error, same columns and types, same charge, same EXPLAIN. What is
refused costs nothing and never reaches the engine. What is answered must keep the priced claims.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from support.corpus import CORPUS, SHOP
from support.daily import some
from support.datasets import FIXTURES, folder, policy_text, script
from support.hostile import HOSTILE, Hostile
from support.measured import broken, every_way, exact, removed, request, text_of
from support.neighbours import DIRTY, PRESENT, pupils, shop_units, students
from support.services import FreeLedger, Seeded, noon

from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows, unseal
from dpsql.ir.statements import Query, TableRows
from dpsql.policy.load import load
from dpsql.policy.source import SourceDescription
from dpsql.price.priced import PricedMeasurement, PricedPlan
from dpsql.release.hidden_values import NOTE as BY_NOISE
from dpsql.service import Service, Session
from dpsql.service.session import Parameters
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
    groups: list[int] = field(default_factory=list)
    """How many groups each measurement of public ones has."""
    heard: dict[str, Value] = field(default_factory=dict)

    @property
    def prepared(self) -> str | None:
        return self.engine.prepared

    def describe(self) -> SourceDescription:
        return self.engine.describe()

    def measure(self, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        self.measured.append(sql)
        self.heard |= parameters
        rows = self.engine.measure(sql, parameters)
        table = pa.concat_tables(unseal(rows))
        if "units" not in table.column_names:
            self.groups.append(table.num_rows)
        return rows

    def read_public(self, sql: str) -> pa.Table:
        self.read.append(sql)
        return self.engine.read_public(sql)

    def is_empty(self, query: Query | str) -> bool:
        return self.engine.is_empty(query)

    def largest(self, query: Query) -> int:
        return self.engine.largest(query)

    def keep(self, name: str, table: str, rows: TableRows) -> bool:
        return self.engine.keep(name, table, rows)

    def close(self) -> None:
        self.engine.close()


@dataclass(frozen=True)
class Side:
    """A database as an analyst meets it, and what the meeting left behind."""

    session: Session
    spy: Spy
    ledger: FreeLedger

    def meet(self, sql: str, dialect: str = "postgres", parameters: Parameters = ()) -> Seen:
        """Send a statement and note everything but the values."""
        for noted in (self.spy.measured, self.spy.read, self.spy.groups, self.ledger.charges):
            noted.clear()
        usual, keys = Settings(fresh=True, dialect=dialect), list[tuple[object, ...]]()
        self.session.settings = usual
        said = _said(lambda: self.session.execute(sql, parameters), keys)
        if self.session.settings != usual:
            said = [said, _said(lambda: self.session.execute(COUNT))]
        charge = [(c.epsilon, c.delta, c.rho) for c in self.ledger.charges]
        measured, read = len(self.spy.measured), tuple(self.spy.read)
        plan = _said(lambda: self.session.explain(sql, parameters))
        if _TOLD_BY_NOISE.search(sql):
            keys.clear()
        return Seen(said, plan, charge, measured, read, tuple(self.spy.groups), keys)


@dataclass(frozen=True)
class Seen:
    """What an analyst sees of a statement, and what the engine was asked."""

    said: object
    plan: object
    charge: list[object]
    measured: int
    read: tuple[str, ...]
    groups: tuple[int, ...] = ()
    keys: list[tuple[object, ...]] = field(default_factory=list, compare=False)
    """What is in the columns that have no numbers, row by row; empty where noise decides about it."""

    def wrong(self, other: Seen, *, never: bool = False) -> Iterator[str]:
        """What tells this from what was seen on a neighbour, and what must not be at all."""
        if other != self:
            yield f"{self} / {other}"
        shown = [set(self.keys), set(other.keys)]
        if [k for k in self.keys if k in shown[1]] != [k for k in other.keys if k in shown[0]]:
            yield "groups are in another order"
        if self.measured and len(self.groups) == self.measured and self.keys != other.keys:
            yield "public groups differ"
        if self.refused and (self.measured or self.read or self.charge):
            yield "refused, but it reached the engine or was charged"
        if not self.refused and self.measured and len(self.charge) != 1:
            yield "measured without a charge"
        if never and not self.refused:
            yield "answered"

    @property
    def refused(self) -> bool:
        said = self.said[1] if isinstance(self.said, list) else self.said
        return isinstance(said, str)


_TOLD_BY_NOISE = re.compile(
    r"\b(MODE|MIN|MAX|MEDIAN|\w*QUANTILE\w*|PERCENTILE\w*|BOOL_\w+|EVERY|LIMIT|FETCH|OFFSET|HAVING"
    r"|ORDER|QUALIFY|OVER|TOP|WHERE|CASE|CAST|JOIN|UNION|INTERSECT|EXCEPT|DISTINCT|SELECT[^;]*SELECT)\b",
    re.IGNORECASE | re.DOTALL,
)
"""In a statement without these words, noise decides neither which rows there are nor their order."""


def _said(ask: Callable[[], object], keys: list[tuple[object, ...]] | None = None) -> object:
    """A refusal as its whole text; an answer as its shape; anything else is a crash."""
    try:
        reply = ask()
    except Refused as refused:
        return str(refused)
    if isinstance(reply, str):
        return reply
    table = reply.table  # type: ignore[attr-defined]
    columns = reply.columns  # type: ignore[attr-defined]
    notes = tuple(n for n in reply.notes if n != BY_NOISE)  # type: ignore[attr-defined]
    texts = [table.column(i).to_pylist() for i, c in enumerate(columns) if not c.kind.numeric]
    if keys is not None:
        keys += zip(*texts, strict=True)
    return tuple((c.name, c.kind) for c in columns), table.schema.types, notes


def side(name: str, without: int | None) -> Side:
    """The shop of every broken declaration, without one of its people."""
    text = policy_text("shop").replace("{public: true}", "{public: true, key: country}")
    gone = () if without is None else shop_units(without)
    return met(name, ("shop", "dirty"), text, gone)


def met(name: str, data: tuple[str, str], text: str, gone: tuple[str, ...]) -> Side:
    """A data set without some of its rows, under a policy."""
    file, made = data
    place = folder() / f"hostile-{name}"
    place.mkdir()
    with duckdb.connect(str(place / f"{file}.duckdb")) as connection:
        connection.execute(script(made))
        for deletion in gone:
            connection.execute(deletion)
    (place / "policy.yaml").write_text(text)
    policy, ledger = load(place / "policy.yaml"), FreeLedger()
    spy = Spy(DuckDB(policy.source.path, policy.limits))
    service = Service(policy, spy, ledger, clock=noon, entropy=Seeded(1))
    return Side(service.session("analyst"), spy, ledger)


@functools.cache
def sides() -> tuple[Side, ...]:
    return side("all", None), *(side(str(v), v) for v in VICTIMS)


@functools.cache
def flat_sides() -> tuple[Side, ...]:
    """Units without a table: everybody, and nobody of two keys."""
    text, data = policy_text("ratings"), ("ratings", "ratings_dirty")
    victims = {
        "flat": (),
        "flat-901": students(901),
        "flat-moon": (*pupils(("moon", 1)), *students(-1)),
    }
    return tuple(met(name, data, text, gone) for name, gone in victims.items())


FLAT = (
    "SELECT COUNT(*) FROM ratings WHERE s = 901",
    "SELECT COUNT(DISTINCT s) FROM ratings WHERE s IN (901, -1)",
    "SELECT COUNT(*) FROM ratings WHERE s IS NULL",
    "SELECT COUNT(*) FROM ratings WHERE 1 / (s - 901) > 0",
    "SELECT COUNT(*) FROM ratings WHERE CAST(course AS INTEGER) = s",
    "SELECT s FROM ratings WHERE s = 901",
    "SELECT s, COUNT(*) FROM ratings GROUP BY s",
    "SELECT s, COUNT(*) FROM ratings GROUP BY s HAVING COUNT(*) > 400",
    "SELECT MAX(s) FROM ratings",
    "SELECT SUM(s) FROM ratings",
    "SELECT COUNT(*) FROM ratings AS a JOIN ratings AS b ON a.s = b.s + 0",
    "SELECT COUNT(*) FROM ratings AS a JOIN ratings AS b ON a.s <= b.s",
    "SELECT COUNT(*) FROM ratings AS a JOIN ratings AS b ON a.s IS NOT DISTINCT FROM b.s",
    "SELECT COUNT(*) FROM logins WHERE who NOT IN (SELECT s FROM ratings)",
    "SELECT COUNT(*) FROM logins WHERE who > (SELECT MIN(s) FROM ratings)",
    "SELECT COUNT(*) FROM replies WHERE rating NOT IN (SELECT rating FROM ratings WHERE s = 901)",
    "SELECT AVG(n) FROM (SELECT s, LEAST(COUNT(*), 9) AS n FROM ratings WHERE s = 901 GROUP BY s) AS t",
    "SELECT COUNT(*) FROM (SELECT s, RANK() OVER (PARTITION BY s ORDER BY stars) AS r FROM ratings) AS t WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT DISTINCT school, number FROM marks) AS t",
    "SELECT number, COUNT(*) FROM marks GROUP BY number",
    "SELECT COUNT(*) FROM marks AS m JOIN absences AS a ON (a.place, a.pupil) = (m.school, m.number)",
    "SELECT COUNT(*) FROM marks AS m JOIN absences AS a ON a.place || a.pupil = m.school || m.number",
    "SELECT school, COUNT(DISTINCT number) FROM marks GROUP BY school",
    "SELECT COUNT(*) FROM marks AS m JOIN ratings AS r ON r.s = m.number",
)


def test_neighbours_look_the_same_where_units_have_no_table() -> None:
    everyone, *others = flat_sides()
    asked = [*FLAT, *(e.sql for e in CORPUS if e.world.policy == "ratings")]
    wrong, answered, refused = [], 0, 0
    for sql in asked:
        seen = everyone.meet(sql)
        wrong += [f"{w}: {sql}" for other in others for w in seen.wrong(other.meet(sql))]
        answered, refused = answered + (seen.measured > 0), refused + seen.refused
    assert not wrong, "\n".join(wrong)
    assert answered >= 40
    assert refused >= 8


def of(kind: str) -> list[Hostile]:
    return [h for h in HOSTILE if h.kind == kind]


def test_there_are_many_of_every_class() -> None:
    said = (FIXTURES.parent / "SECURITY.md").read_text()
    assert f"{len(HOSTILE)} hostile statements" in said
    assert {p.stem for p in (FIXTURES / "hostile").glob("*.sql")} == set(CLASSES)
    assert all(len(of(kind)) >= 15 for kind in CLASSES)


def compared(kind: str, dialect: str, step: int = 1) -> tuple[list[str], int, int]:
    """What is wrong with each ``step``-th statement of a class; how many are measured and refused."""
    wrong, seen = [], []
    everyone, *neighbours = sides()
    for i, hostile in enumerate(of(kind)[::step]):
        pair = [side.meet(hostile.sql, dialect) for side in (everyone, neighbours[i % 2])]
        never = hostile.never and dialect == "postgres"
        wrong += [
            f"{hostile}: {w}: {hostile.sql[:200]}" for w in pair[0].wrong(pair[1], never=never)
        ]
        seen.append(pair[0])
    return wrong, sum(s.measured > 0 for s in seen), sum(s.refused for s in seen)


KNOWN: Mapping[str, tuple[int, int]] = {
    "catalogue": (2, 36), "functions": (2, 43), "groups": (33, 23), "joins": (20, 50),
    "limits": (5, 14), "names": (19, 25), "oracles": (41, 40), "sets": (12, 10),
    "settings": (2, 60), "size": (14, 23), "stages": (34, 13), "statements": (0, 49),
    "targets": (35, 31), "windows": (12, 15),
}  # fmt: skip
"""How many of a class are measured and how many refused; to refuse everything would be no answer."""


@pytest.mark.parametrize("kind", CLASSES)
def test_neighbours_look_the_same(kind: str) -> None:
    wrong, measured, refused = compared(kind, "postgres")
    assert not wrong, "\n".join(wrong)
    least = KNOWN[kind]
    assert measured >= least[0] * 0.9, measured
    assert refused >= least[1] * 0.9, refused


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", CLASSES)
def test_neighbours_look_the_same_in_another_dialect(kind: str, step: int) -> None:
    """Every fourth statement by day, and all of them every night."""
    wrong, _, _ = compared(kind, "duckdb", step)
    assert not wrong, "\n".join(wrong)


DATES = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59), date.min, date.max  # noqa: DTZ001 (as clients send them)
BOUND: tuple[object, ...] = (
    *DATES, float("nan"), float("inf"), -0.0, 5e-324, 2**63, -(2**63) - 1, 2**200, Decimal("NaN"),
    Decimal("-Infinity"), Decimal("1e400"), "106", "' OR customer_id = 106 --", "\0", "\ud800", "x" * 10**5,
    b"\xff", None, True, "$1", "NaN", "1e-320", "); SELECT 1; --",
)  # fmt: skip
"""Parameters that nobody means well with."""
BINDING = (
    "SELECT COUNT(*) FROM customers WHERE customer_id = $1",
    "SELECT COUNT(*) FROM customers WHERE email = $1 OR city LIKE $1",
    "SELECT SUM(CASE WHEN customer_id = 106 THEN amount / $1 ELSE 0 END) FROM orders",
    "SELECT COUNT(*) FROM orders WHERE placed > $1",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = $1) COUNT(*) FROM orders",
    "SELECT channel, COUNT(*) FROM orders GROUP BY channel LIMIT $1",
)


@pytest.mark.parametrize("sql", BINDING)
def test_neighbours_look_the_same_whatever_is_bound(sql: str) -> None:
    wrong = []
    for value in BOUND:
        pair = [here.meet(sql, parameters=(value,)) for here in sides()[:2]]  # type: ignore[arg-type]
        wrong += [f"{value!r:.60}: {w}" for w in pair[0].wrong(pair[1])]
    assert not wrong, "\n".join(wrong)


def test_the_comparison_sees_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controls: a charge, columns, notes, order, groups and an engine that hears too much."""
    one, other = sides()[:2]
    sql = "SELECT channel, COUNT(*) FROM orders GROUP BY channel"
    seen = one.meet(sql)
    assert not list(seen.wrong(other.meet(sql)))
    assert len(seen.keys) == 4
    planted: Mapping[str, Seen] = {
        "groups are in another order": replace(seen, keys=seen.keys[::-1]),
        "public groups differ": replace(seen, keys=seen.keys[1:]),
    }
    for words, wrong in planted.items():
        assert words in list(seen.wrong(wrong))
    assert list(seen.wrong(replace(seen, groups=(5,))))
    refused = one.meet("SELECT email FROM customers")
    assert not list(refused.wrong(refused))
    for noted in ({"measured": 1}, {"read": ("SELECT 1",)}, {"charge": [1]}):
        heard = replace(refused, **noted)  # type: ignore[arg-type]
        assert "refused, but it reached the engine or was charged" in list(heard.wrong(heard))

    def planting(place: object, name: str, change: Callable[..., object]) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, change)
            first = one.meet(sql)
        return list(first.wrong(other.meet(sql)))

    reserve, execute = FreeLedger.reserve, Session.execute
    assert planting(
        FreeLedger, "reserve", lambda self, a, cost, *r, **n: reserve(self, a, cost + cost, *r, **n)
    )
    for change in (
        lambda reply: replace(reply, columns=(*reply.columns[:1], replace(reply.columns[1], name="m"))),
        lambda reply: replace(reply, notes=("a note",)),
        lambda reply: replace(reply, table=reply.table.slice(1)),
    ):  # fmt: skip
        assert planting(Session, "execute", lambda *a, c=change, **n: c(execute(*a, **n)))


@functools.cache
def _dirty() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute(script(DIRTY[SHOP.data]))
    return connection


def watched(sql: str) -> list[int]:
    """Who is removed: people without rows in the tables that a statement names change nothing."""
    there = [units for table, units in PRESENT.items() if table in sql.lower()]
    return [unit for unit in WATCHED if not there or any(unit in units for units in there)]


def _parts(priced: PricedPlan) -> list[PricedMeasurement]:
    """Every way to bound the measurements whose exact rows are numbers; the chosen one else."""
    ways = every_way(priced.plan, request(3, 1), ("gaussian",))
    return [p for p in ways if not any(hasattr(n, "buckets") for n in p.noised)]


@pytest.mark.parametrize("kind", CLASSES)
def test_what_is_answered_keeps_its_claims(kind: str) -> None:
    """By day every other statement; the laws of neighbours ask the same of the corpus."""
    found, here = [], sides()[0]
    for hostile in some(of(kind), CLASSES.index(kind), 2):
        here.spy.heard.clear()
        if here.meet(hostile.sql).refused or not here.spy.measured:
            continue
        parts = _parts(here.session.prepare(hostile.sql))
        values: Mapping[str, Value] = here.spy.heard | {"salt": 20_250_601}
        before = exact(_dirty(), parts, values)
        for unit in watched(hostile.sql):
            after = removed(_dirty(), shop_units(unit), parts, values)
            for part, one, other in zip(parts, before, after, strict=True):
                found += [
                    f"{hostile} without {unit}: {b}\n{text_of(part)}"
                    for b in broken(part, one, other)
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
