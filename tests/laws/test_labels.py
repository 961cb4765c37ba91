"""What names a group says nothing about who is in it: labels are compared byte by byte.

Everybody's value is written in one way, one unit's in another that the engine takes for equal. That
unit comes first, in the middle, last, or not at all; ``==`` and keys of dictionaries would hide
what is looked for here.
"""

from __future__ import annotations

import functools
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from scalar_expressions import single_calls, wild_world
from support.corpus import SHOP
from support.datasets import folder, in_memory
from support.measured import SALT, every_way, flat, plan_of, planned, request, text_of, values_in
from support.services import FreeLedger, Seeded, noon

from dpsql.bound.copies import copy_of
from dpsql.catalog.functions import FUNCTIONS
from dpsql.engines.duckdb import copies, expressions
from dpsql.engines.duckdb.expressions import key_text
from dpsql.engines.duckdb.guard import Guard, Unsafe
from dpsql.engines.duckdb.parameters import parameters
from dpsql.engines.duckdb.write import write_rows
from dpsql.ir.expressions import Expression
from dpsql.policy.load import load
from dpsql.service import Service

OTHERS = 24
"""Units beside the one, half of them in each group."""
POLICY = """
source: {{engine: duckdb, path: {name}.duckdb}}
data_version: "1"
units: {{person: {{table: person, key: id}}}}
tables:
  person:
    unit: person
    columns:
      id: {{type: bigint}}
      n: {{type: integer}}
      x: {{type: double}}
      y: {{type: real}}
      v: {{type: double, values: [0, 1.5]}}
      d: {{type: "decimal(9, 3)"}}
      t: {{type: text}}
      stamp: {{type: timestamp}}
  visit:
    unit: person
    foreign_keys: [{{columns: [pid], references: person}}]
    key: vid
    max_rows_per_unit: 4
    columns:
      vid: {{type: bigint}}
      pid: {{type: bigint}}
      x: {{type: double}}
      t: {{type: text}}
  bill:
    unit: person
    foreign_keys: [{{columns: [vid], references: visit}}]
    max_rows_per_unit: 8
    columns:
      vid: {{type: bigint}}
      x: {{type: double}}
  rate:
    public: true
    key: x
accounts: {{dataset: {{epsilon: 1000000000, delta: 0.1}}}}
roles: {{analyst: {{epsilon: 1000000000, delta: 0.1, query: {{epsilon: 1000000000, delta: 1e-6}}, max_groups_per_unit: 4}}}}
strict_timing: {strict}
limits: {{threads: {threads}}}
"""
NAN, MINUS_NAN = "'NaN'::DOUBLE", "-('NaN'::DOUBLE)"
PAIRS = {"zero": ("0.0::DOUBLE", "-0.0::DOUBLE"), "NaN": (NAN, MINUS_NAN)}
"""How everybody writes a value, and how one unit does."""
TEXTS = {"zero": ("'Café '", "'Cafe\u0301'"), "NaN": ("'PARIS'", "'paris'")}
PLACES = ("first", "middle", "last")


def script(pair: str, place: str | None) -> Iterator[str]:
    """Tables in which the one unit has this place; None: it is not there."""
    yield (
        "CREATE TABLE person (id BIGINT PRIMARY KEY, n INTEGER, x DOUBLE, y FLOAT, v DOUBLE,"
        " d DECIMAL(9, 3), t CHAR(8), stamp TIMESTAMP)"
    )
    yield "CREATE TABLE visit (vid BIGINT PRIMARY KEY, pid BIGINT, x DOUBLE, t VARCHAR)"
    yield "CREATE TABLE bill (vid BIGINT, x DOUBLE)"
    yield "CREATE TABLE rate (x DOUBLE PRIMARY KEY, name VARCHAR)"
    yield f"INSERT INTO rate VALUES ({PAIRS[pair][0]}, 'a'), (7.0, 'b')"
    (usual, odd), (text, other) = PAIRS[pair], TEXTS[pair]
    at = {"first": 0, "middle": OTHERS // 2, "last": OTHERS, None: -1}[place]
    for i in range(OTHERS + 1):
        if i == at:
            own = [odd, odd]
            own.insert(2 - PLACES.index(place or "first"), usual)
            yield from _one(0, 1, odd, tuple(own), other)
        if i < OTHERS:
            value = usual if i % 2 else "2.5"
            yield from _one(i + 1, 2, value, (value, value), text)


def _one(number: int, n: int, value: str, visits: tuple[str, ...], text: str) -> Iterator[str]:
    stamp = "TIMESTAMP '2025-01-01 12:00:00'"
    yield (
        f"INSERT INTO person VALUES ({number}, {n}, {value}, {value}, {value}, 0.000, {text}, {stamp})"
    )
    for i, visit in enumerate(visits):
        yield f"INSERT INTO visit VALUES ({4 * number + i}, {number}, {visit}, {text})"
        yield f"INSERT INTO bill VALUES ({4 * number + i}, {visit})"


KEYS = (
    "x", "y", "v", "d", "t", "stamp", "n", "-x", "-v", "x - 0.0", "x * n", "x % 2", "ROUND(x, 2)", "FLOOR(x)",
    "CAST(CAST(x AS TEXT) AS DOUBLE)", "LENGTH(t) * 0.1 * 0.0 * (CASE WHEN n % 2 = 1 THEN -1 ELSE 1 END)",
    "CASE WHEN n = 1 THEN x ELSE -(-x) END", "x * 1e299 * 1e299", "d * -1", "t || '-'", "EXTRACT(SECOND FROM stamp) * -1",
)  # fmt: skip
FORMS = (
    "SELECT {key} AS k, COUNT(*) FROM person GROUP BY 1",
    "SELECT DISTINCT {key} AS k FROM person",
    "SELECT k, COUNT(*) FROM (SELECT id, {key} AS k FROM person GROUP BY 1, 2) AS g GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT id, MAX({key}) AS k FROM person GROUP BY 1) AS g GROUP BY k",
)
OF_LIST = "SELECT x, COUNT(*) FROM visit WHERE x IN (SELECT x FROM rate) GROUP BY x"
QUESTIONS = (
    *(FORMS[i % 3].format(key=key) for i, key in enumerate(KEYS)),
    *(form.format(key=key) for key in ("x", "-v", "x * n") for form in FORMS),
    "SELECT x, y, x * n AS z, COUNT(*), SUM(LEAST(GREATEST(n, 0), 3)) FROM person GROUP BY ALL",
    "SELECT x, n, COUNT(*) FROM person GROUP BY ROLLUP (x, n)",
    "SELECT x, MEDIAN(LEAST(GREATEST(n, 0), 3)) FROM person GROUP BY x",
    "SELECT x, COUNT(DISTINCT t), COUNT(DISTINCT x) FROM person GROUP BY x",
    "SELECT x, COUNT(DISTINCT pid), COUNT(*) FROM visit GROUP BY x",
    "SELECT x, COUNT(*) FROM bill WHERE vid > -1 GROUP BY x",
    "SELECT v, COUNT(*) FROM person GROUP BY v",
    "SELECT k, COUNT(*) FROM (SELECT pid, MIN(x) AS k FROM visit GROUP BY pid) AS g GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT pid, MAX(x) AS k FROM visit GROUP BY pid) AS g GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT pid, MEDIAN(x) AS k FROM visit GROUP BY pid) AS g GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT pid, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) AS k FROM visit GROUP BY pid) AS g GROUP BY k",
    "SELECT CAST(k AS TEXT) AS k, COUNT(*) FROM (SELECT pid, MIN(x) AS k FROM visit GROUP BY pid) AS g GROUP BY 1",
    "SELECT CAST(k AS TEXT) AS k, COUNT(*) FROM (SELECT pid, MEDIAN(x) AS k FROM visit GROUP BY pid) AS g GROUP BY 1",
    "SELECT CAST(k AS TEXT) AS k, COUNT(*) FROM (SELECT pid, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) AS k FROM visit GROUP BY pid) AS g GROUP BY 1",
    "SELECT CAST(k AS TEXT) AS k, COUNT(*) FROM (SELECT pid, x AS k FROM visit GROUP BY pid, x) AS g GROUP BY 1",
    "SELECT CAST(k AS TEXT) AS k, COUNT(*) FROM (SELECT DISTINCT pid, x AS k FROM visit) AS g GROUP BY 1",
    "SELECT k || '' AS k, COUNT(*) FROM (SELECT MIN(x) OVER (PARTITION BY pid) AS k FROM visit) AS g GROUP BY 1",
    "SELECT k, COUNT(*) FROM (SELECT x, MIN(x) OVER (PARTITION BY pid) AS k FROM visit) AS g GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT pid, x AS k FROM visit UNION ALL SELECT id, x FROM person) AS g GROUP BY k",
    "SELECT p.x, COUNT(*) FROM person AS p JOIN rate AS r ON p.x = r.x GROUP BY p.x",
    "SELECT r.x, COUNT(*) FROM person AS p JOIN rate AS r ON p.x = r.x GROUP BY r.x",
    "SELECT r.x * p.n AS k, COUNT(*) FROM person AS p JOIN rate AS r ON p.x = r.x GROUP BY 1",
    "SELECT p.x, COUNT(*) FROM person AS p JOIN visit AS v ON v.pid = p.id AND v.x = p.x GROUP BY p.x",
    "SELECT x, COUNT(*) FROM person AS p WHERE EXISTS (SELECT 1 FROM visit AS v WHERE v.pid = p.id AND v.x = p.x) GROUP BY x",
    OF_LIST,
)  # fmt: skip

FAULTS: dict[str, dict[str, object]] = {
    "everywhere": {f"dpsql.{where}.canonical": lambda text, _: text for where in ("engines.duckdb.expressions", "engines.duckdb.terms")},
    "below": {"dpsql.engines.duckdb.relations.key_text": expressions.expression},
    "keys of groups": {"dpsql.engines.duckdb.terms.canonical": lambda text, _: text},
    "least and largest": {"dpsql.engines.duckdb.expressions.CHOOSING": frozenset()},
}  # fmt: skip
"""Places where keys are written, each without the canonical form."""


@functools.cache
def place_of(pair: str, place: str | None) -> Path:
    """A database in which the one unit has a place."""
    path = folder() / f"labels {pair} {place}.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in script(pair, place):
            connection.execute(statement)
    return path


@functools.cache
def opened(
    pair: str, place: str | None, strict: str = "off", threads: int = 1, *, prepared: bool = False
) -> Service:
    """A service over it, whose noise is far below one."""
    home = Path(tempfile.mkdtemp(dir=folder()))
    shutil.copyfile(place_of(pair, place), home / "data.duckdb")
    path = home / "policy.yaml"
    path.write_text(POLICY.format(name="data", strict=strict, threads=threads))
    if prepared:
        policy = load(path)
        copies.prepare(policy, [t.name for t in policy.tables.values() if not t.public])
    found = Service.open(path, clock=noon)
    found.ledger.close()
    return Service(found.policy, found._engine, FreeLedger(), clock=noon, entropy=Seeded(1))


def bits(value: object) -> object:
    """A value so that what differs in one bit differs."""
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return tuple(
            sorted((bits(tuple(v.values())) if isinstance(v, dict) else bits(v)) for v in value)
        )
    return tuple(map(bits, value)) if isinstance(value, tuple) else repr(value)


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    """The rows of a table, bit by bit, in an order of their own."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted((tuple(map(bits, row)) for row in zip(*columns, strict=True)), key=repr)


@dataclass(frozen=True)
class Way:
    """A statement that a question may become; how many keys it has, and whether groups are public."""

    sql: str
    keys: int
    public: bool
    values: Mapping[str, object]


@functools.cache
def values(question: str, strict: str) -> Mapping[str, object]:
    """What the statements of a question are given."""
    return values_in(question, opened("zero", None, strict))


@functools.cache
def ways(question: str, strict: str = "off") -> tuple[Way, ...]:
    """Every statement that a question may become."""
    here = opened("zero", None, strict)
    found = {}
    for part in every_way(planned(question, here), request(4, 4), ("laplace",)):
        wanted = parameters(text_of(part))
        given = values(question, strict) if wanted - {"salt"} else {"salt": SALT}
        used = {name: given[name] for name in wanted}
        measured = part.measurement
        found[text_of(part)] = Way(
            text_of(part), len(measured.keys), measured.cells is not None, used
        )
    return tuple(found.values())


@functools.cache
def reading(pair: str, place: str | None) -> duckdb.DuckDBPyConnection:
    """A connection that runs statements as they are."""
    return duckdb.connect(str(place_of(pair, place)), read_only=True, config={"threads": 1})


def seen(way: Way, pair: str, place: str | None) -> tuple[list[tuple[object, ...]], set[object]]:
    """The rows of a statement, and the labels of groups that are no single unit's."""
    table = reading(pair, place).sql(way.sql, params=dict(way.values) or None).to_arrow_table()
    labels = table
    if "units" in table.column_names:
        labels = table.filter(pa.compute.greater(table.column("units"), 3))
    return rows(table), set(rows(labels.select(range(way.keys))))


def told(question: str, pair: str, strict: str = "off") -> str:
    """A statement whose labels, or numbers, depend on where the one unit's rows are."""
    for way in ways(question, strict):
        found = [seen(way, pair, place) for place in PLACES]
        if any(other[0] != found[0][0] for other in found[1:]):
            return f"another order of rows: {way.sql}"
        if way.keys and seen(way, pair, None)[1] != found[0][1]:
            return f"without the unit: {way.sql}"
    return ""


@pytest.mark.parametrize("pair", PAIRS)
def test_labels_do_not_depend_on_one_unit(pair: str) -> None:
    """Nor do numbers depend on the order of rows, whatever way the engine is asked in."""
    asked = QUESTIONS if pair == "zero" else QUESTIONS[::2]
    assert {question: found for question in asked if (found := told(question, pair))} == {}


STEADY = tuple(q for q in QUESTIONS[::5] if "EXISTS" not in q)


def test_nor_under_strict_timing() -> None:
    assert {q: found for q in STEADY if (found := told(q, "zero", "on"))} == {}


def refused(guard: Guard, way: Way) -> bool:
    """Whether the second check refuses a statement."""
    try:
        guard.check(way.sql)
    except Unsafe:
        return True
    return False


@pytest.mark.parametrize("where", FAULTS)
def test_a_key_without_its_form_is_found_here_and_refused_by_the_second_check(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the canonical form is left out in one of the places where keys are written."""
    dict(values(OF_LIST, "off"))  # asked before anything is left out
    for name, value in FAULTS[where].items():
        monkeypatch.setattr(name, value)
    ways.cache_clear()
    try:
        found = next((q for q in reversed(QUESTIONS) if told(q, "zero")), "")
        assert found, where
        guard = Guard(opened("zero", None).policy)
        assert any(map(functools.partial(refused, guard), ways(found))), found
    finally:
        ways.cache_clear()


RELEASED = (
    ("SELECT x, COUNT(*) FROM person GROUP BY x", 1),
    ("SELECT -x AS a, y AS b, COUNT(*) FROM person GROUP BY ALL", 2),
    ("SELECT DISTINCT x * 0.5 AS k FROM visit", 1),
    ("SELECT CAST(k AS TEXT) AS k, COUNT(*) FROM (SELECT pid, MIN(x) AS k FROM visit GROUP BY pid) AS g GROUP BY 1", 1),
    ("SELECT x, COUNT(*) FROM bill GROUP BY x", 1),
    ("SELECT x, COUNT(DISTINCT pid), COUNT(DISTINCT x) FROM visit GROUP BY x", 1),
    ("SELECT v.x, COUNT(*) FROM visit AS v WHERE v.x IN (SELECT x FROM person GROUP BY x HAVING COUNT(*) > 5) GROUP BY v.x", 1),
)  # fmt: skip
SERVED = {"plainly": {}, "strictly": {"strict": "on"}, "from copies": {"prepared": True}}


@pytest.mark.parametrize(("how", "pair"), [*((how, "zero") for how in SERVED), ("plainly", "NaN")])
def test_released_tables_have_the_same_labels(how: str, pair: str) -> None:
    """End to end: what a client would get, byte by byte, and in the same order."""
    for question, keys in RELEASED:
        found = []
        for place in ("first", "last", None):
            here = opened(pair, place, **SERVED[how])  # type: ignore[arg-type]
            table = here.session().execute(question).table
            found.append([[bits(v) for v in c.to_pylist()] for c in table.columns[:keys]])
        assert len(found[0][0]) == 2
        assert found == [found[0]] * 3, question


MANY = 300_000
"""Rows that several threads share: an engine hands them out in parts of 122,880."""


def test_labels_do_not_depend_on_threads() -> None:
    """Where several threads race for which row comes first."""
    questions = [QUESTIONS[0], *(q for q in QUESTIONS if "MIN(x) AS k FROM visit" in q)]
    with duckdb.connect(":memory:", config={"threads": 4}) as connection:
        connection.execute("CREATE TABLE person (id BIGINT, x DOUBLE)")
        connection.execute("CREATE TABLE visit (pid BIGINT, x DOUBLE)")
        odd = "CASE WHEN (i * 7919) % 1000 < 500 THEN -0.0::DOUBLE ELSE 0.0 END"
        connection.execute(f"INSERT INTO person SELECT i, {odd} FROM range({MANY}) AS r(i)")
        connection.execute(f"INSERT INTO visit SELECT i // 3, {odd} FROM range({MANY}) AS r(i)")
        for question in questions:
            for way in ways(question):
                given = dict(way.values) or None
                tables = [connection.sql(way.sql, params=given).to_arrow_table() for _ in range(2)]
                assert rows(tables[0]) == rows(tables[1])
                labels = rows(tables[0].select(range(way.keys)))
                assert labels in ([(bits(0.0),)], [(bits("0"),)]), way.sql


def ranks(change: str, values: tuple[str, ...]) -> set[object]:
    """The rows of a unit in a copy, bit by bit with their ranks."""
    table = opened("zero", None).policy.tables["visit"]
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("CREATE TABLE visit (vid BIGINT, pid BIGINT, x DOUBLE, t VARCHAR)")
        for value in values:
            connection.execute(f"INSERT INTO visit VALUES (1, 1, {value}, 'a')")
        made = flat(write_rows(copy_of(table, 7)))
        assert change in made
        copied = connection.sql(f"SELECT * FROM ({made.replace(change, '')}) AS c")
        return set(rows(copied.to_arrow_table()))


@pytest.mark.parametrize("pair", PAIRS)
def test_a_copy_numbers_equal_rows_by_their_bytes(pair: str) -> None:
    """A hash is the same for both zeros: without the signs, the order of rows would decide."""
    signs = ", signbit(c2)"
    assert ranks("", PAIRS[pair]) == ranks("", PAIRS[pair][::-1])
    assert ranks(signs, PAIRS[pair]) != ranks(signs, PAIRS[pair][::-1])


def test_stored_releases_of_other_labels_are_not_given_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those from before labels had one form are asked anew where labels came from rows."""
    ledger, here = FreeLedger(), opened("zero", "last")

    def asked() -> list[bool]:
        service = Service(here.policy, here._engine, ledger, clock=noon, entropy=Seeded(1))
        return [service.session().execute(sql).recalled for sql in (text, number, public)]

    text, number, public = (
        f"SELECT {key}, COUNT(*) FROM person WHERE id > -5 GROUP BY 1" for key in ("t", "n", "v")
    )
    with monkeypatch.context() as before:
        before.setattr("dpsql.reuse.pieces._LABELS", ())
        assert (asked(), asked()) == ([False] * 3, [True] * 3)
    assert (asked(), asked()) == ([False, True, True], [True] * 3)


WORLD = wild_world()
PLAIN = ("negate", "multiply", "round", "floor", "modulo", "cast", "coalesce")
"""Functions that give both zeros, or NaN of both signs."""


def distinct(array: pa.ChunkedArray) -> int:
    """How many values a column has, by their bytes."""
    kind = array.type
    if not (pa.types.is_floating(kind) or pa.types.is_temporal(kind) or pa.types.is_integer(kind)):
        return len(set(array.drop_null().to_pylist()))
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return len({v for chunk in array.chunks for v in chunk.drop_null().view(width).to_pylist()})


def ambiguous(name: str, write: Callable[[Expression], str]) -> list[str]:
    """Expressions of a function that an engine finds fewer values of than there are bytes."""
    texts = [write(node) for node in single_calls(WORLD, name)][:60]
    listed = WORLD.engine.sql(
        f"SELECT {', '.join(f'{t} AS k{i}' for i, t in enumerate(texts))} FROM w"
    )
    counted = ", ".join(f"count(DISTINCT {text})" for text in texts)
    (numbers,) = WORLD.engine.execute(f"SELECT {counted} FROM w").fetchall()
    columns = listed.to_arrow_table().columns
    return [t for t, n, c in zip(texts, numbers, columns, strict=True) if distinct(c) != n]


def test_whatever_expression_is_a_key_has_one_form_of_each_value() -> None:
    """Every function over the worst that rows may hold; without the form, many have two."""
    names = sorted(set(FUNCTIONS) - {"in_list", "array"})
    assert {n: f for n in names if (f := ambiguous(n, lambda e: key_text(e, WORLD.names)))} == {}
    assert all(ambiguous(n, WORLD.write) for n in PLAIN)


BITS = range(7)
SIGN = "LENGTH(city) * 0.1 * 0.0 * (CASE WHEN CAST(FLOOR(age / {}) AS INTEGER) % 2 = 1 THEN -1 ELSE 1 END) AS b{}"
ATTACK = f"SELECT {', '.join(SIGN.format(1 << i, i) for i in BITS)}, COUNT(*) FROM customers WHERE customer_id >= {{}} GROUP BY ALL"
VICTIMS = range(11, 20)


def ages(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """Each victim's age, as the signs of a group's names spell it."""
    found = []
    for victim in VICTIMS:
        part = next(every_way(plan_of(ATTACK.format(victim), SHOP), request(3, 1), ("laplace",)))
        table = connection.sql(
            text_of(part), params={"salt": SALT} if "$salt" in text_of(part) else None
        )
        shown = [column.to_pylist()[0] for column in table.to_arrow_table().columns[: len(BITS)]]
        found.append(sum(bits(value) == bits(-0.0) and 1 << i for i, value in enumerate(shown)))
    return found


def test_ages_are_not_read_from_the_signs_of_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row of whoever comes from a victim on: without the form each age is read exactly."""
    connection = in_memory("shop")
    asked = f"SELECT age FROM customers WHERE customer_id BETWEEN {VICTIMS[0]} AND {VICTIMS[-1]} ORDER BY customer_id"
    true = [age for (age,) in connection.execute(asked).fetchall()]
    assert ages(connection) == [0] * len(VICTIMS)
    for where in ("engines.duckdb.expressions", "engines.duckdb.terms"):
        monkeypatch.setattr(f"dpsql.{where}.canonical", lambda text, _: text)
    assert ages(connection) == true


def test_a_public_group_called_nan_is_found_again() -> None:
    """A stored number is put beside a new one by their groups, and NaN does not equal itself."""
    key = "v * 1e299 * 1e299 - v * 1e299 * 1e299"
    group = f"COUNT(*) FROM person WHERE v IS NOT NULL AND id > 3 GROUP BY {key}"
    session = opened("zero", None).session()
    first = session.execute(f"SELECT {key} AS k, {group}").table
    both = session.execute(f"SELECT {key} AS k, SUM(LEAST(GREATEST(n, 0), 3)), {group}").table
    assert rows(both.select([0, 2])) == rows(first)
    assert {bits(0.0), bits(float("nan"))} == {label for label, _ in rows(first)}
