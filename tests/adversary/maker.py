"""What all worlds are made of: tables with their declarations, keys, and cells of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.adversary.dice import Dice
from tests.adversary.model import Row
from tests.adversary.types import CLOSE, KEYS, KINDS, UNREAD, Family, Kind

VICTIM = 0
Theme = Literal["plain", "close", "rates", "wide", "earlier"]
"""What is special of a world beside its values: keys of units that stand close together, such keys of a
public table, numbers of orders above 2^53, or another database that lay there before. More than one of
these would often be refused at once."""
THEMES: dict[str, dict[Theme, int]] = {
    "parent": {"plain": 17, "close": 30, "rates": 18, "wide": 15, "earlier": 20},
    "flat": {"plain": 42, "close": 8, "rates": 35, "earlier": 15},
    "composite": {"plain": 42, "close": 8, "rates": 35, "earlier": 15},
    "row": {"plain": 50, "rates": 35, "earlier": 15},
    "tame parent": {"plain": 35, "close": 35, "earlier": 30},
    "tame": {"plain": 65, "close": 5, "earlier": 30},
    "views": {"plain": 100},
}
"""How often of a hundred times."""
STEADY, MILD = 20, 15
"""Worlds in a hundred in which all rows of a unit have the same values, and in which all are ordinary."""


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
    refers: str = ""
    """Its column with keys of the public table of rates."""

    def of(self, *families: Family) -> list[str]:
        """The columns of these families."""
        return [name for name, family in self.columns if family in families]


class Maker:
    """Makes one world; what was chosen is kept here.

    ``more`` are choices that came later: so those of ``dice`` stay what they were.
    """

    def __init__(self, dice: Dice, tame: bool, form: str, beyond: bool = False) -> None:
        """Choose what holds for the whole world."""
        self.dice, self.more = dice, Dice(f"more {dice.seed}")
        self.tame, self.form, self.beyond = tame, form, beyond
        kinds = THEMES.get(f"tame {form}", THEMES["tame"]) if tame else THEMES[form]
        self.theme = self.more.one([theme for theme, times in kinds.items() for _ in range(times)])
        self.key = dice.one(KEYS)
        self.units = dice.between(8, 30)
        self.most = dice.one([1, 2, 3, 5, 20]) if not tame else 50
        if self.theme == "close":
            self.key = self.more.one(CLOSE)
            self.most = self.more.between(2, 3) if not tame else self.most
        if self.theme == "earlier" and not tame and self.more.chance(60):
            self.most = 1
        self.modest = (
            self.most == 1
            and self.theme != "earlier"
            and self.more.chance(50 if self.theme != "rates" else 90)
        )
        """Whether the victim has no more rows than are declared, where that is verified."""
        self.ddl: list[str] = []
        self.policy: list[str] = []
        self.tables: list[Listed] = []
        self.rows: dict[str, list[Row]] = {}
        self.sound = True
        self.loud = dice.chance(50)
        """Whether all rows of the victim have one value in a column, which moves sums the most."""
        self.said: dict[Named, str] = {}
        self.mild = self.more.chance(80 if self.theme == "close" else MILD)
        """Whether the victim has ordinary values, so that it is in the groups of others."""
        self.steady = self.more.chance(60 if self.theme == "close" else STEADY) and not tame
        """Whether all rows of any unit have one value in a column, so that units differ the most."""
        self.kept: dict[tuple[Named, int], str] = {}
        self.refers: Named | None = None
        """The column of private tables with keys of the public table of rates."""
        self.second = ""
        """Another kind of unit, as the policy says it."""
        self.views: list[str] = []
        self.readings: list[tuple[str, str]] = []

    @property
    def unit(self) -> str:
        """The kind of unit that is attacked."""
        return "visit" if self.form == "row" else "person"

    def columns(self, count: int) -> list[Named]:
        """So many columns, and sometimes one that no policy can name."""
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
        if self.refers is not None:
            found.append(self.refers)
        return found

    def table(
        self, name: str, keys: Sequence[tuple[str, str, str]], columns: Sequence[Named],
        words: Sequence[str], parent: tuple[str, str] | None = None, key: Sequence[str] = (),
        stored: str = "",
    ) -> None:  # fmt: skip
        """Declare a table: ``keys`` are columns before the others, with their types in SQL and policy.

        ``stored`` is what SQL calls it if it is a view of the policy's table.
        """
        if not stored:
            listed = [f"{n} {kind}" for n, kind, _ in keys]
            listed += [f"{c.name} {c.kind.sql}" for c in columns]
            self.ddl.append(f"CREATE TABLE {name} ({', '.join(listed)})")
        text = [f"  {name}:\n", *(f"    {word}\n" for word in words), "    columns:\n"]
        free = self.form in ("flat", "composite") and not self.tame
        nullable = ", nullable: true" if free else self.dice.one(["", ", identifier: true"])
        text += [f'      {n}: {{type: "{called}"{nullable}}}\n' for n, _, called in keys]
        for column in columns:
            if column.kind.family == "unread":
                continue
            parts = [f'type: "{column.kind.policy}"', column.declared]
            parts.append("nullable: true" if column.nullable else "")
            text.append(f"      {column.name}: {{{', '.join(filter(None, parts))}}}\n")
        self.policy.append("".join(text))
        known = tuple((c.name, c.kind.family) for c in columns if c.kind.family != "unread")
        refers = self.refers.name if self.refers in columns and self.refers is not None else ""
        self.tables.append(Listed(name, known, tuple(key), parent, refers))

    def cells(self, columns: Sequence[Named], owner: int | None) -> tuple[str, ...]:
        """A row's values: those of the victim are often the worst, those of others seldom."""
        cells = []
        for column in columns:
            if owner == VICTIM and self.mild and not self.tame:
                value = self.more.one(column.kind.plain)
                cells.append(self.said.setdefault(column, value) if self.loud else value)
                continue
            if owner == VICTIM and self.loud and not self.tame:
                values = (*column.kind.extreme, *column.kind.plain[:1], *column.kind.plain[-1:] * 2)
                cells.append(self.said.setdefault(column, self.dice.one(values)))
                continue
            if self.steady and owner not in (None, VICTIM):
                values = (*column.kind.plain, *(column.kind.plain[0], column.kind.plain[-1]) * 3)
                cells.append(self.kept.setdefault((column, owner), self.more.one(values)))
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

    def keys(self, unit: int) -> tuple[str, ...]:
        """A unit's key."""
        found = self.key.value(unit)
        return (found, str(unit % 3)) if self.form == "composite" else (found,)

    def count(self, unit: int) -> int:
        """How many rows a unit has; the victim may have more than is declared."""
        if unit == VICTIM and self.modest:
            return 1
        if unit == VICTIM and not self.tame:
            return self.dice.one(
                [1, self.most, 2 * self.most, 3 * self.most + 1, 3 * self.most + 1]
            )
        return self.dice.between(0 if self.dice.chance(10) else 1, min(6, self.most))

    def bound(self) -> list[str]:
        """How many rows of a unit count, as a policy says it."""
        words = [f"max_rows_per_unit: {self.most}"]
        if self.dice.chance(15) and not self.tame:
            words.append(f"max_rows_per_group: {self.dice.between(1, self.most)}")
        if self.most == 1 and not self.tame:
            self.sound = False
        return words
