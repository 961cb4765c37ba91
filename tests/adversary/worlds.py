"""Policies and databases: everything that a policy may say, and data that does not care.

A world has units in one of four forms: keys on flat tables, keys of two columns, a table of units
with tables that lead to it, or rows. One unit, the victim, has the worst values, more rows and more
groups than any policy allows, and stands first, last or somewhere among the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.adversary.dice import Dice
from tests.adversary.model import Role, Row, World
from tests.adversary.types import KEYS, KINDS, UNREAD, Family, Kind, key

POLICY_TYPES = {
    "BIGINT": "bigint", "INTEGER": "integer", "VARCHAR": "text", "UUID": "uuid", "DATE": "date",
    "TIMESTAMP": "timestamp",
}  # fmt: skip
VICTIM = 0
COPIED = 30
"""Worlds in a hundred that have prepared copies."""


@dataclass(frozen=True, slots=True)
class Named:
    """A column by its name, with its kind, what is declared of it, and whether it may be NULL."""

    name: str
    kind: Kind
    declared: str = ""
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A table as an analyst knows it: its columns by family, the unit's key on it, its parent."""

    name: str
    columns: tuple[tuple[str, Family], ...]
    key: tuple[str, ...] = ()
    parent: tuple[str, str] | None = None
    """The table that it leads to and the column that both have."""

    def of(self, *families: Family) -> list[str]:
        """The columns of these families."""
        return [name for name, family in self.columns if family in families]


@dataclass(frozen=True, slots=True)
class Ground:
    """A world, and what an analyst knows of it."""

    world: World
    tables: tuple[Listed, ...]
    victim: str


def make(seed: str, *, tame: bool = False, beyond: bool = False, epsilon: str = "") -> Ground:
    """The world of a seed. A tame one keeps every declaration, so that nothing is cut.

    ``beyond``: but for numbers with a range, of which some are outside it, or none at all.
    """
    dice = Dice(seed)
    form = dice.one(["flat", "flat", "composite", "parent", "parent", "row"])
    maker = _Maker(dice, tame, form, beyond)
    return maker.ground(seed, epsilon)


class _Maker:
    """Makes one world; what was chosen is kept here."""

    def __init__(self, dice: Dice, tame: bool, form: str, beyond: bool = False) -> None:
        self.dice, self.tame, self.form, self.beyond = dice, tame, form, beyond
        self.key = dice.one(KEYS)
        self.units = dice.between(8, 30)
        self.most = dice.one([1, 2, 3, 5, 20]) if not tame else 50
        self.ddl: list[str] = []
        self.policy: list[str] = []
        self.tables: list[Listed] = []
        self.rows: dict[str, list[Row]] = {}
        self.sound = True
        self.serial = 0
        self.loud = dice.chance(50)
        """Whether all rows of the victim have one value in a column, which moves sums the most."""
        self.said: dict[Named, str] = {}
        self.second = ""
        """Another kind of unit, as the policy says it."""

    def ground(self, seed: str, epsilon: str) -> Ground:
        if self.form in ("flat", "composite"):
            self._flat("events")
            if self.dice.chance(60):
                self._flat("logins")
        elif self.form == "parent":
            self._people()
            self._child("orders", "people", "id")
            if self.dice.chance(40):
                self._child("lines", "orders", "order_id")
        else:
            self._visits()
        if self.dice.chance(15) and not self.tame:
            self._stock()
        self._places()
        rows = [row for table in self.rows.values() for row in self._placed(table)]
        policy = self._head(epsilon) + "".join(self.policy) + self._views()
        world = World(
            f"{self.form}-{seed}", policy, tuple(self.ddl), tuple(rows), (Role("analyst"),),
            group_size=self.size, sound=self.sound, prepared=Dice(f"copies {seed}").chance(COPIED),
        )  # fmt: skip
        return Ground(world, tuple(self.tables), f"{self.unit}:{VICTIM}")

    @property
    def unit(self) -> str:
        return "visit" if self.form == "row" else "person"

    def _head(self, epsilon: str) -> str:
        dice = self.dice
        self.size = 1 if self.form == "row" or self.tame else dice.one([1, 1, 1, 2, 3])
        keys = {
            "flat": "key: u", "composite": "key: [u, v]", "parent": "table: people, key: id",
            "row": "table: visits, key: row",
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
        self.tables.append(Listed("seen", table.columns, table.key, table.parent))
        return f"views:\n  seen: SELECT * FROM {table.name} WHERE {column} IS NOT NULL\n"

    def _columns(self, count: int) -> list[Named]:
        found = []
        for number in range(count):
            kind = self.dice.one(KINDS)
            declared = self.dice.one(kind.declared)
            if kind.family == "number" and not declared and self.dice.chance(60):
                declared = kind.declared[0]
            if declared.startswith("values_from") and not kind.sql.startswith(("VARCHAR", "ENUM")):
                declared = ""
            if declared.startswith(("range", "values:")) and self.dice.chance(12) and not self.tame:
                declared += ", extremes: declared"
            found.append(Named(f"c{number}", kind, declared, self.dice.chance(50)))
        if self.dice.chance(30):
            found.append(Named(f"c{count}", self.dice.one(UNREAD)))
        return found

    def _table(
        self, name: str, keys: Sequence[tuple[str, str]], columns: Sequence[Named],
        words: Sequence[str], parent: tuple[str, str] | None = None, key: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Declare a table: ``keys`` are columns before the others, with their types in SQL."""
        listed = [f"{n} {kind}" for n, kind in keys] + [f"{c.name} {c.kind.sql}" for c in columns]
        self.ddl.append(f"CREATE TABLE {name} ({', '.join(listed)})")
        text = [f"  {name}:\n", *(f"    {word}\n" for word in words), "    columns:\n"]
        free = self.form in ("flat", "composite") and not self.tame
        nullable = ", nullable: true" if free else self.dice.one(["", ", identifier: true"])
        text += [f"      {n}: {{type: {POLICY_TYPES[kind]}{nullable}}}\n" for n, kind in keys]
        for column in columns:
            if column.kind.family == "unread":
                continue
            parts = [f'type: "{column.kind.policy}"', column.declared]
            parts.append("nullable: true" if column.nullable else "")
            text.append(f"      {column.name}: {{{', '.join(filter(None, parts))}}}\n")
        self.policy.append("".join(text))
        known = tuple((c.name, c.kind.family) for c in columns if c.kind.family != "unread")
        self.tables.append(Listed(name, known, tuple(key), parent))

    def _cells(self, columns: Sequence[Named], owner: int | None) -> tuple[str, ...]:
        cells = []
        for column in columns:
            if owner == VICTIM and self.loud and not self.tame:
                values = (*column.kind.extreme, *column.kind.plain[:1], *column.kind.plain[-1:] * 2)
                cells.append(self.said.setdefault(column, self.dice.one(values)))
                continue
            chance = self._strange(column) if self.tame else 60 if owner == VICTIM else 4
            values = column.kind.extreme if self.dice.chance(chance) else self._plain(column)
            null = column.nullable and self.dice.chance(12)
            cells.append("NULL" if null else self.dice.one(values))
        return tuple(cells)

    def _strange(self, column: Named) -> int:
        """Values in a hundred of a tame world that are not what is declared."""
        ranged = column.kind.family == "number" and column.declared.startswith("range")
        read = column.kind.sql != "HUGEINT"  # beyond 64 bits a value is read as none
        return 25 if self.beyond and ranged and read else 0

    def _plain(self, column: Named) -> tuple[str, ...]:
        """Ordinary values; those of a tame world keep what is declared."""
        if not self.tame or not column.declared:
            return column.kind.plain
        if column.declared.startswith("values: [0"):
            wanted = column.declared[9:-1].split(", ")
            return tuple(f"CAST({w} AS {column.kind.sql})" for w in wanted)
        low = {"range: [-3, 5]": ("0", "5"), "range: [-1.5, 3.25]": ("0.5", "1.5")}
        if column.declared in low:
            return low[column.declared]
        if column.declared == "range: [0.01, 0.02]":
            return ("0.01", "0.02")
        if "2024-03-01" in column.declared:
            return column.kind.plain[:2]
        if column.declared.startswith(("values: [web", "values_from")):
            return ("'web'", "'shop'", "'phone'")
        return column.kind.plain[:8]

    def _key(self, unit: int) -> tuple[str, ...]:
        found = key(self.key, unit)
        return (found, str(unit % 3)) if self.form == "composite" else (found,)

    def _count(self, unit: int) -> int:
        if unit == VICTIM and not self.tame:
            return self.dice.one(
                [1, self.most, 2 * self.most, 3 * self.most + 1, 3 * self.most + 1]
            )
        return self.dice.between(0 if self.dice.chance(10) else 1, min(6, self.most))

    def _bound(self) -> list[str]:
        words = [f"max_rows_per_unit: {self.most}"]
        if self.dice.chance(15) and not self.tame:
            words.append(f"max_rows_per_group: {self.dice.between(1, self.most)}")
        if self.most == 1 and not self.tame:
            self.sound = False
        return words

    def _flat(self, name: str) -> None:
        keys = [("u", self.key)] + ([("v", "BIGINT")] if self.form == "composite" else [])
        columns = self._columns(self.dice.between(2, 5))
        self._table(
            name, keys, columns, [f"unit: {self.unit}", *self._bound()], key=[k for k, _ in keys]
        )
        rows = self.rows.setdefault(name, [])
        for unit in range(self.units):
            for _ in range(self._count(unit)):
                cells = self._key(unit) + self._cells(columns, unit)
                rows.append(Row(name, cells, f"{self.unit}:{unit}"))
        if not self.tame:
            for _ in range(self.dice.between(0, 3)):
                rows.append(
                    Row(name, ("NULL", *("1",) * (len(keys) - 1), *self._cells(columns, None)))
                )

    def _people(self) -> None:
        columns = self._columns(self.dice.between(1, 4))
        self._table("people", [("id", self.key)], columns, ["unit: person"], key=["id"])
        rows = self.rows.setdefault("people", [])
        for unit in range(self.units):
            copies = 2 if not self.tame and unit == VICTIM and self.dice.chance(15) else 1
            if copies > 1:
                self.sound = False
            for _ in range(copies):
                rows.append(
                    Row("people", self._key(unit) + self._cells(columns, unit), f"person:{unit}")
                )

    def _child(self, name: str, parent: str, link: str) -> None:
        columns = self._columns(self.dice.between(2, 4))
        first = parent == "people"
        here = [("order_id", "BIGINT"), ("id", self.key)] if first else [("order_id", "BIGINT")]
        words = ["unit: person", *(["key: order_id"] if first else [])]
        words.append(f"foreign_keys: [{{columns: [{link}], references: {parent}}}]")
        self._table(
            name,
            here,
            columns,
            [*words, *self._bound()],
            (parent, link),
            key=["id"] if first else [],
        )
        rows = self.rows.setdefault(name, [])
        if not first and self.most < 6:  # orders are multiplied, and nobody counts them
            self.sound = False
        if first:
            for unit in range(self.units):
                for _ in range(self._count(unit)):
                    self.serial += 1
                    cells = (str(self.serial), *self._key(unit), *self._cells(columns, unit))
                    rows.append(Row(name, cells, f"person:{unit}"))
            return
        for order in self.rows["orders"]:
            owner = None if order.owner is None else int(order.owner.partition(":")[2])
            for _ in range(self.dice.between(0, 2)):
                rows.append(Row(name, (order.cells[0], *self._cells(columns, owner)), order.owner))

    def _visits(self) -> None:
        columns = self._columns(self.dice.between(3, 6))
        self._table("visits", [("n", "BIGINT")], columns, ["unit: visit"], key=[])
        rows = self.rows.setdefault("visits", [])
        for unit in range(3 * self.units):
            rows.append(
                Row("visits", (str(unit % 7), *self._cells(columns, unit)), f"visit:{unit}")
            )

    def _stock(self) -> None:
        """A table of another kind of unit: its rows stay, whoever is missing."""
        columns = self._columns(2)
        self.second = ", item: {table: stock, key: row}"
        self._table("stock", [("n", "BIGINT")], columns, ["unit: item"])
        rows = self.rows.setdefault("stock", [])
        for item in range(1, self.units):
            rows.append(Row("stock", (str(item % 5), *self._cells(columns, item)), f"item:{item}"))

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
