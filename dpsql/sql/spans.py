"""The places of syntax-tree nodes in the text of the statement."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.diagnostics.span import Span


def span_of(node: exp.Expr) -> Span | None:
    """The text range of the node: its own, else that of its parts, else its nearest ancestor's."""
    current: exp.Expr | None = node
    while current is not None:
        found = _own(current) or _cover(current)
        if found is not None:
            return found
        current = current.parent
    return None


def has_place(node: exp.Expr) -> bool:
    """Whether the node has a place of its own."""
    return _own(node) is not None


def written_name(node: exp.Expr) -> str:
    """The name that a call was written with, in capitals; the parser keeps only the function."""
    return str(node.meta.get(_WRITTEN, ""))


_WRITTEN = "written"


def _own(node: exp.Expr) -> Span | None:
    start, end = node.meta.get("start"), node.meta.get("end")
    return Span(start, end + 1) if isinstance(start, int) and isinstance(end, int) else None


def _cover(node: exp.Expr) -> Span | None:
    found: Span | None = None
    for part in node.iter_expressions():
        here = _own(part) or _cover(part)
        if here is not None:
            found = here if found is None else found.cover(here)
    return found


def locate(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Write the whole text range of each node into its ``meta``.

    The parser gives places only to names, literals and stars. The brackets and keywords around them
    are found in the tokens. A node with no place inside (NULL, TRUE) gets none.
    """
    _Locator(tokens).visit(tree)


Range = tuple[int, int]
"""The indexes of the first and the last token."""

_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_CALLS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Cast: ("CAST",),
    exp.TryCast: ("TRY_CAST", "CAST"),
    exp.Extract: ("EXTRACT", "DATE_PART"),
    exp.Trim: ("TRIM", "LTRIM", "RTRIM", "BTRIM"),
    exp.Substring: ("SUBSTRING", "SUBSTR"),
    exp.StrPosition: ("POSITION", "STRPOS"),
    exp.If: ("IF", "IIF"),
    exp.ArgMax: ("ARG_MAX", "ARGMAX", "MAX_BY"),
    exp.ArgMin: ("ARG_MIN", "ARGMIN", "MIN_BY"),
    exp.GroupConcat: ("STRING_AGG", "GROUP_CONCAT", "LISTAGG"),
}
"""Functions with special syntax, for whose names the parser gives no place."""
_LEADING: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: ("SELECT", "DISTINCT", "ALL"),
    exp.From: ("FROM",),
    exp.Where: ("WHERE",),
    exp.Group: ("GROUP BY",),
    exp.Having: ("HAVING",),
    exp.Qualify: ("QUALIFY",),
    exp.Order: ("ORDER BY",),
    exp.Limit: ("LIMIT",),
    exp.Offset: ("OFFSET",),
    exp.Join: ("JOIN", "INNER", "OUTER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL"),
    exp.Values: ("VALUES",),
    exp.Not: ("NOT",),
    exp.Neg: ("-",),
    exp.Interval: ("INTERVAL",),
    exp.Case: ("CASE", "WHEN"),
}
"""Words before a node that belong to it."""
_TYPE_WORDS = ("PRECISION", "VARYING", "WITH", "WITHOUT", "TIME", "ZONE")


class _Locator:
    """The tokens of one text, with the partner of each bracket."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = {token.start: index for index, token in enumerate(tokens)}
        self.partner: dict[int, int] = {}
        opened: list[int] = []
        for index, token in enumerate(tokens):
            if token.token_type in _OPEN:
                opened.append(index)
            elif token.token_type in _CLOSE and opened:
                first = opened.pop()
                self.partner[first], self.partner[index] = index, first

    def word(self, index: int) -> str:
        """The text of a token in capitals; "" for quoted names, strings, and outside the text."""
        if not 0 <= index < len(self.tokens):
            return ""
        token = self.tokens[index]
        quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
        return "" if quoted else str(token.text).upper()

    def visit(self, node: exp.Expr) -> Range | None:
        """Set the ranges of the nodes below and then of the node; returns its range."""
        found: Range | None = None
        own = node.meta.get("start")
        if own in self.at:
            found = (self.at[own], self.at[own])
        for part in node.iter_expressions():
            here = self.visit(part)
            if here is not None:
                found = here if found is None else (min(found[0], here[0]), max(found[1], here[1]))
        if found is None:
            return None
        first, last = self.balanced(self.widened(node, *self.balanced(found)))
        if isinstance(node, exp.Func) and self.partner.get(first + 1) == last:
            node.meta[_WRITTEN] = self.word(first)
        node.meta["start"], node.meta["end"] = self.tokens[first].start, self.tokens[last].end
        return first, last

    def balanced(self, found: Range) -> Range:
        """The range, extended by the partners of the brackets in it."""
        first, last = min(found), max(found)  # words that belong to a node may stand inside it
        partners = [self.partner.get(index, index) for index in range(first, last + 1)]
        return min(first, *partners), max(last, *partners)

    def widened(self, node: exp.Expr, first: int, last: int) -> Range:
        """The range, extended by the words that belong to a node of this class."""
        leading = _LEADING.get(type(node), ())
        while self.word(first - 1) in leading and leading:
            first -= 1
        match node:
            case exp.Case():
                last = self._end_of_case(first, last)
            case exp.Paren() | exp.Tuple() | exp.Subquery():
                if self.partner.get(first - 1) == last + 1:
                    first, last = first - 1, last + 1
            case exp.Is():
                last = self._after(last, ("IS", "NOT", "NULL", "TRUE", "FALSE", "UNKNOWN"))
            case exp.Ordered():
                last = self._after(last, ("ASC", "DESC", "NULLS", "FIRST", "LAST"))
            case exp.Window() | exp.In() if self.word(last + 1) in ("OVER", "IN"):
                last = self.partner.get(last + 2, last + 2)
            case exp.Func() if type(node) in _CALLS:
                first, last = self._call(_CALLS[type(node)], first, last)
            case exp.Func() if first == last and self.word(last + 1) == "(":
                last = self.partner.get(last + 1, last)
        return first, min(last, len(self.tokens) - 1)

    def _after(self, last: int, words: tuple[str, ...]) -> int:
        while self.word(last + 1) in words:
            last += 1
        return last

    def _end_of_case(self, first: int, last: int) -> int:
        depth = 0
        for index in range(first, len(self.tokens)):
            depth += {"CASE": 1, "END": -1}.get(self.word(index), 0)
            if depth == 0:
                return index
        return last

    def _call(self, names: tuple[str, ...], first: int, last: int) -> Range:
        index = first - 1
        while index >= 0 and self.tokens[index].token_type not in _OPEN:
            index = self.partner.get(index, index) - 1
        if index > 0 and self.word(index - 1) in names:
            return index - 1, max(last, self.partner.get(index, last))
        if self.word(last + 1) == "::":
            return first, self._after(last + 2, _TYPE_WORDS)
        typed = first == last and self.tokens[first].token_type == TokenType.STRING
        return (first - 1 if typed and first else first), last
