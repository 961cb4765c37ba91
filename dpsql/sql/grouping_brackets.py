"""Brackets around the keys of ROLLUP and CUBE, so that the parser accepts comparisons as keys.

The parser accepts ``ROLLUP(age + 1)`` and ``ROLLUP((age > 50))``, but not ``ROLLUP(age > 50)``. So
a key of several tokens gets brackets before parsing. Afterwards these are removed from the tree, so
that places and suggestions are those of the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_SETS = (TokenType.ROLLUP, TokenType.CUBE)


def add_brackets(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with brackets around each key of several tokens.

    >>> from sqlglot import tokenize
    >>> [t.text for t in add_brackets(tokenize("ROLLUP(a, b > 5, (c, d))"))]
    ['ROLLUP', '(', 'a', ',', '(', 'b', '>', '5', ')', ',', '(', 'c', ',', 'd', ')', ')']
    """
    before: dict[int, Token] = {}
    behind: dict[int, Token] = {}
    opened: list[tuple[int, bool]] = []
    begins: list[int] = []
    partner: dict[int, int] = {}
    for at, token in enumerate(tokens):
        kind = token.token_type
        closes = kind in _CLOSE and bool(opened)
        if opened and opened[-1][1] and (closes or kind is TokenType.COMMA):
            first, last = begins.pop(), at - 1
            if last > first and partner.get(first) != last:
                before[first] = _bracket(TokenType.L_PAREN, "(", tokens[first])
                behind[last] = _bracket(TokenType.R_PAREN, ")", tokens[last])
            if not closes:
                begins.append(at + 1)
        if closes:
            partner[opened.pop()[0]] = at
        elif kind in _OPEN:
            keys = kind is TokenType.L_PAREN and at > 0 and tokens[at - 1].token_type in _SETS
            opened.append((at, keys))
            if keys:
                begins.append(at + 1)
    found: list[Token] = []
    for at, token in enumerate(tokens):
        found += [t for t in (before.get(at), token, behind.get(at)) if t is not None]
    return found


def _bracket(kind: TokenType, text: str, at: Token) -> Token:
    return Token(kind, text, at.line, at.col, start=at.start, end=at.end)


def without_brackets(tree: exp.Expr) -> None:
    """Remove brackets around single keys from the tree: they have no meaning there."""
    for sets in tree.find_all(exp.Rollup, exp.Cube):
        keys = [key.unnest() if isinstance(key, exp.Paren) else key for key in sets.expressions]
        sets.set("expressions", keys)
