"""Reads a text as the kind of scalar that a key needs."""

from __future__ import annotations

import re
from fractions import Fraction

from dpsql.policy import key_shapes
from dpsql.policy.problems import instead
from dpsql.policy.scalars import NotAValue, flag, kind_of, number, whole


def describe_shape(shape: key_shapes.Shape) -> str:
    """A short description of what to write for ``shape``."""
    match shape:
        case key_shapes.Choice():
            return " or ".join(shape.words)
        case key_shapes.Flag():
            return "true or false"
        case key_shapes.ColumnType():
            return "a type such as text"
        case key_shapes.Text():
            return "text"
        case _:
            return "a number"


def fit(shape: key_shapes.Shape, text: str) -> object:
    """``text`` as a scalar of this shape; raises ``NotAValue`` if it does not fit."""
    match shape:
        case key_shapes.Flag():
            return flag(text)
        case key_shapes.Whole():
            count = whole(text)
            if shape.low <= count <= shape.high:
                return count
            raise NotAValue(f"write a whole number from {shape.low} to {shape.high}")
        case key_shapes.Number():
            value = number(text)
            if _within(shape, value):
                return value
            raise NotAValue(_bounds(shape))
        case key_shapes.ColumnType():
            kind_of(text)
        case key_shapes.Choice() if text not in shape.words:
            raise NotAValue(instead(text, shape.words, "words"))
        case key_shapes.Text():
            _fits(shape, text)
        case _:
            pass
    return text


def _fits(shape: key_shapes.Text, text: str) -> None:
    if not text.strip():
        raise NotAValue("write some text")
    if shape.pattern and not re.fullmatch(shape.pattern, text):
        raise NotAValue(f"write it like {shape.such_as}")


def _within(shape: key_shapes.Number, value: Fraction) -> bool:
    low = shape.low < value if shape.open_low else shape.low <= value
    high = value < shape.high if shape.open_high else value <= shape.high
    return low and high


def _bounds(shape: key_shapes.Number) -> str:
    low = f"above {shape.low}" if shape.open_low else f"at least {shape.low}"
    high = f"below {shape.high}" if shape.open_high else f"at most {shape.high}"
    return f"write a number {low} and {high}"
