"""A unit's first groups, found among rows that are likely to be in them.

A unit keeps its first ``groups`` groups in the order of its draws. Ordering all groups of all units
costs several times as much as grouping them. So the order is divided into ``PLACES`` equal parts,
and a first pass over the rows marks, for each unit, the parts that its groups fall in. The marks
bound how far a unit's first groups can reach. Only rows up to there are grouped and ordered.

Claim: a unit's first groups in ``few`` and ``many`` are its first groups among all rows, with all
    of their rows.
Assumes: the limit is a number of groups, and rows are the same in each place that reads them.
Argument: a unit with no more rows than the limit has no more groups than the limit. For any other
    unit, each marked part has at least one of its groups. If ``groups`` parts are marked up to some
    part, at least ``groups`` groups are in these parts, and every group of a later part comes later
    in the order. All groups up to there are ranked, so the first of them are the first of all.

What a unit keeps depends on the salt and its own rows alone, whether the marks are right or wrong.
The number of a unit's groups is bounded by their rank, or by its number of rows where there is no
rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsql.bound import GroupCaps, WeightsAndGroups
from dpsql.bound.first_groups import none_has_more
from dpsql.bound.row_weights import KeepsGroups
from dpsql.bound.rows import SplitRows, UnitRows, keep
from dpsql.bound.sensitivity import count_pairs
from dpsql.catalog.statistic import Values
from dpsql.ir.statements import (
    Alias,
    CaseWhen,
    Cast,
    DrawPart,
    Fold,
    JoinUsing,
    Name,
    Number,
    Op,
    Query,
    Select,
    Term,
)
from dpsql.rewrite.draft import Draft

PLACES = 64
_BITS = (PLACES - 1).bit_length()
_COARSER = 1.15
"""The factor between one number of parts that is tried and the next."""
_USEFUL = 2
"""Rows are marked where there are more than this many times the groups that a unit keeps."""


def rank_prefilter(draft: Draft) -> Draft:
    """The rows in two parts: of units within the limit, and of units above it."""
    if not is_split(draft):
        return draft
    rows = draft.rows
    if isinstance(draft.statistic, Values):
        many = Alias(_units_above(count_pairs(draft.statistic, draft.bounding), rows), "m")
        all_rows = Alias(rows.query, "r")
        few = JoinUsing("anti", all_rows, many, rows.units)
        split = SplitRows(few, JoinUsing("semi", all_rows, many, rows.units))
    else:
        assert isinstance(draft.bounding, GroupCaps | WeightsAndGroups), "no others keep groups"
        split = _split_groups(draft, draft.bounding)
    return replace(draft, rows=replace(rows, split=split))


def is_split(draft: Draft) -> bool:
    """Whether units above the limit are handled apart from the others.

    Under strict timing they are not, because the time would show how many there are. Nor are they
    where no unit within its declared ``max_rows_per_unit`` can have more groups than it keeps.
    """
    bounding, rows = draft.bounding, draft.rows
    if not rows.steady or rows.strict:
        return False
    if isinstance(draft.statistic, Values):
        return bounding.reads_units
    if not isinstance(bounding, GroupCaps | WeightsAndGroups):
        return False
    weights = bounding.weights
    fits = weights is None or (not weights.valued and weights.rows >= bounding.groups)
    return bounding.limit and fits and not none_has_more(draft.measurement, bounding)


def _split_groups(draft: Draft, bounding: KeepsGroups) -> SplitRows:
    """Rows of units whose groups are all kept, and other rows as far as first groups can reach.

    Rows are marked to find how far that is, if a unit may have many more groups than it keeps.
    """
    rows, limit, cells = draft.rows, bounding.groups, draft.measurement.cells
    most = PLACES if cells is None else min(PLACES, cells.count // _USEFUL)
    marked = limit < most
    all_rows = Alias(rows.query, "r")
    few = JoinUsing("anti", all_rows, Alias(_units_above(limit, rows), "m"), rows.units)
    heavy = Alias(_describe_units(rows, bounding, marked=marked), "w")
    part = Cast(DrawPart(rows.draw, _BITS), "bigint")
    where: tuple[Term, ...] = (Op("<=", (part, Name("reach"))),) if marked else ()
    return SplitRows(few, JoinUsing("inner", all_rows, heavy, rows.units), where)


def _describe_units(rows: UnitRows, bounding: KeepsGroups, *, marked: bool) -> Query:
    """Units above the limit, with the reach of their first groups and the weight of their rows."""
    weights = bounding.weights
    counted, found = [("rows", Fold("count"))], [*keep(rows.units)]
    if marked:
        one, part = Cast(Number(1), "hugeint"), DrawPart(rows.draw, _BITS)
        counted.append(("marks", Fold("bit_or", Op("<<", (one, part)))))
        found.append(("reach", _reach(bounding.groups)))
    if weights is not None:
        share = Op("//", (Number(int(weights.rows) << weights.bits), Name("rows")))
        found.append(("weight", Op("least", (Number(1 << weights.bits), share))))
    inner = _units_above(bounding.groups, rows, *counted)
    return Select(Alias(inner, "q"), tuple(found))


def _units_above(limit: int, rows: UnitRows, *items: tuple[str, Term]) -> Query:
    """Units with more rows than a limit, with further computed items."""
    more = Op(">", (Fold("count"), Number(limit)))
    return Select(
        Alias(rows.query, "r"), (*keep(rows.units), *items), group=rows.units, having=more
    )


def _reach(groups: int) -> Term:
    """The last part of the order in which a unit's first groups can be."""
    marks = Name("marks")
    tried = tuple(
        (
            Op(">=", (Op("bit_count", (Op("&", (marks, Number((1 << p) - 1))),)), Number(groups))),
            Number(p - 1),
        )
        for p in _parts(groups)
    )
    return CaseWhen(tried, Number(PLACES - 1))


def _parts(groups: int) -> Iterator[int]:
    """The numbers of parts that are tried, beginning with the fewest that can have all groups."""
    part = groups
    while part < PLACES:
        yield part
        part = max(part + 1, int(part * _COARSER))
