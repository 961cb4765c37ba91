"""Tables of the policy that are views of the source: sums of doubles, conditions on sums, ranks of sums.

Numbers that cancel each other make sums that depend on the order in which they are added. So a row of
such a view may be there in one reading and not in the next (``readings.py``). The policy declares them
like any table: with one row for each unit, with keys, with foreign keys from and to them.
"""

from __future__ import annotations

from tests.adversary.maker import VICTIM, Maker, Named
from tests.adversary.model import Row
from tests.adversary.types import KEYS, Kind

KEPT, TURNED = "kept", "turned"
"""The stored rows, and the same in another order."""
DAYS = (
    "SELECT id, day, c0, sum(x) AS s FROM {rows} GROUP BY id, day, c0",
    "SELECT id, day, c0, sum(x) AS s FROM {rows} GROUP BY id, day, c0 HAVING sum(x) > {most}",
    "SELECT id, day, c0, sum(x) AS s FROM {rows} GROUP BY id, day, c0 HAVING sum(x) > {most}",
    "SELECT id, day, c0, avg(x) * 3 AS s FROM {rows} GROUP BY id, day, c0 HAVING avg(x) * 3 > {most}",
    "SELECT t.id, t.day, t.c0, t.s FROM (SELECT id, day, c0, sum(x) AS s FROM {rows} GROUP BY id, day, c0) AS t WHERE t.s > {most}",
    (
        "SELECT r.id, r.day, r.c0, r.s FROM (SELECT t.id, t.day, t.c0, t.s, rank() OVER (PARTITION BY t.id ORDER BY t.s DESC)"
        " AS place FROM (SELECT id, day, c0, sum(x) AS s FROM {rows} GROUP BY id, day, c0) AS t) AS r WHERE r.place <= 2"
    ),
    "SELECT id, max(day) AS day, max(c0) AS c0, sum(x) AS s FROM {rows} GROUP BY id HAVING sum(x) > {most}",
    "SELECT DISTINCT id, day, c0, x AS s FROM {rows}",
    (
        "SELECT r.id, r.day, r.c0, t.s FROM {rows} AS r JOIN (SELECT id, day, sum(x) AS s FROM {rows} GROUP BY id, day) AS t"
        " ON t.id = r.id AND t.day = r.day WHERE t.s > {most}"
    ),
)
APART = DAYS[:7]
"""Those with one row of each day."""
CONDITIONAL = DAYS[1:5]
"""Those with one row of each day on which there is enough."""
PEOPLE = (
    "SELECT id, max(c0) AS c0, sum(x) AS s FROM {rows} GROUP BY id",
    "SELECT id, max(c0) AS c0, sum(x) AS s FROM {rows} GROUP BY id HAVING sum(x) > {most}",
)
LED = "table: people, key: id"
STRANGE = 15
"""Units in a hundred beside the victim whose sums depend on the order."""
ONE = 60
"""Worlds in a hundred that declare one row of each unit, and have it in the first reading."""
ALIKE = 90
"""Days in a hundred whose numbers stand in one order."""
HIDDEN, SHOWN = ("{0}", "1e17", "-1e17"), ("-1e17", "1e17", "{0}")
"""Numbers whose sum is nothing in this order, and the last number in this one; backwards it is the other."""
_S = Named("s", Kind("DOUBLE", "double", "number", ("0.5",), ("1e17",)), "range: [0, 8]", True)
_DAY = Named("day", Kind("BIGINT", "bigint", "number", ("1",), ("2",)))
_ID = "id"


def key(maker: Maker) -> str:
    """The unit, as the policy says it."""
    return LED if any(table.name == "people" for table in maker.tables) else "key: id"


def add(maker: Maker) -> None:
    """Stored rows, views of them, and tables that lead to these or that these lead to."""
    dice = maker.more
    maker.most = 1 if dice.chance(ONE) else dice.one((2, 3, 5))
    maker.key = dice.one(KEYS)
    column = maker.columns(1)[0]
    keys = [(_ID, maker.key.sql, maker.key.policy)]
    maker.ddl.append(
        f"CREATE TABLE {KEPT} (n BIGINT, id {maker.key.sql}, day BIGINT, c0 {column.kind.sql}, x DOUBLE)"
    )
    _fill(maker, column)
    maker.views.append(f"CREATE TABLE {TURNED} AS SELECT * FROM {KEPT} ORDER BY n DESC")
    led = dice.chance(60)
    parent = ("people", _ID) if led else None
    steps = ["foreign_keys: [{columns: [id], references: people}]"] if led else []
    if led and dice.chance(50):
        columns = maker.columns(2)
        maker.table("people", keys, columns, ["unit: person"], key=[_ID])
        maker.rows["people"] = [
            Row("people", maker.keys(unit) + maker.cells(columns, unit), f"person:{unit}")
            for unit in range(maker.units)
        ]
    elif led:
        maker.table("people", keys, [column, _S], ["unit: person"], key=[_ID], stored=KEPT)
        _view(maker, "people", dice.one(PEOPLE))
    noted = dice.chance(40)
    words = ["unit: person", *steps, *maker.bound(), *(["key: day"] if noted else [])]
    maker.table("days", keys, [_DAY, column, _S], words, parent, [_ID], stored=KEPT)
    _view(maker, "days", dice.one(CONDITIONAL if maker.most == 1 else APART if noted else DAYS))
    if noted:
        _note(maker)


def _view(maker: Maker, name: str, query: str) -> None:
    most = maker.more.one((0, 0, 2))
    again = f"{name} again"
    for view, rows in ((name, KEPT), (again, TURNED)):
        maker.views.append(f'CREATE VIEW "{view}" AS {query.format(rows=rows, most=most)}')
    maker.readings.append((name, again))


def _fill(maker: Maker, column: Named) -> None:
    """Some days of each unit, on each of which a few numbers are added up."""
    dice, day = maker.more, 0
    rows = maker.rows.setdefault(KEPT, [])
    loud = dice.one((HIDDEN, SHOWN))
    for unit in range(maker.units):
        strange = unit == VICTIM or dice.chance(STRANGE)
        for place in range(max(maker.count(unit), 1 + 3 * (unit == VICTIM))):
            day += 1
            (cell,) = maker.cells([column], unit)
            order = loud if dice.chance(ALIKE) else dice.one((HIDDEN, SHOWN))
            if maker.most == 1 and place:
                order = HIDDEN
            numbers = order if strange else ("0.5", "2.0")
            small = dice.one(("3.0", "5.0", "7.0"))
            for number in (each.format(small) for each in numbers):
                cells = (str(len(rows)), *maker.keys(unit), str(day), cell, number)
                rows.append(Row(KEPT, cells, f"person:{unit}"))


def _note(maker: Maker) -> None:
    """A stored table that leads to the days."""
    columns = maker.columns(2)
    words = ["unit: person", "foreign_keys: [{columns: [day], references: days}]"]
    words.append(f"max_rows_per_unit: {2 * maker.most}")
    maker.table("notes", [("day", "BIGINT", "bigint")], columns, words, ("days", "day"))
    days = dict.fromkeys((row.cells[2], row.owner) for row in maker.rows[KEPT])
    rows = maker.rows.setdefault("notes", [])
    for day, owner in days:
        unit = int(str(owner).partition(":")[2])
        for _ in range(maker.more.between(0, 2)):
            rows.append(Row("notes", (day, *maker.cells(columns, unit)), owner))
