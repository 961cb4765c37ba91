"""The parser of each dialect, with its work counted as steps of planning.

The parser is compiled: it cannot be stopped from outside, and its methods cannot be replaced. It
reads some constructs several times, and what is nested in them each time again: ``ARRAY[ARRAY[..``
takes twice as long with each level. But it looks up a setting of its dialect for every operand and
column that it reads. So the dialect counts these look-ups. For two constructs that are read several
times the parser looks up nothing: types inside types, and joins whose ON is missing or comes later.
So their nesting is limited.
"""

from __future__ import annotations

from functools import cache

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.effort import step

QUESTIONS = {
    "DPIPE_IS_STRING_CONCAT": 15,
    "SUPPORTS_COLUMN_JOIN_MARKS": 5,
    "ALIAS_POST_VERSION": 20,
}
"""Settings that the parser looks up for every operand, column and table function, with steps.

A step is about a microsecond. The work of the parser between two look-ups takes no longer than the
steps of the look-up.
"""
MOST_TYPES = 6
"""The most names of types that are called inside one another, as in ``date(timestamp(x))``."""
MOST_JOINS = 12
"""The most joins that wait for their ON, as the first one in ``a JOIN b JOIN c ON d ON e``."""


def read_statements(tokens: list[Token], text: str, dialect: str) -> list[exp.Expr | None]:
    """The syntax trees of a text.

    Raises ``ParseError``, ``Refused`` for too many steps, or ``Stopped``.
    """
    return _dialect(dialect).parser(error_level=ErrorLevel.RAISE).parse(tokens, text)


def nests_types(tokens: list[Token], dialect: str) -> bool:
    """Whether more than ``MOST_TYPES`` names of types are called inside one another.

    >>> from sqlglot import tokenize
    >>> nests_types(tokenize("SELECT date(date(x)), (((y)))"), "postgres")
    False
    >>> nests_types(tokenize("SELECT " + "date(" * 7 + "x" + ")" * 7), "postgres")
    True
    """
    types = _dialect(dialect).parser_class.TYPE_TOKENS
    brackets: list[bool] = []
    level, called = 0, False
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            brackets.append(called)
            level += called
            if level > MOST_TYPES:
                return True
        elif token.token_type is TokenType.R_PAREN and brackets:
            level -= brackets.pop()
        called = token.token_type in types
    return False


def nests_joins(tokens: list[Token]) -> bool:
    """Whether more than ``MOST_JOINS`` joins wait for their ON, on all levels of brackets together.

    >>> from sqlglot import tokenize
    >>> nests_joins(tokenize("SELECT 1 FROM a" + " JOIN b ON c" * 20 + " CROSS JOIN d" * 20))
    False
    >>> nests_joins(tokenize("SELECT 1 FROM a" + " JOIN b" * 20))
    True
    """
    outside = [0]
    waiting = 0
    before, alone = TokenType.SELECT, False
    for token in tokens:
        kind = TokenType.VAR if before in _BEFORE_NAMES else token.token_type
        if kind is TokenType.L_PAREN:
            outside.append(waiting)
        elif kind is TokenType.R_PAREN and len(outside) > 1:
            waiting = outside.pop()
        elif kind in _JOINS and not alone:
            waiting += 1
            if waiting > MOST_JOINS:
                return True
        elif kind in _ENDS and waiting > outside[-1]:
            waiting -= 1
        alone = kind in _ALONE or (alone and kind in _SIDES)
        before = token.token_type
    return False


_BEFORE_NAMES = {TokenType.DOT, TokenType.ALIAS}
"""After these tokens every word is a name."""
_JOINS = {TokenType.JOIN, TokenType.STRAIGHT_JOIN}
_ENDS = {TokenType.ON, TokenType.USING}
_ALONE = {TokenType.CROSS, TokenType.NATURAL}
"""Joins that have no ON."""
_SIDES = {TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER, TokenType.OUTER}


@cache
def _dialect(name: str) -> Dialect:
    """The dialect of this name, with its look-ups counted."""
    base = type(Dialect.get_or_raise(name))
    counts = {name: _count(getattr(base, name), steps) for name, steps in QUESTIONS.items()}
    # The metaclass of Dialect would register the class under its name, and change settings.
    counting: type[Dialect] = type.__new__(type(base), base.__name__, (base,), counts)
    return counting()


def _count(setting: object, steps: int) -> property:
    def look_up(_: Dialect) -> object:
        step(steps)
        return setting

    return property(look_up)
