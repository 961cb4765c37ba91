"""Grouping sets: the GROUP BY of each, and its level. Constant keys are not measured."""

from __future__ import annotations

from dataclasses import replace

from dpsql.ir.expressions import Literal
from dpsql.ir.relations import Aggregate, Project, Relation, Released


def without_constants(aggregate: Aggregate) -> Aggregate:
    """The aggregate without its constant keys, with the same grouping sets of the other keys."""
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


def group_by(aggregate: Aggregate, chosen: tuple[int, ...]) -> Aggregate:
    """One grouping set as a GROUP BY of its own: its keys, by their positions, and every call."""
    return replace(
        aggregate,
        keys=tuple(aggregate.keys[k] for k in chosen),
        fields=tuple(aggregate.fields[k] for k in chosen) + aggregate.fields[len(aggregate.keys) :],
        sets=(),
        called=aggregate.called_at(chosen),
    )


def as_level(aggregate: Aggregate, chosen: tuple[int, ...], groups: Relation) -> Relation:
    """The groups of one set with the columns of all sets, and NULL for keys that the set lacks."""
    count = len(aggregate.keys)
    keys = tuple(
        f if k in chosen else Literal(None, f.shape) for k, f in enumerate(aggregate.fields[:count])
    )
    values = keys + aggregate.fields[count:]
    return Project(groups, values, aggregate.fields, Released(), aggregate.span)


def with_constants(aggregate: Aggregate, levels: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """The levels with the constant keys that their sets have, and NULL for those that they lack."""
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
