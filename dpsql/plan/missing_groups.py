"""Refusals where groups must be public or are too many, and notes on rows that are in no group."""

from __future__ import annotations

from dpsql.diagnostics.refusal import Refusal
from dpsql.ir.relations import Aggregate, Join, walk_relations
from dpsql.plan.nodes import Cells


def left_out(aggregate: Aggregate, cells: Cells) -> list[str]:
    """The note of an answer where rows may have other combinations of keys than those listed."""
    names = aggregate.called or tuple(f.name for f in aggregate.fields)
    tied = ", ".join(dict.fromkeys(names[k] for k in sorted(cells.tied)))
    said = "rows with a combination that is not listed are in no group"
    return [f"{tied}: {said}"] if tied else []


def too_many_groups(aggregate: Aggregate, count: int, most: int) -> Refusal:
    """The refusal of more public groups than the policy allows; ``count`` is public."""
    return Refusal(
        "DP502",
        f"this query has {count} public groups; the policy allows {most}",
        "Every public group is answered, also the empty ones, so that the presence of a group "
        "says nothing.",
        "Group more coarsely, or name the groups: WHERE key IN (...).",
        aggregate.span,
    )


def no_whole_groups(aggregate: Aggregate) -> Refusal:
    """The refusal of groups without rows where the groups are not public."""
    joins = [r for r in walk_relations(aggregate.input) if isinstance(r, Join) and r.whole]
    names = ", ".join(f'"{name}"' for name in aggregate.key_names)
    return Refusal(
        "DP303",
        f"this LEFT join keeps groups without rows, and the groups of {names} are not public",
        "A group that is not public is shown only if enough units are in it. A group with fewer "
        "units must look the same as a group without rows.",
        "Write JOIN, or ask the data owner to declare `values` or `values_from` for the column.",
        joins[0].span,
    )


def no_public_groups(aggregate: Aggregate) -> Refusal:
    """The refusal of a clause that asks for public groups of keys whose values are not public."""
    assert aggregate.terms is not None
    return Refusal(
        "DP406",
        "PUBLIC_GROUPS needs groups that are public, and these are not",
        "A group that exists because of one unit shows that the unit is in the data.",
        "Group by a column with public values, name the groups in WHERE key IN ('a', 'b'), "
        "or ask for LAPLACE_THRESHOLD.",
        aggregate.terms.span,
    )
