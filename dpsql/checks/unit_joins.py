"""DP301 to DP304: a join keeps every row with exactly one unit.

What: two private relations join on unit = unit; a public one on its columns; rows without a
unit cannot arise, and a unit has at most a million of them.
Why: otherwise one unit's rows would meet rows of others, any number of times.
Example: ``SELECT COUNT(*) FROM orders o JOIN visits v ON o.placed = v.started``
Instead: ``SELECT COUNT(*) FROM orders o JOIN visits v ON o.customer_id = v.customer_id``
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpsql.checks.rule import mixed, rewritten, written
from dpsql.diagnostics.refusal import Refusal
from dpsql.diagnostics.span import Span
from dpsql.sql.bind import Bound
from dpsql.sql.bind.join_rules import joined_on_unit
from dpsql.sql.relations import Join, Private, walk

MOST_ROWS = 1_000_000
"""Rows of one unit after a join. More would take an engine noticeably long, and in the end too
long: whether the query fails would tell whether some unit has that many."""


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse joins that would break the invariant."""
    for relation in walk(bound.relation):
        if isinstance(relation, Join):
            yield from _join(bound, relation)


def _join(bound: Bound, join: Join) -> Iterator[Refusal]:
    left, right = join.left.privacy, join.right.privacy
    if isinstance(left, Private) and isinstance(right, Private):
        if left.unit != right.unit:
            yield mixed("join", (left.unit, right.unit), join.span)
        elif not joined_on_unit(join):
            yield _refusal(
                join,
                "DP301",
                f"this join pairs rows of different units ({left.unit})",
                "One unit's row would meet rows of any number of others, so one person could add "
                "any number of rows.",
                _on_key(bound, join)
                or f"Join on the key of {left.unit}, which both sides must have among their "
                "columns.",
            )
        elif join.kind == "full":
            yield _unitless(bound, join)
        elif isinstance(join.privacy, Private) and join.privacy.max_rows > MOST_ROWS:
            yield _refusal(
                join,
                "DP304",
                f"one {left.unit} may have {join.privacy.max_rows} rows after this join",
                "Each of its rows meets each of its rows on the other side. One person's rows would"
                " decide how long the query runs, and whether it ends.",
                "Group one side by the unit first, or join on a key of one row.",
            )
    elif isinstance(left, Private) or isinstance(right, Private):
        yield from _with_public(bound, join)


def _with_public(bound: Bound, join: Join) -> Iterator[Refusal]:
    private_left = isinstance(join.left.privacy, Private)
    half = join.kind in ("semi", "anti")
    if join.kind == "full" or (not private_left and (join.kind == "left" or half)):
        yield _unitless(bound, join)
        return
    side = join.left.privacy if private_left else join.right.privacy
    assert isinstance(side, Private)
    rows = join.privacy.max_rows if isinstance(join.privacy, Private) else 1
    if rows == 0 or (rows > 1 and not side.key):
        yield _refusal(
            join,
            "DP304",
            "nothing bounds how many rows this join makes of one",
            "One unit's row may meet any number of public rows and be counted once for each.",
            "Compare a column of the public table as it is (ON rows.code = public.code): how many of "
            "its rows share a value is known.",
        )
    elif rows > MOST_ROWS:
        yield _refusal(
            join,
            "DP304",
            f"one {side.unit} may have {rows} rows after this join",
            "Each of its rows meets up to as many public rows as share what the join compares.",
            "Join on a key of the public table, or group that table by what the join compares.",
        )


def _on_key(bound: Bound, join: Join) -> str:
    """The statement with the join on the unit's key; empty where that cannot be written."""
    text, condition, place = written(bound, join.span), join.condition, join.span
    if not join.on_unit or place is None or re.search(r"\bUSING\b", text, re.IGNORECASE):
        return ""
    if condition is not None:
        there = written(bound, condition.span)
        also = f"({there})" if re.search(r"\bOR\b", there, re.IGNORECASE) else there
        return rewritten(bound, condition.span, f"{join.on_unit} AND {also}") if there else ""
    before = bound.source.text[: place.start].rstrip()
    if before.endswith(","):
        return rewritten(bound, Span(len(before) - 1, place.end), f" JOIN {text} ON {join.on_unit}")
    return rewritten(bound, place, f"{_OUTER.sub('JOIN', text, count=1)} ON {join.on_unit}")


_OUTER = re.compile(r"((FULL|LEFT|RIGHT)(\s+OUTER)?|CROSS)\s+JOIN", re.IGNORECASE)


def _unitless(bound: Bound, join: Join) -> Refusal:
    return _refusal(
        join,
        "DP303",
        f"a {join.kind.upper()} join makes rows that belong to no unit",
        "Rows of the other side without a partner would be kept; whether one is there tells "
        "whether a unit is.",
        rewritten(bound, join.span, _OUTER.sub("JOIN", written(bound, join.span), count=1)),
    )


def _refusal(join: Join, code: str, headline: str, why: str, instead: str) -> Refusal:
    return Refusal(code, headline, why, instead, join.span)
