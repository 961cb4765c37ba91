"""Policies and databases: everything that a policy may say, and data that does not care.

A world has units in one of five forms: keys on flat tables, keys of two columns, a table of units
with tables that lead to it, rows, or views of the source that add rows up. One unit, the victim, has
the worst values, more rows and more groups than any policy allows, and stands first, last or somewhere
among the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.adversary import computed, rates
from tests.adversary.dice import Dice
from tests.adversary.earlier import before
from tests.adversary.maker import VICTIM, Listed, Maker
from tests.adversary.model import Role, Row, World
from tests.adversary.types import BIG, WHOLES

COPIED = 30
"""Worlds in a hundred that have prepared copies."""
COMPUTED = 20
"""Worlds in a hundred whose tables are views of the source, where these are wanted."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A world, and what an analyst knows of it."""

    world: World
    tables: tuple[Listed, ...]
    victim: str


def make(
    seed: str, *, tame: bool = False, beyond: bool = False, epsilon: str = "", views: bool = False
) -> Ground:
    """The world of a seed. A tame one keeps every declaration, so that nothing is cut.

    ``beyond``: but for numbers with a range, of which some are outside it, or none at all.
    ``views``: tables of the policy may be views of the source.
    """
    dice = Dice(seed)
    form = dice.one(["flat", "flat", "composite", "parent", "parent", "row"])
    if views and Dice(f"views {seed}").chance(COMPUTED):
        form = "views"
    maker = _Maker(dice, tame, form, beyond)
    return maker.ground(seed, epsilon)


class _Maker(Maker):
    """Makes a world of any form."""

    serial = 0

    def ground(self, seed: str, epsilon: str) -> Ground:
        """The world, and what an analyst knows of it."""
        published = rates.refer(self)
        self._private()
        if self.dice.chance(15) and not self.tame:
            self._stock()
        self._places()
        if published is not None:
            rates.publish(self, published)
        rows = [row for table in self.rows.values() for row in self._placed(table)]
        policy = self._head(epsilon) + "".join(self.policy) + self._views()
        earlier = list[Row]()
        if self.theme == "earlier":
            rows, earlier = before(rows, self.more, one=self.most == 1, tame=self.tame)
        copies = Dice(f"copies {seed}")
        world = World(
            f"{self.form}-{seed}", policy, tuple(self.ddl), tuple(rows), (Role("analyst"),),
            tuple(self.views), group_size=self.size, sound=self.sound,
            prepared=copies.chance(12 if self.readings else COPIED) or bool(earlier), earlier=tuple(earlier),
            readings=tuple(self.readings),
        )  # fmt: skip
        return Ground(world, tuple(self.tables), f"{self.unit}:{VICTIM}")

    def _private(self) -> None:
        if self.form == "views":
            computed.add(self)
        elif self.form in ("flat", "composite"):
            self._flat("events")
            if self.dice.chance(60):
                self._flat("logins")
        elif self.form == "parent":
            self._people()
            self._child("orders", "people", "id")
            if self.dice.chance(40) or self.theme == "wide":
                self._child("lines", "orders", "order_id")
        else:
            self._visits()

    def _head(self, epsilon: str) -> str:
        dice = self.dice
        self.size = 1 if self.form == "row" or self.tame else dice.one([1, 1, 1, 2, 3])
        keys = {
            "flat": "key: u", "composite": "key: [u, v]", "parent": "table: people, key: id",
            "row": "table: visits, key: row", "views": computed.key(self),
        }  # fmt: skip
        size = f", group_size: {self.size}" if self.size > 1 else ""
        pure = dice.chance(25)
        delta = "" if pure else ", delta: 1e-2"
        composition = dice.one(["", ", composition: basic"])
        limits = ['strict_timing: "on"\n'] if dice.chance(12) and not epsilon else []
        query = epsilon or dice.one(["0.1", "0.5", "1", "1", "2", "7"])
        share = "" if pure else dice.one(["", ", delta: 1e-6", ", delta: 1e-3"])
        noise = dice.one(
            ["", "", "", "    mechanisms: [gaussian]\n", "    mechanisms: [laplace]\n"]
        )
        groups = dice.one([1, 2, 3, 8]) if not epsilon else 40
        return (
            "source: {engine: duckdb, path: data.duckdb}\ndata_version: '1'\n"
            + "".join(limits)
            + f"units: {{{self.unit}: {{{keys[self.form]}{size}}}{self.second}}}\n"
            + f"accounts:\n  dataset: {{epsilon: 1000000000{delta}{composition}}}\n"
            + "roles:\n  analyst:\n    session: {epsilon: 1000000000}\n"
            + f"    query: {{epsilon: {query}{share}}}\n    max_groups_per_unit: {groups}\n"
            + ("" if pure or epsilon else noise)
            + "tables:\n"
        )

    def _views(self) -> str:
        table = self.tables[0]
        numbers = table.of("number")
        if not numbers or not self.dice.chance(40):
            return ""
        column = numbers[0]
        self.tables.append(Listed("seen", table.columns, table.key, table.parent, table.refers))
        return f"views:\n  seen: SELECT * FROM {table.name} WHERE {column} IS NOT NULL\n"

    def _flat(self, name: str) -> None:
        keys = [("u", self.key.sql, self.key.policy)]
        keys += [("v", "BIGINT", "bigint")] if self.form == "composite" else []
        columns = self.columns(self.dice.between(2, 5))
        self.table(
            name, keys, columns, [f"unit: {self.unit}", *self.bound()], key=[k for k, *_ in keys]
        )
        rows = self.rows.setdefault(name, [])
        for unit in range(self.units):
            for _ in range(self.count(unit)):
                cells = self.keys(unit) + self.cells(columns, unit)
                rows.append(Row(name, cells, f"{self.unit}:{unit}"))
        if not self.tame:
            for _ in range(self.dice.between(0, 3)):
                rows.append(
                    Row(name, ("NULL", *("1",) * (len(keys) - 1), *self.cells(columns, None)))
                )

    def _people(self) -> None:
        columns = self.columns(self.dice.between(1, 4))
        keys = [("id", self.key.sql, self.key.policy)]
        self.table("people", keys, columns, ["unit: person"], key=["id"])
        rows = self.rows.setdefault("people", [])
        for unit in self._listed():
            copies = 2 if not self.tame and unit == VICTIM and self.dice.chance(15) else 1
            copies = 1 if self.theme == "close" else copies
            if copies > 1:
                self.sound = False
            for _ in range(copies):
                rows.append(
                    Row("people", self.keys(unit) + self.cells(columns, unit), f"person:{unit}")
                )

    def _listed(self) -> range:
        """The units with a row in their table: all, or one of several with keys that are close."""
        apart = self.theme == "close" and self.more.chance(90)
        return range(0, self.units, 3 if apart else 1)

    def _child(self, name: str, parent: str, link: str) -> None:
        columns = self.columns(self.dice.between(2, 4))
        first = parent == "people"
        if first:
            self._number_orders()
        here = [("order_id", *self.numbered)]
        here += [("id", self.key.sql, self.key.policy)] if first else []
        words = ["unit: person", *(["key: order_id"] if first else [])]
        words.append(f"foreign_keys: [{{columns: [{link}], references: {parent}}}]")
        self.table(
            name,
            here,
            columns,
            [*words, *self.bound()],
            (parent, link),
            key=["id"] if first else [],
        )
        rows = self.rows.setdefault(name, [])
        if not first and self.most < 6:  # orders are multiplied, and nobody counts them
            self.sound = False
        if first:
            for unit in range(self.units):
                for _ in range(self.count(unit)):
                    self.serial += 1
                    cells = (str(self.serial), *self.keys(unit), *self.cells(columns, unit))
                    rows.append(Row(name, cells, f"person:{unit}"))
            return
        for order in self.rows["orders"]:
            owner = None if order.owner is None else int(order.owner.partition(":")[2])
            for _ in range(self.dice.between(0, 2)):
                rows.append(Row(name, (order.cells[0], *self.cells(columns, owner)), order.owner))

    def _number_orders(self) -> None:
        """Choose the type of orders' numbers, what the policy calls it, and the first of them."""
        self.numbered = ("BIGINT", "bigint")
        if self.theme == "wide":
            kind = self.more.one(WHOLES)
            self.numbered = (kind.sql, self.more.one(("bigint", "double", "double", "double")))
            self.serial = BIG - self.more.between(0, 3)

    def _visits(self) -> None:
        columns = self.columns(self.dice.between(3, 6))
        self.table("visits", [("n", "BIGINT", "bigint")], columns, ["unit: visit"], key=[])
        rows = self.rows.setdefault("visits", [])
        for unit in range(3 * self.units):
            rows.append(Row("visits", (str(unit % 7), *self.cells(columns, unit)), f"visit:{unit}"))

    def _stock(self) -> None:
        """A table of another kind of unit: its rows stay, whoever is missing."""
        columns = self.columns(2)
        self.second = ", item: {table: stock, key: row}"
        self.table("stock", [("n", "BIGINT", "bigint")], columns, ["unit: item"])
        rows = self.rows.setdefault("stock", [])
        for item in range(1, self.units):
            rows.append(Row("stock", (str(item % 5), *self.cells(columns, item)), f"item:{item}"))

    def _places(self) -> None:
        self.ddl.append("CREATE TABLE places (code VARCHAR, name VARCHAR, size INTEGER)")
        self.policy.append("  places: {public: true, key: code}\n")
        self.tables.append(
            Listed("places", (("code", "text"), ("name", "text"), ("size", "number")))
        )
        for number, code in enumerate(("web", "shop", "phone", "fax")):
            self.rows.setdefault("places", []).append(
                Row("places", (f"'{code}'", f"'{code[:1].upper()}{number % 2}'", str(number)))
            )

        self.ddl.append("CREATE TABLE goods (code VARCHAR, label VARCHAR)")
        self.policy.append("  goods: {public: true}\n")
        self.rows["goods"] = [
            Row("goods", (f"'{code}'", f"'{code} {number}'"))
            for code in ("web", "x")
            for number in range(4)
        ]

    def _placed(self, rows: list[Row]) -> list[Row]:
        """The rows in an order in which the victim stands first, last, or somewhere."""
        others = self.dice.mixed([r for r in rows if r.owner != f"{self.unit}:{VICTIM}"])
        own = [r for r in rows if r.owner == f"{self.unit}:{VICTIM}"]
        at = self.dice.one([0, len(others), self.dice.number(len(others) + 1)])
        return others[:at] + own + others[at:]
