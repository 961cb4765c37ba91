"""Functions that format, read and bin dates and times, as in PostgreSQL."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace

from sqlglot import exp

from dpsql.ir.expressions import Expression, Interval, Literal
from dpsql.policy.types import Kind
from dpsql.sql.bind import literals
from dpsql.sql.bind.binder import Binder
from dpsql.sql.bind.context import refuse
from dpsql.sql.marks import KEEPS_DATE, has

_PATTERN = re.compile(r"(%[YmdHMSf]|[-/:. T_])*")
"""Formats whose words have the same meaning in every engine."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}


def from_text(self: Binder, node: exp.Expr) -> Expression:
    """``TO_DATE`` and ``TO_TIMESTAMP`` of a text constant."""
    text, pattern = self.bind(node.this), _format(node)
    if not isinstance(text, Literal) or not isinstance(text.value, str):
        raise refuse(
            "DP114",
            node,
            "a date can only be read from a literal",
            "Whether a text is a date must not depend on a row.",
            "Compare a date with a constant: placed >= DATE '2025-01-01'.",
        )
    try:
        at = dt.datetime.strptime(text.value, pattern)  # noqa: DTZ007 (naive by design)
    except ValueError:
        kind = Kind.DATE if isinstance(node, exp.StrToDate) else Kind.TIMESTAMP
        return literals.literal(literals.read_constant(text.value, kind, node), node)
    return literals.literal(at.date() if isinstance(node, exp.StrToDate) else at, node)


def to_char(self: Binder, node: exp.Expr) -> Expression:
    """``TO_CHAR(a, 'YYYY-MM')``."""
    return self.call("to_char", (self.bind(node.this),), node, _format(node))


def _format(node: exp.Expr) -> str:
    pattern = node.args.get("format")
    text = str(pattern.this) if isinstance(pattern, exp.Literal) else ""
    if not text or not _PATTERN.fullmatch(text):
        raise refuse(
            "DP114",
            node,
            "a format must be a literal of YYYY, MM, DD, HH24, MI, SS and separators between them",
            "Other patterns depend on language and settings.",
            "TO_CHAR(placed, 'YYYY-MM')",
        )
    return text


def from_epoch(self: Binder, node: exp.Expr) -> Expression:
    """``TO_TIMESTAMP(seconds)``."""
    return self.call("to_timestamp", (self.bind(node.this),), node)


def date_bin(self: Binder, node: exp.Expr) -> Expression:
    """``DATE_BIN('15 minutes', a, origin)``, computed in seconds since the origin."""
    step: Expression = self.bind(node.this)
    origin = node.args.get("unit")
    if isinstance(step, Literal) and isinstance(step.value, str):
        count, _, word = step.value.strip().partition(" ")
        unit = exp.Var(this=word.strip().upper())
        step = literals.interval(exp.Interval(this=exp.Literal.string(count), unit=unit))
    start: Expression = literals.literal(0, node)
    if origin is not None:
        at = literals.fit(self.bind(origin), Kind.TIMESTAMP, node)
        start = self.call("extract", (at,), node, "epoch")
    if not isinstance(step, Interval) or step.unit not in _SECONDS or step.count < 1:
        raise refuse(
            "DP205",
            node,
            "DATE_BIN takes a literal interval of days, hours, minutes or seconds",
            "Its length must be known before data is read.",
            "DATE_BIN('15 minutes', started, TIMESTAMP '2024-01-01')",
        )
    size = literals.literal(step.count * _SECONDS[step.unit], node)
    value = self.bind(node.expression)
    seconds = self.call("extract", (value,), node, "epoch")
    since = self.call("subtract", (seconds, start), node)
    whole = self.call("floor", (self.call("divide", (since, size), node),), node)
    back = self.call("add", (self.call("multiply", (whole, size), node), start), node)
    found = self.call("to_timestamp", (back,), node)
    found = replace(found, shape=replace(found.shape, type_name=value.shape.type_name))
    days = has(node, KEEPS_DATE) and value.shape.kind is Kind.DATE
    return self.call("cast", (found,), node, Kind.DATE.value) if days else found
