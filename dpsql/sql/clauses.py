"""BigQuery's syntax of differential privacy: cut out of the tokens, then attached to the tree.

The parser knows neither ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...)`` nor ``SUM(x,
contribution_bounds_per_row => (0, 10))``. Both are removed from the tokens before parsing, so all
places still point into the analyst's text. After parsing, a clause is attached to the SELECT whose
keyword it followed, and named arguments are attached to the call that they were in. A clause or an
argument without such a node is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.ir.privacy_clause import Bounds, Clause, Given, bounds, clause
from dpsql.sql.nodes import is_aggregate_call

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET)
_MARK = "dpsql_clause_"
CLAUSE, BOUNDS = "privacy", "bounds"
"""The keys of a node's ``meta`` for its ``Clause`` and its ``Bounds``."""


@dataclass(slots=True)
class Taken:
    """The remaining tokens, and the clauses and arguments that were removed."""

    tokens: list[Token]
    clauses: dict[int, Clause] = field(default_factory=dict)
    """The clauses, by the index in ``tokens`` of the SELECT that each followed."""
    calls: dict[tuple[int, int], Bounds] = field(default_factory=dict)
    """The bounds, by the start and end of their call in the text."""

    def marked(self) -> list[Token]:
        """The tokens for the parser, with a hint after each SELECT that had a clause."""
        found: list[Token] = []
        for index, token in enumerate(self.tokens):
            found.append(token)
            if index in self.clauses:
                place = {"line": token.line, "col": token.col, "start": token.start}
                words = [f"{_MARK}{index}"]
                found.append(Token(TokenType.HINT, "/*+", end=token.end, comments=words, **place))
        return found


def take(tokens: Sequence[Token], text: str) -> Taken:
    """Cut clauses and named arguments out of a statement's tokens."""
    cutter = _Cutter(list(tokens), text)
    taken = Taken([])
    while cutter.at < len(cutter.tokens):
        if cutter.starts_clause():
            taken.clauses[len(taken.tokens) - 1] = cutter.clause()
        elif cutter.starts_arguments():
            cutter.arguments(taken)
        else:
            taken.tokens.append(cutter.tokens[cutter.at])
            cutter.at += 1
    hint = next((t for t in tokens if t.token_type is TokenType.HINT), None)
    if taken.clauses and hint is not None:
        raise Refused(_hinted(Span(hint.start, hint.end + 1)))
    return taken


def attach_clauses(tree: exp.Expr, taken: Taken) -> None:
    """Attach each clause to its SELECT, and remove the hint that marked the SELECT."""
    left = dict(taken.clauses)
    for select in list(tree.find_all(exp.Select)) if left else []:
        hint = select.args.get("hint")
        names = [] if hint is None else [e.name for e in hint.expressions]
        if len(names) == 1 and names[0].lower().startswith(_MARK):
            select.set("hint", None)
            select.meta[CLAUSE] = left.pop(int(names[0].lower().removeprefix(_MARK)))
    for lost in left.values():
        raise Refused(_nowhere(lost.terms.span))


def attach_bounds(tree: exp.Expr, taken: Taken) -> None:
    """Attach bounds to their calls; the nodes must already have their places."""
    left = dict(taken.calls)
    for call in list(tree.find_all(exp.Func)) if left else []:
        place = call.meta.get("start"), call.meta.get("end")
        aggregate = isinstance(call, exp.AggFunc) or is_aggregate_call(call)
        if place in left and aggregate and not _windowed(call):
            call.meta[BOUNDS] = left.pop(place)
    for lost in left.values():
        raise Refused(_no_aggregate(lost.span))


def clause_of(select: exp.Expr) -> Clause | None:
    """The clause of a SELECT, or None."""
    found = select.meta.get(CLAUSE)
    return found if isinstance(found, Clause) else None


def bounds_of(call: exp.Expr) -> Bounds | None:
    """The named arguments of an aggregate call, or None."""
    found = call.meta.get(BOUNDS)
    return found if isinstance(found, Bounds) else None


def move_clause(node: exp.Expr, place: Span | None) -> None:
    """Give the clause and the bounds of the node another place."""
    clause, bounds = clause_of(node), bounds_of(node)
    if clause is not None:
        terms = replace(clause.terms, span=place)
        node.meta[CLAUSE] = replace(clause, terms=terms, unit_span=place)
    if bounds is not None:
        node.meta[BOUNDS] = replace(bounds, span=place)


def _windowed(call: exp.Expr) -> bool:
    parent = call.parent
    while isinstance(parent, exp.Filter | exp.WithinGroup):
        parent = parent.parent
    return isinstance(parent, exp.Window)


@dataclass(slots=True)
class _Cutter:
    tokens: list[Token]
    text: str
    at: int = 0
    opened: list[int] = field(default_factory=list)

    def word(self, index: int) -> str:
        return str(self.tokens[index].text).upper() if index < len(self.tokens) else ""

    def starts_clause(self) -> bool:
        """Whether ``WITH DIFFERENTIAL_PRIVACY`` begins here, after SELECT."""
        behind = self.at > 0 and self.tokens[self.at - 1].token_type is TokenType.SELECT
        return (
            behind
            and self.tokens[self.at].token_type is TokenType.WITH
            and self.word(self.at + 1) == "DIFFERENTIAL_PRIVACY"
        )

    def clause(self) -> Clause:
        """Read the clause that begins here."""
        first = self.at
        self.at += 2
        options: list[Given] = []
        if self.word(self.at) == "OPTIONS" and self.word(self.at + 1) == "(":
            last = self.partner(self.at + 1)
            parts = self.parts(self.at + 2, last) if last > self.at + 2 else []
            options = [self.given(part, TokenType.EQ) for part in parts]
            self.at = last + 1
        place = self.span(first, self.at - 1)
        return clause(options, place)

    def starts_arguments(self) -> bool:
        """Whether ``, name =>`` begins here."""
        nth = self.at + 2
        comma = self.tokens[self.at].token_type is TokenType.COMMA
        return comma and nth < len(self.tokens) and self.tokens[nth].token_type is TokenType.FARROW

    def arguments(self, taken: Taken) -> None:
        """Read the named arguments from here to the end of the call."""
        last = self.closing()
        given = [self.given(p, TokenType.FARROW) for p in self.parts(self.at + 1, last)]
        name = self.called(taken.tokens)
        end = self.tokens[last].end
        start = given[0].span.start if name is None else name.start
        taken.calls[start, end] = bounds(given)
        self.at = last

    def called(self, before: list[Token]) -> Token | None:
        """The token of the function's name, of the call whose arguments end here."""
        depth = 0
        for index in range(len(before) - 1, 0, -1):
            kind = before[index].token_type
            depth += (kind in _CLOSE) - (kind in _OPEN)
            if depth < 0:
                return before[index - 1]
        return None

    def closing(self) -> int:
        """The index of the bracket that ends the call around this place."""
        depth = 0
        for index in range(self.at, len(self.tokens)):
            kind = self.tokens[index].token_type
            depth += (kind in _OPEN) - (kind in _CLOSE)
            if depth < 0:
                return index
        raise Refused(_open(self.span(self.at, self.at)))

    def partner(self, index: int) -> int:
        """The index of the bracket that closes this one."""
        depth = 0
        for other in range(index, len(self.tokens)):
            kind = self.tokens[other].token_type
            depth += (kind in _OPEN) - (kind in _CLOSE)
            if depth == 0:
                return other
        raise Refused(_open(self.span(index, index)))

    def parts(self, first: int, last: int) -> list[range]:
        """The ranges of tokens between commas, from ``first`` to before ``last``."""
        found, start, depth = [], first, 0
        for index in range(first, last):
            kind = self.tokens[index].token_type
            depth += (kind in _OPEN) - (kind in _CLOSE)
            if depth == 0 and kind is TokenType.COMMA:
                found.append(range(start, index))
                start = index + 1
        return [*found, range(start, last)]

    def given(self, part: range, sign: TokenType) -> Given:
        """Read ``name sign value``."""
        if len(part) < 3 or self.tokens[part[1]].token_type is not sign:
            place = self.span(part[0], part[-1]) if part else self.span(part.start, part.start)
            raise Refused(_shape(place, "=>" if sign is TokenType.FARROW else "="))
        words = [self.text[self.tokens[i].start : self.tokens[i].end + 1] for i in part[2:]]
        return Given(self.word(part[0]).lower(), tuple(words), self.span(part[0], part[-1]))

    def span(self, first: int, last: int) -> Span:
        last = min(last, len(self.tokens) - 1)
        return Span(self.tokens[min(first, last)].start, self.tokens[last].end + 1)


def _shape(place: Span, sign: str) -> Refusal:
    return Refusal(
        "DP102",
        f"name {sign} value is expected here",
        "Every option of the noise must be understood, so that none is ignored silently.",
        "OPTIONS(epsilon = 0.1, delta = 1e-8)"
        if sign == "="
        else "SUM(x, contribution_bounds_per_group => (0, 100)): named arguments come last.",
        place,
    )


def _open(place: Span) -> Refusal:
    return Refusal(
        "DP102",
        "a bracket is not closed",
        "The end of a list decides what belongs to it.",
        "Close it.",
        place,
    )


def _nowhere(place: Span | None) -> Refusal:
    return Refusal(
        "DP406",
        "WITH DIFFERENTIAL_PRIVACY belongs to a SELECT that aggregates",
        "It says how the answer of that SELECT is noised.",
        "Write it after SELECT: WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.1).",
        place,
    )


def _no_aggregate(place: Span | None) -> Refusal:
    return Refusal(
        "DP406",
        "named arguments belong to aggregates over private rows",
        "They bound what one unit adds to a noised number. No other call takes named arguments.",
        "SUM(x, contribution_bounds_per_group => (0, 100))",
        place,
    )


def _hinted(place: Span) -> Refusal:
    return Refusal(
        "DP100",
        "SELECT with hint is not in the SQL that dpsql answers",
        "Hints tell an engine how to work, and only dpsql decides that.",
        "Leave it out.",
        place,
    )
