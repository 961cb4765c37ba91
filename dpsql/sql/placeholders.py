"""Parameters of a statement: they are numbered in its tokens, and replaced in its tree.

The parser interprets some constants: the unit of DATE_TRUNC, the format of TO_CHAR, the length of
an INTERVAL. So the values of parameters are put into the tree right after parsing, where they have
the meaning of a constant. The tree was parsed without the values. So a value is never parsed as SQL
text, and is never a name or a position in a list of columns. Values that cannot be written as a
single constant (TRUE, dates, NULL) stay parameters, which binding reads.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.time import format_time
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.sql.intervals import read_interval
from dpsql.sql.lists import match_quantifier
from dpsql.sql.parameters import MOST_PARAMETERS, STRANGE, builtin
from dpsql.sql.spans import span_of

_LARGEST_EXPONENT = 300
_TYPES = exp.DType
_OWN: dict[type, frozenset[exp.DType]] = {
    str: frozenset({_TYPES.TEXT, _TYPES.VARCHAR}),
    int: frozenset({_TYPES.SMALLINT, _TYPES.INT, _TYPES.BIGINT}),
    float: frozenset({_TYPES.FLOAT, _TYPES.DOUBLE}),
    bool: frozenset({_TYPES.BOOLEAN}),
    dt.date: frozenset({_TYPES.DATE}),
    dt.datetime: frozenset({_TYPES.TIMESTAMP}),
}
"""The SQL types that a Python value already has: a cast to one of them changes nothing."""
_BITS = {_TYPES.SMALLINT: 16, _TYPES.INT: 32, _TYPES.BIGINT: 64}
_POSITIONS = (exp.Ordered, exp.Group, exp.Cube, exp.Rollup, exp.GroupingSets, exp.Distinct)
"""Clauses in which a literal number is the position of a column. A parameter's value is not."""

_NAMED = (exp.Table, exp.TableAlias, exp.Column, exp.Dot)
_NAMES = frozenset({"alias", "using"})
"""Places of names: the classes of parent nodes, and the arguments of them."""


def number_placeholders(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with each ``?`` numbered in text order, which the nodes of a tree do not keep.

    The tokenizer reads ``?::`` as one operator, which none of the answered dialects has. ``$1`` is
    a parameter in all dialects, because drivers write it, although a dialect may read it as a name.
    """
    found: list[Token] = []
    count = 0
    for token in tokens:
        number = token.text[1:] if token.token_type is TokenType.VAR else ""
        cast = token.token_type is TokenType.QDCOLON
        if cast or token.token_type is TokenType.PLACEHOLDER:
            count += 1
            number = str(count)
        elif not (token.text.startswith("$") and number.isascii() and number.isdigit()):
            found.append(token)
            continue
        end = token.start if cast else token.end
        pieces = [
            (TokenType.PARAMETER, "$", token.start, end),
            (TokenType.NUMBER, number, token.start, end),
        ]
        pieces += [(TokenType.DCOLON, "::", end + 1, token.end)] if cast else []
        for kind, text, start, stop in pieces:
            place = {"line": token.line, "col": token.col, "start": start, "end": stop}
            found.append(Token(kind, text, **place, comments=token.comments))
    return found


def set_values(tree: exp.Expr, values: Sequence[object], dialect: str) -> None:
    """Replace parameters by constants; refuse superfluous values and parameters for names."""
    parameters = [n for n in tree.find_all(exp.Parameter) if n.name.isdecimal()]
    wanted = max((int(node.name) for node in parameters), default=0)
    if len(values) > wanted:
        raise Refused(_too_many(len(values), wanted))
    listed = 0
    for node in parameters:
        if isinstance(node.parent, _NAMED) or node.arg_key in _NAMES:
            raise Refused(_no_name(node))
        position = int(node.name) - 1
        value = builtin(values[position]) if 0 <= position < len(values) else None
        if isinstance(value, tuple):
            listed += len(value)
            if listed > MOST_PARAMETERS:
                raise Refused(_no_list(node))
            _put_list(node, value)
            continue
        place = _place(node, value)
        constant = _constant(value)
        if constant is not None:
            constant.meta.update(node.this.meta)
            _put(place, value, constant, dialect)
        elif place is not node:
            _swap(place, node)


def _place(node: exp.Expr, value: object) -> exp.Expr:
    """The parameter, or the outermost cast around it that does not change its value."""
    around = node.parent
    while isinstance(around, exp.Cast) and _is_own(value, around.args["to"]):
        if isinstance(around.parent, exp.AtTimeZone):  # the cast says whether this is an instant
            break
        node, around = around, around.parent
    return node


def _put(node: exp.Expr, value: object, constant: exp.Literal, dialect: str) -> None:
    """Replace a parameter by a constant; as a unit, a format or an interval where one is read."""
    around = node.parent
    read = around
    while isinstance(read, exp.Paren | exp.Neg | exp.Tuple):
        read = read.parent
    # A cast treats a literal number as a decimal, and a float is not a decimal.
    if isinstance(read, _POSITIONS) or (type(value) is float and isinstance(read, exp.Cast)):
        return
    new: exp.Expr = constant
    if constant.is_string and isinstance(around, exp.Expr):
        text = str(constant.this)
        if node.arg_key == "unit" or (isinstance(around, exp.Extract) and node.arg_key == "this"):
            new = _word(text)
        elif node.arg_key == "format":
            new = _format(text, dialect)
        elif isinstance(around, exp.Interval) and around.args.get("unit") is None:
            count, unit = read_interval(text) or ("", "")
            around.set("unit", exp.Var(this=unit.upper()))
            new = exp.Literal.string(str(count))
    _swap(node, new)


def _put_list(node: exp.Expr, values: Sequence[object]) -> None:
    """Replace a parameter of ANY, SOME or ALL by a list; refused in any other place."""
    around = node.parent
    while isinstance(around, exp.Paren | exp.Cast):
        around = around.parent
    if not isinstance(around, exp.Expr) or not match_quantifier(around)[0]:
        raise Refused(_no_list(node))
    members = []
    for value in values:
        member = _member(value)
        if member is None:
            raise Refused(_no_list(node))
        member.meta.update(node.this.meta)
        members.append(member)
    _swap(node, exp.Array(expressions=members))


def _member(value: object) -> exp.Expr | None:
    """The literal of a value in a list; None if there is none."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case dt.datetime():
            kind = _TYPES.TIMESTAMP if value.tzinfo is None else _TYPES.TIMESTAMPTZ
            return _cast(value.isoformat(" "), kind)
        case dt.date():
            return _cast(value.isoformat(), _TYPES.DATE)
        case _:
            return _constant(value)


def _cast(text: str, kind: exp.DType) -> exp.Cast:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=kind))


def _swap(node: exp.Expr, new: exp.Expr) -> None:
    """``node.replace(new)`` in constant time: in a list, ``replace`` visits every member."""
    around, key, index = node.parent, node.arg_key, node.index
    if index is None or around is None or key is None:
        node.replace(new)
        return
    around.args[key][index] = new
    new.parent, new.arg_key, new.index = around, key, index
    node.parent = node.arg_key = node.index = None


def _constant(value: object) -> exp.Literal | None:
    """The constant of a value; None if there is none."""
    match value:
        case bool():
            return None
        case str() if not STRANGE.search(value):
            return exp.Literal.string(value)
        case int() if abs(value) < 2**63:
            return exp.Literal(this=str(value), is_string=False)
        case float() | Decimal() if math.isfinite(value):
            exact = Decimal(value)
            if abs(exact.adjusted()) > _LARGEST_EXPONENT:
                return None
            text = str(exact)
            whole = not {".", "E"} & set(text)
            return exp.Literal(this=f"{text}.0" if whole else text, is_string=False)
        case _:
            return None


def _is_own(value: object, target: exp.DataType) -> bool:
    kind = target.this
    if kind not in _OWN.get(type(value), ()) or target.expressions:
        return False
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return False
    size = 1 << (_BITS.get(kind, 64) - 1)
    return type(value) is not int or -size <= value < size


def _word(text: str) -> exp.Var:
    """The unit of time that a text names; the empty word if the text is not a word."""
    return exp.Var(this=text.upper() if text.isascii() and text.isalpha() else "")


def _format(text: str, dialect: str) -> exp.Literal:
    """A format, converted as the parser converts a literal format."""
    known = Dialect.get_or_raise(dialect)
    read = format_time(text, known.TIME_MAPPING, known.TIME_TRIE)
    return exp.Literal.string(read or "")


def _no_name(node: exp.Expr) -> Refusal:
    return Refusal(
        "DP113",
        "a parameter stands for a value, not for a name",
        "Tables, columns and aliases must be known before the values of parameters.",
        "Write the name itself.",
        span_of(node),
    )


def _no_list(node: exp.Expr) -> Refusal:
    return Refusal(
        "DP113",
        "a list was given for a parameter that takes a single value",
        "Lists of texts, finite numbers, dates and timestamps may be given to ANY or ALL, with at most "
        f"{MOST_PARAMETERS:,} values together.",
        "x = ANY($1), or x <> ALL($1)",
        span_of(node),
    )


def _too_many(given: int, wanted: int) -> Refusal:
    return Refusal(
        "DP113",
        f"{given} values were given where the statement takes {wanted}",
        "A value that is not used may have been meant for something else.",
        "Give one value for each parameter.",
    )
