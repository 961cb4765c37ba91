"""Checks the policy's views once, when the policy is opened, and describes their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dpsql.checks import run as check
from dpsql.diagnostics.refusal import PolicyError, Refused
from dpsql.ir.expressions import Column as Bound_
from dpsql.ir.relations import Private, Public
from dpsql.policy.model import Column, Policy
from dpsql.policy.types import Kind, Scalar
from dpsql.sql.bind import Bound, bind
from dpsql.sql.bind.context import Catalog
from dpsql.sql.bind.scope import spell_name
from dpsql.sql.parse import Source, parse


@dataclass(frozen=True, slots=True)
class ViewShape:
    """The shape of a view: its columns, and whose rows it has.

    ``unit`` is None if the view's rows belong to no unit. ``about`` says the same in words.
    """

    name: str
    columns: tuple[Column, ...]
    unit: str | None
    about: str


def describe_views(
    policy: Policy, public_values: Mapping[tuple[str, str], tuple[Scalar, ...]], now: datetime
) -> dict[str, ViewShape]:
    """The shapes of all views of the policy. Raises a ``PolicyError`` that lists what is wrong."""
    everything = frozenset(policy.tables) | frozenset(policy.views)
    catalog = Catalog(policy, now, everything, public_values)
    found, problems = {}, []
    for name in policy.views:
        place = policy.places.get((name,), str(policy.path))
        try:
            found[name] = shape_of(name, catalog)
        except Refused as refused:
            first = refused.first
            said = f"{place}: view {name}: {first.headline} ({first.code})"
            problems.append(f"{said}; {first.why}")
            continue
        problems += [f"{place}: view {name} {problem}" for problem in twice(found[name])]
    if problems:
        raise PolicyError(*problems)
    return found


def shape_of(name: str, catalog: Catalog) -> ViewShape:
    """The shape of a view; refused if it cannot be read."""
    bound = _read("*", name, catalog)
    state = bound.relation.privacy
    check(_read("COUNT(*)", name, catalog) if isinstance(state, Private) else bound)
    if isinstance(state, Private):
        unit: str | None = state.unit
        about = f"private: each {unit} is protected, with at most {state.max_rows} rows"
    else:
        unit = None
        free = isinstance(state, Public)
        about = "public: answered exactly, for free" if free else "aggregates: noised, and charged"
    return ViewShape(name, tuple(map(_column, bound.columns)), unit, about)


def _read(items: str, name: str, catalog: Catalog) -> Bound:
    return bind(parse(Source(f"SELECT {items} FROM {spell_name(name)}")), catalog)


def _column(column: Bound_) -> Column:
    shape = column.shape
    domain, kind = shape.domain, Kind.TEXT if shape.kind is Kind.NULL else shape.kind
    ends = (domain.low, domain.high)
    known = domain.members is None and ends[0] is not None and ends[1] is not None
    return Column(
        column.name, shape.type_name or kind.value, kind, shape.nullable, column.identifier,
        range=ends if known else None,  # type: ignore[arg-type]  # both ends are there
        values=domain.members,
    )  # fmt: skip


def twice(view: ViewShape) -> list[str]:
    """Says which column names occur twice when case is ignored, as some clients ignore it."""
    folded = [c.name.casefold() for c in view.columns]
    names = dict.fromkeys(c.name for c in view.columns if folded.count(c.name.casefold()) > 1)
    return [f'has two columns called "{name}"; rename one: ... AS another' for name in names]
