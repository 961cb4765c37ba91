"""The planner's faults, seen by comparing databases that differ in one person."""

from __future__ import annotations

import os
import shutil

import dpsql
from tests.adversary_faults.shown.showing import shows
from tests.adversary_faults.world import (
    DATA,
    POLICY,
    World,
    explained,
    moved,
    prepare,
    reach,
    reaches,
    refused,
    spent,
)

SMALL = (
    "CREATE TABLE people (id BIGINT, age INTEGER, city VARCHAR, pay DOUBLE)",
    "INSERT INTO people SELECT i, 20 + i % 50, 'c', i % 100 FROM range(1, 1001) t(i)",
    *DATA[2:],
)


@shows("the sign of a zero is a label")
def zeros() -> bool:
    labels = []
    for sign in ("", "-"):
        world = World().having(
            "DELETE FROM people", f"INSERT INTO people VALUES (1, 30, 'c', {sign}0.0::DOUBLE)",
            "INSERT INTO people SELECT i, 30, 'c', 0.0 FROM range(2, 500) t(i)",
        )  # fmt: skip
        with world.opened() as connection:
            rows = connection.execute("SELECT pay * 1.0 AS p, COUNT(*) FROM people GROUP BY 1")
            labels.append([str(row[0]) for row in rows.fetchall()])
    return labels[0] != labels[1]


@shows("texts that a collation takes for equal are one group")
def collation() -> bool:
    data = [s.replace("city VARCHAR, pay", "city VARCHAR COLLATE NOCASE, pay") for s in DATA]
    return not refused(World(data=data), "SELECT COUNT(*) FROM people")


@shows("a unit's key may be there twice")
def twice() -> bool:
    world = World(policy=_without_visits())
    return not refused(
        world.having("INSERT INTO people SELECT 1, 30, 'c0', 50 FROM range(500)"),
        "SELECT COUNT(*) FROM people",
    )


def _without_visits() -> str:
    head, _, rest = POLICY.partition("  visits:")
    return head + "  places:" + rest.partition("  places:")[2]


@shows("one row for each unit is believed")
def one_row() -> bool:
    world = World().under(("max_rows_per_unit: 10", "max_rows_per_unit: 1"))
    return not refused(world, "SELECT COUNT(*) FROM visits")


@shows("joins need not be on the unit")
def joins() -> bool:
    return not refused(
        World(), "SELECT COUNT(*) FROM visits a JOIN people b ON a.day = b.age WHERE b.age < 40"
    )


COMPOSITE = """
source: {engine: duckdb, path: d.duckdb}
data_version: "1"
units:
  person: {key: [id, part]}
tables:
  one:
    unit: person
    max_rows_per_unit: 2
    columns: {id: {type: bigint}, part: {type: bigint}, n: {type: integer, range: [0, 9]}}
  other:
    unit: person
    max_rows_per_unit: 2
    columns: {id: {type: bigint}, part: {type: bigint}, m: {type: integer, range: [0, 9]}}
accounts:
  dataset: {epsilon: 1e9, delta: 1e-3}
roles:
  analyst: {epsilon: 1e9, delta: 1e-4, session: {epsilon: 1e9}, query: {epsilon: 1e6}}
"""


@shows("joins need only a part of a composite key")
def composite() -> bool:
    data = [
        f"CREATE TABLE {name} AS SELECT i // 10 AS id, i % 10 AS part, i % 9 AS {column} FROM range(1000) t(i)"
        for name, column in (("one", "n"), ("other", "m"))
    ]
    return not refused(
        World(data, COMPOSITE), "SELECT COUNT(*) FROM one JOIN other ON one.id = other.id"
    )


@shows("a public table's fan-out is forgotten")
def fan_out() -> bool:
    world = World().having("INSERT INTO places SELECT 'c1', 'n' || i FROM range(30) t(i)")
    question = "SELECT COUNT(*) FROM people p JOIN places q ON p.city = q.city"
    with world.opened() as connection:
        priced = reach(explained(connection, question))
    fewer = world.having("DELETE FROM people WHERE id = 1")
    return moved(world, fewer, question) > priced


@shows("declared values bound a prepared copy")
def unlisted() -> bool:
    question = "SELECT COUNT(DISTINCT page) FROM visits"
    worlds = World().visited("'page ' || i, 1, 1 FROM range(10) t(i)"), World()
    for world in worlds:
        prepare(world)
    with worlds[0].opened() as connection:
        text = explained(connection, question)
    assert "prepared rows" in text, text
    return moved(*worlds, question) > reach(text)


@shows("whole numbers that are one double are two keys")
def wide() -> bool:
    listed = "  places: {public: true, key: k, columns: {k: {type: double}}}\n"
    world = (
        World()
        .under(("  places: {public: true}\n", listed))
        .having(
            "DROP TABLE places", "CREATE TABLE places (k BIGINT PRIMARY KEY)",
            "INSERT INTO places VALUES (9007199254740992), (9007199254740993)",
        )
    )  # fmt: skip
    return not refused(world, "SELECT COUNT(*) FROM people JOIN places ON pay = k")


@shows("a view that adds rows up is read again and again")
def added_up() -> bool:
    data = [s.replace("TABLE visits", "TABLE raw").replace("INTO visits", "INTO raw") for s in DATA]
    made = "CREATE VIEW visits AS SELECT id, page, secs, day, sum(secs) AS s FROM raw GROUP BY ALL"
    with World(data=(*data, made)).opened() as connection:
        text = explained(
            connection, "SELECT page, COUNT(*) FROM visits WHERE secs > 1 GROUP BY page"
        )
    return "row weights" in text


@shows("copies of another database are read")
def another() -> bool:
    worlds = World(), World([s.replace("i % 3)", "(i + 1) % 3)") for s in DATA])
    one, other = (world.path.with_name("d.duckdb") for world in worlds)
    prepare(worlds[0])
    before = one.stat()
    assert other.stat().st_size == before.st_size
    shutil.copyfile(other, one)
    os.utime(one, ns=(before.st_mtime_ns, before.st_mtime_ns))
    with worlds[0].opened() as connection:
        return "dpsql_prepared" in explained(connection, "SELECT COUNT(*) FROM visits")


TIMED = """
source: {engine: duckdb, path: d.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people: {unit: person, columns: {id: {type: timestamp}}}
accounts:
  dataset: {epsilon: 1e9, delta: 1e-3}
roles:
  analyst: {epsilon: 1e9, delta: 1e-4, session: {epsilon: 1e9}, query: {epsilon: 1e6}}
"""


@shows("keys that differ by nanoseconds are one unit")
def nanoseconds() -> bool:
    world = World(["CREATE TABLE people AS SELECT TIMESTAMP_NS '2024-01-01' AS id"], TIMED)
    return not refused(world, "SELECT COUNT(*) FROM people")


@shows("a UNION ALL has the rows of one side")
def union() -> bool:
    question = "SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT age FROM people) t"
    with World().opened() as connection:
        priced = reach(explained(connection, question))
    return moved(World(), World().having("DELETE FROM people WHERE id = 1"), question) > priced


CAPPED = ("    max_rows_per_unit: 10\n", "    max_rows_per_unit: 10\n    max_rows_per_group: 3\n")
BY_DAY = "SELECT day, COUNT(DISTINCT id), COUNT(*) FROM visits GROUP BY day"


@shows("the square of a unit's groups is not taken")
def squares() -> bool:
    with World().under(CAPPED).opened() as connection:
        for setting in ("mechanism = 'gaussian'", "epsilon = 1", "delta = 1e-6"):
            connection.execute(f"SET dpsql.{setting}")
        return reaches(explained(connection, BY_DAY))[1] < 3


@shows("a household counts as one person")
def household() -> bool:
    world = World().under(("{table: people, key: id}", "{table: people, key: id, group_size: 4}"))
    with world.opened() as connection:
        return reach(explained(connection, "SELECT COUNT(*) FROM people")) < 4


@shows("the farther end of a range is not looked at")
def farther() -> bool:
    with World().opened() as connection:
        priced = reach(explained(connection, "SELECT SUM(pay) FROM people"))
    world = World().having("UPDATE people SET pay = 100 WHERE id = 1")
    return (
        moved(world, world.having("DELETE FROM people WHERE id = 1"), "SELECT SUM(pay) FROM people")
        > 1.01 * priced
    )


@shows("a unit keeps all of its groups")
def groups() -> bool:
    busy = World().visited("'a', 10, i FROM range(40) t(i)")
    question = "SELECT day, COUNT(DISTINCT id) FROM visits GROUP BY day"
    with busy.opened() as connection:
        priced = reach(explained(connection, question))
    return moved(busy, busy.without(7777), question) > priced + 0.5


@shows("a unit's rows in a group are not cut")
def per_group() -> bool:
    busy = World().under(CAPPED).visited("'a', 10, 3 FROM range(400) t(i)")
    return moved(busy, busy.without(7777), BY_DAY) > 7


@shows("twice as many rows weigh in full")
def weights() -> bool:
    busy = World().visited("'a', 10, 3 FROM range(19) t(i)")
    question = "SELECT day, COUNT(*) FROM visits GROUP BY day"
    return moved(busy, busy.without(7777), "SET dpsql.search = off", question) > 11


@shows("rows weigh in full under strict timing")
def strict_weights() -> bool:
    strict = World().under(("data_version", "strict_timing: on\ndata_version"))
    busy = strict.visited("'a', 10, 3 FROM range(400) t(i)")
    question = "SELECT day, COUNT(*) FROM visits GROUP BY day"
    return moved(busy, busy.without(7777), "SET dpsql.search = off", question) > 11


@shows("one unit's groups are enough for a threshold")
def household_threshold() -> bool:
    found = []
    for size in (1, 60):
        world = World().under(
            ("{table: people, key: id}", f"{{table: people, key: id, group_size: {size}}}")
        )
        with world.opened() as connection:
            connection.execute("SET dpsql.epsilon = 1000000")
            text = explained(connection, "SELECT city, COUNT(*) FROM people GROUP BY city")
        found.append(int(text.partition("threshold of ")[2].split()[0]))
    return found[1] < 60


@shows("a threshold costs no delta")
def no_delta() -> bool:
    with World().opened() as connection:
        connection.execute("SELECT city, COUNT(*) FROM people GROUP BY city").fetchall()
        return not any(
            row[6] for row in connection.execute("SELECT * FROM dpsql.ledger").fetchall()
        )


@shows("several statistics cost what one does")
def several() -> bool:
    with World().opened() as connection:
        connection.execute("SET dpsql.epsilon = 1")
        text = explained(
            connection, "SELECT COUNT(*), SUM(pay), SUM(age), COUNT(DISTINCT id) FROM people"
        )
    return float(text.partition("cost: epsilon ")[2].split(",")[0]) < 0.9


@shows("gaussian statistics cost the rho of one")
def rho() -> bool:
    found = []
    for question in (
        "SELECT SUM(pay) FROM people",
        "SELECT SUM(pay), SUM(age), COUNT(*) FROM people",
    ):
        with World().opened() as connection:
            for setting in ("mechanism = 'gaussian'", "epsilon = 1", "delta = 1e-6"):
                connection.execute(f"SET dpsql.{setting}")
            found.append(float(explained(connection, question).partition("rho ")[2].split()[0]))
    return found[1] < 0.9 * found[0]


@shows("NULL counts as the upper end")
def null() -> bool:
    optional = (
        "pay: {type: double, range: [0, 100]}",
        "pay: {type: double, range: [0, 100], nullable: true}",
    )
    world = (
        World()
        .under(optional)
        .having("UPDATE people SET pay = NULL", "UPDATE people SET pay = 200 WHERE id = 1")
    )
    return float(world.ask("SELECT SUM(pay) FROM people")[0][0]) > 1000


@shows("what is no number counts as the middle")
def not_a_number() -> bool:
    world = World().having("UPDATE people SET pay = 'NaN'")
    return float(world.ask("SELECT SUM(pay) FROM people")[0][0]) < 1000


@shows("a view of the time is verified once")
def view() -> bool:
    data = [
        s.replace("TABLE people", "TABLE stored").replace("INTO people", "INTO stored")
        for s in DATA
    ]
    made = "CREATE VIEW people AS SELECT id + (epoch_us(now()) % 7)::BIGINT AS id, age, city, pay FROM stored"
    return not refused(World(data=(*data, made)), "SELECT COUNT(*) FROM people")


@shows("values below their range keep their size")
def below() -> bool:
    world = World().having("UPDATE people SET age = -1000000 WHERE id = 1")
    return float(world.ask("SELECT SUM(age) FROM people")[0][0]) < 0


@shows("a better answer is charged as its noise before")
def refined() -> bool:
    with World().opened() as connection:
        connection.execute("SET dpsql.epsilon = 1")
        connection.execute("SELECT SUM(pay) FROM people").fetchall()
        before = spent(connection)
        connection.execute("SELECT SUM(pay), SUM(age), COUNT(DISTINCT id) FROM people").fetchall()
        return spent(connection) - before < 0.6


@shows("an answer survives another version of the data")
def version() -> bool:
    world = World()
    world.ask("SELECT COUNT(*) FROM people")
    (world.folder / "p.yaml").write_text(POLICY.replace('"1"', '"2"'))
    with world.opened() as connection:
        before = spent(connection)
        connection.execute("SELECT COUNT(*) FROM people").fetchall()
        return spent(connection) == before


@shows("an answer of all rows answers for some")
def condition() -> bool:
    rows = World().ask("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people WHERE age < 30")
    return float(rows[0][0]) > 900


@shows("a window counts rows of everybody")
def window() -> bool:
    question = (
        "SELECT SUM(LEAST(GREATEST(n, 0), 5000)) FROM (SELECT COUNT(*) OVER () AS n FROM people) t"
    )
    return not refused(World(), question)


@shows("stored values are cast as they are")
def cast() -> bool:
    data = [s.replace("age INTEGER", "age HUGEINT") for s in DATA]
    world = World(data).having("UPDATE people SET age = 10::HUGEINT ** 30 WHERE id = 1")
    return _fails(world, "SELECT SUM(age) FROM people")


def _fails(world: World, question: str) -> bool:
    """Whether the engine does not end a question; a refusal is none."""
    try:
        world.ask(question)
    except dpsql.OperationalError:
        return True
    except dpsql.ProgrammingError:
        return False
    return False


@shows("a text is a condition")
def text() -> bool:
    return _fails(World(), "SELECT COUNT_IF(city) FROM people")


@shows("whole numbers overflow")
def overflow() -> bool:
    question = "SELECT SUM(LEAST(GREATEST(id + 9223372036854775000, 0), 9)) FROM people"
    return _fails(World(), question)


@shows("identifiers name groups")
def identifiers() -> bool:
    world = World().under(
        ("      city: {type: text}\n", "      city: {type: text, identifier: true}\n")
    )
    return not refused(world, "SELECT city, COUNT(*) FROM people GROUP BY city")


@shows("halves move once, not twice")
def halves() -> bool:
    with World().opened() as connection:
        connection.execute("SET dpsql.epsilon = 1")
        connection.execute("SET dpsql.mechanism = 'laplace'")
        text = explained(connection, "SELECT SUM(pay), COUNT(pay) FROM people")
    return "scale 25 for each of two halves" in text
