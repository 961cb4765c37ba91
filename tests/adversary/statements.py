"""Statements about a world, and series of them, drawn from the templates."""

from __future__ import annotations

import re

from tests.adversary.dice import Dice
from tests.adversary.grammar import SETTINGS, STATEMENTS
from tests.adversary.maker import Listed
from tests.adversary.model import Step
from tests.adversary.worlds import Ground

DEEP = 6
MET = 35
"""Statements in a hundred that join the public table of rates, where a table has its keys."""
LED = 30
"""Statements in a hundred that join the table that a table leads to, where it leads to one."""
_PLACE = re.compile(r"\{(other:)?(\w+)\}")
FALLBACKS = {
    "num_col": "1", "text_col": "'web'", "day_col": "DATE '2024-06-01'", "truth_col": "TRUE",
    "any_col": "'one'", "still_col": "'one'",
}  # fmt: skip


class Writer:
    """Writes statements about the tables of one world."""

    def __init__(
        self, ground: Ground, dice: Dice, templates: dict[str, tuple[str, ...]] = STATEMENTS
    ) -> None:
        """Take the private tables: they are what is attacked."""
        self.dice, self.templates = dice, templates
        self.private = [t for t in ground.tables if t.name != "places"]
        self.table = self.other = self.private[0]

    def statement(self) -> str:
        """One statement."""
        self.table = self.dice.one(self.private)
        self.other = self.dice.one(self.private)
        if self.table.refers and "met" in self.templates and self.dice.chance(MET):
            return self.expand("{met}", 0)
        if self.table.parent and "led" in self.templates and self.dice.chance(LED):
            name = self.table.parent[0]
            self.other = next((t for t in self.private if t.name == name), self.other)
            return self.expand("{led}", 0)
        return self.expand("{statement}", 0)

    def step(self) -> Step:
        """A question, a look at its plan, or a setting."""
        thrown = self.dice.number(100)
        if thrown < 12:
            return Step("set", self.dice.one(SETTINGS))
        if thrown < 14:
            return Step("reconnect")
        text = self.statement()
        bound = [v for v in ("'web'", "4.5", "100") if v in text and self.dice.chance(30)][:1]
        parameters = tuple(v.strip("'") if v[0] == "'" else float(v) for v in bound)
        for constant in bound:
            text = text.replace(constant, "?", 1)
        return Step("explain" if thrown < 22 else "ask", text, parameters)

    def expand(self, template: str, depth: int) -> str:
        """The template with all its symbols filled in."""
        return _PLACE.sub(lambda found: self._filled(found[2], bool(found[1]), depth), template)

    def _filled(self, symbol: str, other: bool, depth: int) -> str:
        table = self.other if other else self.table
        if symbol in self.templates:
            choices = self.templates[symbol]
            if depth > DEEP:  # the first ones do not lead on
                choices = choices[:1]
            return self.expand(self.dice.one(choices), depth + 1)
        return self._name(symbol, table)

    def _name(self, symbol: str, table: Listed) -> str:
        keys = list(table.key) or ["n"]
        match symbol:
            case "T":
                return table.name
            case "ref_col":
                return table.refers
            case "keys":
                return ", ".join(keys)
            case "key_col" | "first_key":
                return keys[0]
            case "equal_keys":
                return self._equal(self.table.name, "o")
            case "self_keys":
                return self._equal("a", "b")
        families = {
            "num_col": ("number",), "text_col": ("text",), "day_col": ("day",), "truth_col": ("truth",),
            "any_col": ("number", "text", "day", "truth", "uuid"),
            "still_col": ("text", "day", "truth", "uuid"),
        }  # fmt: skip
        found = table.of(*families[symbol])  # type: ignore[arg-type]
        return self.dice.one(found) if found else FALLBACKS[symbol]

    def _equal(self, one: str, other: str) -> str:
        """Equal keys, by the unit or by the way that a table leads."""
        if self.table.parent and self.other.name == self.table.parent[0]:
            column = self.table.parent[1]
            return f"{one}.{column} = {other}.{column}"
        keys = self.table.key or ("n",)
        return " AND ".join(f"{one}.{key} = {other}.{key}" for key in keys)


def series(ground: Ground, dice: Dice, count: int) -> tuple[Step, ...]:
    """That many steps; some are asked twice, so that stored answers are met."""
    writer, steps = Writer(ground, dice), list[Step]()
    for _ in range(count):
        asked = [step for step in steps if step.act == "ask"]
        if asked and dice.chance(8):
            steps.append(dice.one(asked))
        else:
            steps.append(writer.step())
    return tuple(steps)
