"""Infers the types of parameters by asking the binder, which reads no data.

A text constant is read as a value of the kind with which it is compared. So the texts that the
binder accepts in a parameter's place tell the kind of the parameter.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from dpsql.diagnostics.refusal import Refused
from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.parameters import Value
from dpsql.serve.tokens import Token

ABOUT_TYPES = frozenset({"42703", "42883", "22P02"})
"""SQLSTATEs of statements that may be accepted with a value of another type."""
Accepts = Callable[[Sequence[Value]], bool]

_UUID = "123e4567-e89b-42d3-a456-426614174000"
_SAMPLES: Mapping[int, Value] = {
    oids.BOOL: True,
    oids.INT2: 1,
    oids.INT4: 1,
    oids.INT8: 1,
    oids.OID: 1,
    oids.FLOAT4: 1.5,
    oids.FLOAT8: 1.5,
    oids.NUMERIC: Decimal("1.5"),
    oids.INTERVAL: "1 day",
    oids.DATE: dt.date(2024, 7, 1),
    oids.TIMESTAMP: dt.datetime(2024, 7, 1, 12),  # noqa: DTZ001 (timestamps have no zone)
    oids.TIMESTAMPTZ: dt.datetime(2024, 7, 1, 12),  # noqa: DTZ001
    oids.UUID: _UUID,
}
_PROBES: tuple[tuple[Value, int], ...] = (
    ("x", oids.TEXT),
    ("t", oids.BOOL),
    ("1", oids.INT8),
    ("2024-07-01", oids.DATE),
    (1, oids.INT8),
    (1.5, oids.FLOAT8),
    (dt.date(2024, 7, 1), oids.DATE),
    (True, oids.BOOL),
    (_UUID, oids.UUID),
)
"""Probes in this order. A place that accepts an earlier one takes values of its kind only."""
_WIDER: Mapping[int, tuple[Value, int]] = {
    oids.INT8: ("1.5", oids.FLOAT8),
    oids.DATE: ("2024-07-01 12:00:00", oids.TIMESTAMP),
    oids.TIMESTAMP: ("2024-07-01 12:00:00+02:00", oids.TIMESTAMPTZ),
}


def sample(oid: int) -> Value:
    """A sample value of a type, for planning before values are known."""
    if oid in oids.ELEMENTS:
        return [sample(oids.ELEMENTS[oid])]
    return _SAMPLES.get(oid, "x" if oid else None)


MOST_WORK = 50_000
"""The most parameters of all tries together, since each try plans the whole statement."""


class Guess(NamedTuple):
    """The types of all parameters, and values with which the statement can be planned."""

    oids: tuple[int, ...]
    values: list[Value]


def infer_parameters(tokens: Sequence[Token], known: Sequence[int], accepts: Accepts) -> Guess:
    """The types of all parameters. Those that cannot be told, or not within the limit, are text."""
    found, left = list(known), [MOST_WORK]
    words: dict[int, Value] = {}

    def tried(values: Sequence[Value]) -> bool:
        left[0] -= len(values)
        return left[0] > 0 and accepts(values)

    openings: list[int] = []
    for at, token in enumerate(tokens):
        if token.text == "(":
            openings.append(at)
        elif token.text == ")" and openings:
            openings.pop()
        elif token.kind == "param" and not found[int(token.text[1:]) - 1]:
            position = int(token.text[1:]) - 1
            found[position] = _beside(tokens, at)
            word = _word_of(tokens, at, openings[-1] if openings else 0)
            if word is not None:
                found[position], words[position] = found[position] or oids.TEXT, word
    lists = find_list_parameters(tokens)
    for _ in range(2):
        for position, oid in enumerate(found):
            if not oid and left[0] > 0:
                values = [words.get(at, sample(o)) for at, o in enumerate(found)]
                found[position] = _probed(position, values, tried, listed=position in lists)
                words[position] = values[position]
    whole = tuple(
        oid or (oids.ARRAYS[oids.TEXT] if at in lists else oids.TEXT)
        for at, oid in enumerate(found)
    )
    return Guess(whole, [words.get(at) or sample(oid) for at, oid in enumerate(whole)])


def find_list_parameters(tokens: Sequence[Token]) -> set[int]:
    """The parameters that are lists: those of ANY and ALL."""
    return {
        int(t.text[1:]) - 1
        for before, bracket, t in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if t.kind == "param" and bracket.text == "(" and before.word in ("any", "some", "all")
    }


def _beside(tokens: Sequence[Token], at: int) -> int:
    """The type that a cast after a parameter, or LIMIT before it, gives; 0 if there is none."""
    after = tokens[at + 1 : at + 5]
    if len(after) > 1 and after[0].text == "::":
        skip = 3 if len(after) > 3 and after[1].name == "pg_catalog" and after[2].text == "." else 1
        oid = oids.NAMES.get(after[skip].name, 0)
        array = len(after) > skip + 1 and after[skip + 1].text == "["
        return oids.ARRAYS.get(oid, 0) if array else oid
    return oids.INT8 if at and tokens[at - 1].word in ("limit", "offset") else 0


_FIRST = dict.fromkeys(("date_trunc", "date_part", "extract"), "day") | {"date_bin": "1 day"}
_LATER = dict.fromkeys(("to_char", "to_date", "to_timestamp"), "YYYY")
_BEHIND = {"zone": "UTC", "interval": "1 day"}


def _word_of(tokens: Sequence[Token], at: int, opening: int) -> str | None:
    """A text for a place that takes only certain texts: a unit, a format, a zone, an interval.

    None for all other places. ``opening`` is the position of the bracket around it, or 0.

    >>> from dpsql.serve.tokens import tokens as read
    >>> _word_of(read("to_char(min(x), $1)"), 7, 1), _word_of(read("lower($1)"), 2, 1)
    ('YYYY', None)
    """
    before = tokens[at - 1].word if at else ""
    if before in _BEHIND:
        return _BEHIND[before]
    if before not in ("(", ","):
        return None
    name = tokens[opening - 1].name if opening else ""
    return (_FIRST if opening == at - 1 else _LATER).get(name)


def _probed(position: int, values: list[Value], accepts: Accepts, *, listed: bool) -> int:
    """The type of one parameter; 0 if no probe fits. A value of the type is left in ``values``.

    A list is tried with lists of one element.
    """

    def fits(value: Value) -> bool:
        values[position] = [value] if listed else value
        try:
            return accepts(values)
        except Refused:
            return False

    for value, oid in _PROBES:
        if fits(value):
            told = oid
            while isinstance(value, str) and told in _WIDER and fits(_WIDER[told][0]):
                told = _WIDER[told][1]
            values[position] = (
                value
                if told == oids.TEXT and not listed
                else sample(oids.ARRAYS[told] if listed else told)
            )
            return oids.ARRAYS[told] if listed else told
    values[position] = None
    return 0
