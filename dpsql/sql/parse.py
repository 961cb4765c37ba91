"""SQL text to a syntax tree inside the closed world."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import ParseError, TokenError

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.policy.types import Scalar
from dpsql.sql import allow

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # its warnings quote the statement

LONGEST_TEXT = 200_000
MOST_NODES = 20_000
DEEPEST = 150

DIALECTS = ("postgres",)
"""Dialects a session may write in; semantics follow them."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the analyst sent: text, its dialect, and the values of its parameters."""

    text: str
    dialect: str = "postgres"
    parameters: Sequence[Scalar | float | None] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """One query, every node of it listed in ``allow``."""

    source: Source
    tree: exp.Query


def parse(source: Source) -> Parsed:
    """Read one query; anything unexpected, of whatever cause, is a refusal."""
    if len(source.text) > LONGEST_TEXT:
        raise Refused(_too_large(f"{LONGEST_TEXT} characters"))
    try:
        trees = sqlglot.parse(source.text, read=source.dialect, error_level=ErrorLevel.RAISE)
        found = [tree for tree in trees if tree is not None]
    except (ParseError, TokenError) as error:
        raise Refused(_syntax(error), text=source.text) from None
    except Exception:  # noqa: BLE001 (a third-party parser may raise anything; all is one refusal)
        raise Refused(_unreadable(), text=source.text) from None
    if len(found) != 1:
        raise Refused(_not_one(len(found)), text=source.text)
    tree = found[0]
    _measure(tree)
    problems = allow.refusals(tree)
    if problems:
        raise Refused(*problems[:5], text=source.text)
    if not isinstance(tree, exp.Query):
        raise Refused(_not_a_query(), text=source.text)
    return Parsed(source, tree)


def _measure(tree: exp.Expr) -> None:
    """Refuse trees that would make later stages slow or deep, before they recurse."""
    count, level = 0, [tree]
    for _ in range(DEEPEST):
        count += len(level)
        if not level or count > MOST_NODES:
            break
        level = [child for node in level for child in node.iter_expressions()]
    if level or count > MOST_NODES:
        raise Refused(_too_large(f"{MOST_NODES} parts or {DEEPEST} levels"))


def _syntax(error: Exception) -> Refusal:
    span = None
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        start, end = first.get("start"), first.get("end")
        if isinstance(start, int) and isinstance(end, int):
            span = Span(start, end + 1)
    return Refusal(
        "DP102",
        "the statement does not parse",
        "Something near the marked place is not SQL that dpsql reads.",
        "Check brackets, commas and quotes there; text is quoted 'so', names \"so\".",
        span,
    )


def _unreadable() -> Refusal:
    return Refusal(
        "DP102",
        "the statement does not parse",
        "The parser gave up on it.",
        "Write it as one plain SELECT.",
    )


def _not_one(count: int) -> Refusal:
    said = "an empty statement" if count == 0 else f"{count} statements where one is expected"
    return Refusal(
        "DP103", said, "Each statement is planned and paid for alone.", "Send one query."
    )


def _not_a_query() -> Refusal:
    return Refusal(
        "DP100",
        "only queries are answered",
        "dpsql reads; it does not change data, and runs nothing but aggregates.",
        "Send a SELECT.",
    )


def _too_large(limit: str) -> Refusal:
    return Refusal(
        "DP115",
        f"the statement is larger than {limit}",
        "Planning time is bounded so that no statement can keep others waiting.",
        "Split it, or shorten its lists.",
    )
