"""Typical questions about the private tables of a policy, made from names and types alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from dpsql.policy.model import Column, Policy, Table
from dpsql.policy.types import Kind

_STEPS = ((3, "hour"), (92, "day"), (3_700, "month"))
"""For a range of at most so many days: the length of time by which rows are grouped."""


Kinds = Literal["rows", "times", "sum", "listed", "mean", "other"]

_SAMPLED = {
    "rows": "number", "times": "groups", "listed": "groups", "sum": "value", "mean": "value",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """A statement. A typical one also has what it asks in words, its table, and its kind."""

    text: str
    about: str = ""
    table: str = ""
    kind: Kinds = "other"


def typical_questions(policy: Policy, role: str) -> tuple[Question, ...]:
    """Up to five questions about each private table that a role may see.

    Tables of which a unit may have several rows come first, since they hold what happened.
    """
    visible = policy.roles[role].tables
    seen = [t for t in policy.tables.values() if visible is None or t.name in visible]
    private = [t for t in seen if not t.public]
    private.sort(key=lambda table: table.max_rows_per_unit == 1)
    return tuple(question for table in private for question in _about(table))


def few_questions(policy: Policy, role: str) -> tuple[Question, ...]:
    """Up to three of the typical questions about each table: a number, groups, and a mean or a sum."""
    found: dict[tuple[str, str], Question] = {}
    for question in typical_questions(policy, role):
        kind = _SAMPLED[question.kind]
        if (question.table, kind) not in found or question.kind == "mean":
            found[question.table, kind] = question
    return tuple(found.values())


def sample_questions(policy: Policy, role: str) -> tuple[Question, ...]:
    """At most three questions: a number of rows, a sum, and groups of a listed column."""
    found: dict[str, Question] = {}
    for question in typical_questions(policy, role):
        found.setdefault(question.kind, question)
    return tuple(found[kind] for kind in ("rows", "sum", "listed") if kind in found)


def _about(table: Table) -> Iterator[Question]:
    t, columns = quote_identifier(table.name), table.columns.values()
    summed = next((c for c in columns if _is_summed(table, c)), None)
    listed = next((c for c in columns if _is_listed(c)), None)
    timed = next((c for c in columns if _step(c)), None)
    yield Question(f"SELECT COUNT(*) AS n FROM {t}", "number of rows", table.name, "rows")
    if timed is not None:
        step, c = _step(timed), quote_identifier(timed.name)
        yield Question(
            f"SELECT DATE_TRUNC('{step}', {c}) AS {step}, COUNT(*) AS n FROM {t} GROUP BY {step}",
            f"rows by {step} of {timed.name}", table.name, "times",
        )  # fmt: skip
    if summed is not None:
        c = quote_identifier(summed.name)
        yield Question(
            f"SELECT SUM({c}) AS total FROM {t}", f"sum of {summed.name}", table.name, "sum"
        )
    if listed is not None:
        c = quote_identifier(listed.name)
        text = f"SELECT {c}, COUNT(*) AS n FROM {t} GROUP BY {c}"
        yield Question(text, f"rows by {listed.name}", table.name, "listed")
    if summed is not None:
        c, about = quote_identifier(summed.name), f"mean of {summed.name}"
        text = f"SELECT AVG({c}) AS mean FROM {t}"
        if listed is not None:
            by, about = quote_identifier(listed.name), f"{about} by {listed.name}"
            text = f"SELECT {by}, AVG({c}) AS mean FROM {t} GROUP BY {by}"
        yield Question(text, about, table.name, "mean")


def _is_summed(table: Table, column: Column) -> bool:
    key = {*table.unit_columns, *table.key}
    known = column.range is not None and not column.identifier
    return column.kind.numeric and known and column.name not in key


def _is_listed(column: Column) -> bool:
    listed = column.values is not None or column.values_from is not None
    return (listed or column.kind is Kind.BOOLEAN) and not column.identifier


def _step(column: Column) -> str:
    """The length of time by which a column of times is grouped; empty where it is none."""
    if column.range is None or column.identifier:
        return ""
    low, high = column.range
    if not isinstance(low, date) or not isinstance(high, date):  # a datetime is a date, too
        return ""
    days = (high - low).days
    step = next((step for most, step in _STEPS if days <= most), "year")
    return "day" if step == "hour" and column.kind is Kind.DATE else step


def quote_identifier(name: str) -> str:
    """A name as it is written in a statement.

    >>> quote_identifier("orders"), quote_identifier('my "orders"')
    ('orders', '"my ""orders\"""')
    """
    plain = name.isidentifier() and name.islower() and name.isascii()
    return name if plain else '"' + name.replace('"', '""') + '"'
