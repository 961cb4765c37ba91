"""The shortest derivations of a grammar: a statement for each production of it."""

from __future__ import annotations

from lark import Lark
from lark.grammar import Rule, Symbol

Symbols = tuple[Symbol, ...]


class Derivations:
    """What each symbol can be at its shortest, and the shortest way from the start to it."""

    def __init__(self, lark: Lark, start: str) -> None:
        self.rules: list[Rule] = lark.rules
        self.shortest: dict[str, Symbols] = {}
        self._shorten()
        self.contexts: dict[str, tuple[Symbols, Symbols]] = {start: ((), ())}
        self._reach()

    def spelled(self, symbols: Symbols) -> Symbols:
        """The symbols as terminals, each nonterminal at its shortest."""
        parts = [(s,) if s.is_term else self.shortest[s.name] for s in symbols]
        return tuple(terminal for part in parts for terminal in part)

    def around(self, origin: Symbol) -> tuple[Symbols, Symbols]:
        """The terminals before and after a nonterminal in a whole statement."""
        return self.contexts[origin.name]

    def terminals(self, symbol: Symbol) -> set[str]:
        """The names of all terminals that can stand in what the symbol derives."""
        found: set[str] = set()
        seen, stack = {symbol.name}, [symbol.name]
        while stack:
            name = stack.pop()
            for part in (s for r in self.rules if r.origin.name == name for s in r.expansion):
                if part.is_term:
                    found.add(part.name)
                elif part.name not in seen:
                    seen.add(part.name)
                    stack.append(part.name)
        return found

    def _shorten(self) -> None:
        changed = True
        while changed:
            changed = False
            for rule in self.rules:
                if all(s.is_term or s.name in self.shortest for s in rule.expansion):
                    found, known = self.spelled(tuple(rule.expansion)), self.shortest
                    name = rule.origin.name
                    if name not in known or len(found) < len(known[name]):
                        known[name] = found
                        changed = True

    def _reach(self) -> None:
        changed = True
        while changed:
            changed = False
            for rule in self.rules:
                if rule.origin.name in self.contexts:
                    changed = self._through(rule) or changed

    def _through(self, rule: Rule) -> bool:
        before, after = self.contexts[rule.origin.name]
        changed = False
        for place, symbol in enumerate(rule.expansion):
            if symbol.is_term:
                continue
            left = before + self.spelled(tuple(rule.expansion[:place]))
            right = self.spelled(tuple(rule.expansion[place + 1 :])) + after
            known = self.contexts.get(symbol.name)
            if known is None or len(left) + len(right) < len(known[0]) + len(known[1]):
                self.contexts[symbol.name] = (left, right)
                changed = True
        return changed
