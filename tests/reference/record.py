"""The record of a query: its price, its events, its notes, its exact integers and its answers.

Integers are recorded twice: for every way to bound a query, under noise for a modest price, and for
the statements that ran where it was answered at epsilon 1e9. Whatever a statement looks like, these
stay the same. A way is named by its numbers alone, and bins are in order with their whole weight.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import duckdb
import pyarrow as pa
from support.corpus import Entry, World
from support.datasets import in_memory
from support.measured import claims, every_way, exact, planned, request
from support.neighbours import DIRTY, hostile_unit, ordinary_unit
from support.services import FreeLedger, Seeded, noon, open_over, policy_file

from dpsql.bound import Bounding
from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb import copies
from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows, unseal
from dpsql.engines.lookups import SourceEngine
from dpsql.ledger.accounts import Account
from dpsql.ledger.store import Hold, Note
from dpsql.policy.load import load
from dpsql.price import search
from dpsql.price.priced import Chosen, Noised, PricedMeasurement, PricedPlan
from dpsql.privacy.cost import Cost
from dpsql.service import Service

Json = Any
SALT, SEED = 20_250_601, 1
DIGITS = 9
"""Of a number that is not whole; ``compare`` says how much of them noise may change."""


@dataclass(frozen=True)
class Data:
    """A data set: what is deleted from it, and whether its tables are prepared."""

    name: str
    script: str
    deletions: tuple[str, ...] = ()
    prepared: bool = False


def data_to_measure(world: World) -> tuple[Data, ...]:
    """What integers are looked at: clean data, dirty data, and a neighbour of that."""
    dirty = DIRTY.get(world.data, world.data)
    return (
        Data("clean", world.data),
        Data("dirty", dirty),
        Data("neighbour of dirty", dirty, hostile_unit(world)),
    )


def data_to_ask(world: World) -> tuple[Data, ...]:
    """What questions are answered over: clean data, a neighbour of it, and prepared copies of it.

    A service does not open over dirty data.
    """
    return (
        Data("clean", world.data),
        Data("neighbour", world.data, ordinary_unit(world)),
        Data("prepared", world.data, prepared=True),
    )


def record(entry: Entry) -> dict[str, Json]:
    """All that must stay the same of a query."""
    answers = {data.name: _answer(entry, data) for data in data_to_ask(entry.world)}
    return {
        "query": entry.name,
        "sql": entry.sql,
        "modest request": _modest_price(entry),
        "answered": answers,
        "integers": _integers(entry),
    }


# The price of a modest request.


def _modest_price(entry: Entry) -> Json:
    """What it costs with noise that hides people, and how each measurement is bounded."""
    here = _service(entry.world, Data("clean", entry.world.data))
    try:
        found = search.price_with_searches(
            planned(entry.sql, here, entry.world.dialect), request(3, 1)
        )
    except Refused as refused:
        return {"refused": refused.code}
    return _price(found)


def _price(found: PricedPlan) -> Json:
    return {
        "price": _cost(found.price),
        "family": found.family,
        "notes": list(found.plan.notes),
        "parts": [_part(part) for part in found.parts],
    }


def _cost(cost: Cost) -> dict[str, str]:
    names = ("epsilon", "delta", "rho", "threshold_delta")
    return {name: str(getattr(cost, name)) for name in names}


def _part(part: PricedMeasurement) -> Json:
    cells = part.measurement.cells
    selection = part.selection
    return {
        "measurement": part.measurement.name,
        "bounding": way_name(part.bounding),
        "groups": None if cells is None else cells.count,
        "noise": [_noise(item) for item in part.noised],
        "threshold": None
        if selection is None
        else [selection.threshold, selection.shares, _noise(selection.units)],
    }


def _noise(item: Noised | Chosen) -> Json:
    found = {
        "of": type(item.statistic).__name__,
        "shift": item.shift,
        "l1": str(item.sensitivity.l1),
        "l2_squared": str(item.sensitivity.l2_squared),
        "noise": str(item.noise),
    }
    halves = None if isinstance(item, Chosen) else item.halves
    return found if halves is None else {**found, "halves": str(halves)}


def way_name(bounding: Bounding) -> str:
    """The strategy with its numbers."""
    fields = {
        "rows": "rows", "groups": "groups", "in each": "per_group", "norm": "norm", "bits": "bits",
    }  # fmt: skip
    numbers = {said: getattr(bounding, name, None) for said, name in fields.items()}
    flags = {"limited": "limit", "by value": "valued"}
    words = [
        f"{said} {n}" for said, n in numbers.items() if n is not None and (n or said != "bits")
    ]
    words += [said for said, name in flags.items() if getattr(bounding, name, False)]
    return f"{bounding.name} ({', '.join(words)})"


# Every way to bound it, as integers.


def _integers(entry: Entry) -> Json:
    """The integers of each way on each data set, and what one unit may move of them."""
    clean = _service(entry.world, Data("clean", entry.world.data))
    parts = list(every_way(planned(entry.sql, clean, entry.world.dialect), request(3, 1)))
    given = {"salt": SALT, **_parameters_of[entry.name]}
    found: dict[str, Json] = {}
    tables = {
        data.name: exact(_connection(data), parts, given) for data in data_to_measure(entry.world)
    }
    for i, part in enumerate(parts):
        name = f"{part.measurement.name} {part.share.family} {way_name(part.bounding)}"
        found[_unique(name, found)] = {
            "claims": [[c.what, str(c.bound.l1), str(c.bound.l2_squared)] for c in claims(part)],
            **{data: _rows(table[i].items()) for data, table in tables.items()},
        }
    return found


def _unique(name: str, found: Mapping[str, Json]) -> str:
    return next(
        n for i in range(1, 1_000) if (n := name if i == 1 else f"{name} #{i}") not in found
    )


def _rows(pairs: Sequence[tuple[tuple[object, ...], tuple[Any, ...]]]) -> Json:
    """Integers by key, in the order of keys."""
    return sorted(
        ([[plain(k) for k in key], [_integer(v) for v in values]] for key, values in pairs),
        key=repr,
    )


def _integer(value: object) -> Json:
    """A number, or how much weighs in each bin."""
    if not isinstance(value, list):
        return None if value is None else int(value)  # type: ignore[call-overload]
    weights: dict[int, int] = {}
    for item in value:
        weights[item["b"]] = weights.get(item["b"], 0) + int(item["n"])
    return sorted([b, n] for b, n in weights.items())


def plain(value: object) -> Json:
    """A value of a key or an answer, as JSON has it."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | str() | float():
            return value
        case datetime() | date():
            return value.isoformat()
        case list() | tuple():
            return [plain(v) for v in value]
        case _:
            return str(value)


# The answer at epsilon 1e9, and what ran for it.


@dataclass
class _RecordingEngine:
    """What an engine was asked, and what it answered."""

    engine: SourceEngine
    tables: list[Json] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)

    def measure(self, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        self.values |= parameters
        table = pa.concat_tables(unseal(self.engine.measure(sql, parameters)))
        self.tables.append(_rows(_by_key(table)))
        return ExactRows(table)

    def __getattr__(self, name: str) -> object:
        return getattr(self.engine, name)


def _by_key(table: pa.Table) -> list[tuple[tuple[object, ...], tuple[Any, ...]]]:
    keys = sum(name.startswith("k") for name in table.column_names)
    rows = zip(*(c.to_pylist() for c in table.columns), strict=True)
    return [(row[:keys], row[keys:]) for row in rows]


@dataclass
class _RecordingLedger(FreeLedger):
    """A ledger that grants everything, and remembers the events of each reservation."""

    reservations: list[Json] = field(default_factory=list)

    def reserve(
        self, accounts: Sequence[Account], cost: Cost, events: Sequence[str], note: Note, *,
        start: bool = False,
    ) -> Hold:  # fmt: skip
        self.reservations.append({
            "accounts": [a.title for a in accounts],
            "cost": _cost(cost),
            "events": list(events),
            "note": [note.role, note.session],
        })  # fmt: skip
        return super().reserve(accounts, cost, events, note, start=start)


_parameters_of: dict[str, Mapping[str, Value]] = {}
"""By query, what its statements were given on clean data: what was released before is public."""


def _answer(entry: Entry, data: Data) -> Json:
    """Price, events, notes, integers and answer on a data set."""
    base = _service(entry.world, data)
    engine, ledger = _RecordingEngine(base._engine), _RecordingLedger()
    entropy, facts = Seeded(SEED), base.facts
    here = Service(base.policy, engine, ledger, clock=noon, entropy=entropy, facts=facts)  # type: ignore[arg-type]
    session = here.session()
    session.execute(f"SET dpsql.dialect = '{entry.world.dialect}'")
    reply = session.execute(entry.sql)
    if data.name == "clean":
        _parameters_of[entry.name] = {k: v for k, v in engine.values.items() if k != "salt"}
    return {
        "price": _cost(reply.cost),
        "ledger": [call for call in ledger.calls if call != "recall"],
        "events": ledger.reservations,
        "notes": list(reply.notes),
        "columns": [f"{c.name} {c.kind.value}" for c in reply.columns],
        "integers": engine.tables,
        "answer": sorted(([_short(v) for v in row] for row in _rows_of(reply.table)), key=repr),
    }


def _short(value: object) -> Json:
    """A value of an answer: noise is beyond the digits that a number keeps."""
    return plain(float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value)


def _rows_of(table: pa.Table) -> Iterator[tuple[object, ...]]:
    return zip(*(c.to_pylist() for c in table.columns), strict=True)


@functools.cache
def _service(world: World, data: Data) -> Service:
    """A service over a data set, whose plans and checks are made once."""
    path = policy_file(world.policy, data.script, world.change)
    with duckdb.connect(str(next(path.parent.glob("*.duckdb")))) as connection:
        for deletion in data.deletions:
            connection.execute(deletion)
    if data.prepared:
        found = load(path)
        copies.prepare(found, [t.name for t in found.tables.values() if not t.public])
    return open_over(path)


@functools.cache
def _connection(data: Data) -> duckdb.DuckDBPyConnection:
    connection = in_memory(data.script)
    for deletion in data.deletions:
        connection.execute(deletion)
    return connection
