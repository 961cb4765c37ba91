"""Grouping sets without their constant keys: they make no groups, so nothing is measured for them."""

from __future__ import annotations

from dataclasses import replace

from dpsql.ir.expressions import Literal
from dpsql.ir.relations import Aggregate, Project, Relation, Released


def without_constants(aggregate: Aggregate) -> Aggregate:
    """The same grouping sets of the other keys."""
    keys, count = aggregate.keys, len(aggregate.keys)
    others = [i for i, key in enumerate(keys) if not isinstance(key, Literal)]
    place = {position: i for i, position in enumerate(others)}
    return replace(
        aggregate,
        keys=tuple(keys[i] for i in others),
        fields=(*(aggregate.fields[i] for i in others), *aggregate.fields[count:]),
        sets=tuple(tuple(place[k] for k in chosen if k in place) for chosen in aggregate.sets),
        called=aggregate.called_at(others),
    )


def with_constants(aggregate: Aggregate, levels: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """The levels with the constants that their sets have, and NULL for those that they do not have."""
    keys = aggregate.keys
    if not any(isinstance(key, Literal) for key in keys):
        return levels
    found = []
    for level, chosen in zip(levels, aggregate.sets, strict=True):
        values = [
            field if i >= len(keys) or not isinstance(key := keys[i], Literal)
            else key if i in chosen
            else Literal(None, field.shape)
            for i, field in enumerate(aggregate.fields)
        ]  # fmt: skip
        found.append(Project(level, tuple(values), aggregate.fields, Released(), aggregate.span))
    return tuple(found)
