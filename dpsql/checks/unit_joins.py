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

from dpsql.checks.rule import refuse_mixed_units, source_text
from dpsql.diagnostics.edit import Edit
from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.relations import Join, Private, walk_relations
from dpsql.sql.bind import Bound
from dpsql.sql.bind.join_rules import joined_on_unit

MOST_JOINED_ROWS = 1_000_000
"""The most rows of one unit after a join.

With more rows an engine would take noticeably longer, and finally so long that the query fails. Its
failure would reveal that some unit has so many rows.
"""


def check(bound: Bound) -> Iterator[Refusal]:
    """Refuse joins that would break the invariant."""
    for relation in walk_relations(bound.relation):
        if isinstance(relation, Join):
            yield from _join(bound, relation)


def _join(bound: Bound, join: Join) -> Iterator[Refusal]:
    left, right = join.left.privacy, join.right.privacy
    if isinstance(left, Private) and isinstance(right, Private):
        if left.unit != right.unit:
            yield refuse_mixed_units("join", (left.unit, right.unit), join.span)
        elif not joined_on_unit(join):
            yield _refusal(
                join,
                "DP301",
                f"this join pairs rows of different units ({left.unit})",
                "A row of one unit would be joined with rows of any number of others, so one "
                "person could add any number of rows.",
                f"Join on the key of {left.unit}, which both sides must have among their columns.",
                *([Edit("on", join.span, join.on_unit)] if join.on_unit else []),
            )
        elif join.kind == "full":
            yield _unitless(bound, join)
        elif isinstance(join.privacy, Private) and join.privacy.max_rows > MOST_JOINED_ROWS:
            yield _refusal(
                join,
                "DP304",
                f"one {left.unit} may have {join.privacy.max_rows} rows after this join",
                "Each of its rows is joined with each of its rows on the other side. So one "
                "person's rows would decide how long the query runs, and whether it ends.",
                "Group one side by the unit first, or join on a key that is unique on one side.",
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
            "nothing bounds how many rows this join makes from one row",
            "One unit's row could be joined with any number of public rows and be counted once "
            "for each.",
            "Compare a plain column of the public table (ON rows.code = public.code): it is "
            "known how many of its rows share a value.",
        )
    elif rows > MOST_JOINED_ROWS:
        yield _refusal(
            join,
            "DP304",
            f"one {side.unit} may have {rows} rows after this join",
            "Each of its rows is joined with all public rows that have the same value in the "
            "compared columns.",
            "Join on a key of the public table, or first group that table by the columns that "
            "the join compares.",
        )


_SIDE = re.compile(r"\b(FULL|LEFT|RIGHT)\b", re.IGNORECASE)
_SAID = {"semi": "EXISTS or IN over", "anti": "NOT EXISTS or NOT IN over"}


def _unitless(bound: Bound, join: Join) -> Refusal:
    side = _SIDE.match(source_text(bound, join.span))
    kind = side[1].upper() if side else join.kind.upper()
    what = f"a {kind} join" if join.kind not in _SAID else f"{_SAID[join.kind]} a private table"
    return _refusal(
        join,
        "DP303",
        f"{what} makes rows that belong to no unit",
        "Rows of the other side would be kept or left out by whether a private row matches "
        "them. That tells whether a unit is in the data.",
        "Write JOIN: it keeps only rows that match on both sides.",
        Edit("inner", join.span),
    )


def _refusal(join: Join, code: str, headline: str, why: str, instead: str, *edits: Edit) -> Refusal:
    return Refusal(code, headline, why, instead, join.span, edits)
