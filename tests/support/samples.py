"""Statements drawn from the grammar, over one table at a time so that names are in reach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import PatternStr, TerminalDef
from productions import Derivations

GRAMMAR = Path(__file__).parent.parent.parent / "grammar"
TABLES = ("customers", "orders", "visits")
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "customers": {"NUMBER_COLUMN": ("age",), "TEXT_COLUMN": ("country", "city")},
    "orders": {
        "NUMBER_COLUMN": ("amount",),
        "TEXT_COLUMN": ("channel",),
        "DATE_COLUMN": ("placed",),
    },
    "visits": {
        "NUMBER_COLUMN": ("seconds",),
        "TEXT_COLUMN": ("page",),
        "TIME_COLUMN": ("started",),
    },
}
"""The columns of shop.yaml, by the terminal that stands for them."""
_TODAY = {"DATE_COLUMN": "CURRENT_DATE", "TIME_COLUMN": "CURRENT_TIMESTAMP"}
_PADS = (" {} ", " {} ", "\n{}  ")
_COMMENTS = (" {} /* so */ ", " {} -- so\n ")  # not inside GROUP BY, which the parser reads whole


@cache
def grammar(name: str, start: str = "start") -> Lark:
    """A grammar of the folder, as a parser."""
    path = str(GRAMMAR / name)
    return Lark.open(path, parser="lalr", start=start, maybe_placeholders=False)


@cache
def statements(name: str, table: str, start: str = "start") -> st.SearchStrategy[str]:
    """Statements over one table.

    ``from_lark`` puts nothing between most tokens, so each terminal is drawn with its own space.
    """
    lark = grammar(name, start)
    explicit = {t.name: _terminal(t, table) for t in lark.terminals}
    return from_lark(lark, start=start, explicit=explicit)


@cache
def misses(table: str) -> st.SearchStrategy[tuple[str, frozenset[str]]]:
    """A near miss over one table, and the codes that its alternative is named for."""
    lark = grammar("near_misses.lark", "near_miss")
    derivations = Derivations(lark, "near_miss")
    rules = [rule for rule in lark.rules if codes(rule)]
    explicit = {t.name: _terminal(t, table) for t in lark.terminals}

    drawn = dict(explicit)
    for symbol in {s for rule in rules for s in rule.expansion if not s.is_term}:
        known = {name: explicit[name] for name in derivations.terminals(symbol)}
        drawn[symbol.name] = from_lark(lark, start=symbol.name, explicit=known)

    def whole(rule: Rule) -> st.SearchStrategy[tuple[str, frozenset[str]]]:
        before, after = derivations.around(rule.origin)
        parts = [drawn[symbol.name] for symbol in (*before, *rule.expansion, *after)]
        return st.tuples(*parts).map(lambda texts: ("".join(texts), codes(rule)))

    return st.sampled_from(rules).flatmap(whole)


def codes(rule: Rule) -> frozenset[str]:
    """The codes that a near miss is named for."""
    return frozenset(f"DP{number}" for number in re.findall(r"dp(\d{3})", rule.alias or ""))


def simplest(name: str, table: str, start: str = "start") -> Iterator[tuple[Rule, str]]:
    """For each production of a grammar the shortest statement that uses it."""
    lark = grammar(name, start)
    derivations = Derivations(lark, start)
    texts = {t.name: _examples(t, table) for t in lark.terminals}
    for rule in lark.rules:
        before, after = derivations.around(rule.origin)
        spelled = [texts[t.name] for t in derivations.spelled((*before, *rule.expansion, *after))]
        for turn in range(max(len(choices) for choices in spelled)):
            yield rule, "  ".join(choices[turn % len(choices)] for choices in spelled)


_EXAMPLES = {
    "NUMBER": "3", "POSITIVE": "4", "DIGIT": "2", "FRACTION": "0.9", "TEXT": "'DE'", "PATTERN": "'a%'",
    "DAY": "'2025-02-03'", "SPAN": "'3 days'", "PART": "month", "CUT": "'month'", "ZONE": "'Europe/Berlin'",
        "PUBLIC_TEXT": "name", "PUBLIC_NUMBER": "inhabitants", "PUBLIC_TABLE": "countries",
    "KEY_COLUMN": "customer_id", "IDENTIFIER_COLUMN": "email",
}  # fmt: skip


_SIGNS = {
    "ORDER_SIGN": ["<", "<=", ">", ">="],
    "EQUAL_SIGN": ["=", "<>", "!="],
    "SUM_SIGN": ["+", "-"],
    "PRODUCT_SIGN": ["*", "/", "%"],
}


def _examples(terminal: TerminalDef, table: str) -> list[str]:
    name = terminal.name.removeprefix("dialect__")
    words = _words(name, table)
    if words is not None:
        return words[:1]
    if isinstance(terminal.pattern, PatternStr):
        return [terminal.pattern.value]
    return _SIGNS.get(name, [_EXAMPLES.get(name, " ")])


def _terminal(terminal: TerminalDef, table: str) -> st.SearchStrategy[str]:
    name, pattern = terminal.name.removeprefix("dialect__"), terminal.pattern
    words = _words(name, table)
    if name == "COMMENT" or name.startswith("__IGNORE"):
        return st.just(" ")
    if words is None and isinstance(pattern, PatternStr):
        words = [pattern.value.upper(), pattern.value.lower(), pattern.value]
        words = words if "i" in pattern.flags else [pattern.value]
    if words is not None:
        pads = (*_PADS, *_COMMENTS) if name == "COMMA" else _PADS
        return st.sampled_from([pad.format(word) for word in words for pad in pads])
    drawn = st.from_regex(pattern.to_regexp(), fullmatch=True, alphabet=_ALPHABET)
    return drawn.map(" {} ".format)


_ALPHABET = st.characters(codec="utf-8", exclude_characters="\x00")


def _words(name: str, table: str) -> list[str] | None:
    if name in _TODAY and name not in COLUMNS[table]:
        return [_TODAY[name]]
    if name == "TABLE":
        return _spelled((table,))
    if name == "OTHER_TABLE":
        return _spelled(tuple(t for t in TABLES if t != table))
    if name in COLUMNS[table]:
        return _spelled(COLUMNS[table][name])
    return None


def _spelled(names: tuple[str, ...]) -> list[str]:
    return [spelling for n in names for spelling in (n, n, n.upper(), f'"{n}"')]
