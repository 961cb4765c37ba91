"""The rules that a bound query must keep, one per file; all refusals are reported at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from dpsql.checks import (
    aggregate_only,
    applied_bounds,
    bounded_values,
    constant_rows,
    identifiers,
    interval_ends,
    interval_values,
    known_aggregates,
    list_keys,
    private_order,
    private_sets,
    private_subqueries,
    text_lengths,
    unit_joins,
    unit_windows,
)
from dpsql.checks.rule import Rule
from dpsql.diagnostics.refusal import Refused
from dpsql.sql.bind import Bound

RULES: dict[str, Rule] = {
    "aggregate_only": aggregate_only.check,
    "known_aggregates": known_aggregates.check,
    "list_keys": list_keys.check,
    "bounded_values": bounded_values.check,
    "applied_bounds": applied_bounds.check,
    "unit_joins": unit_joins.check,
    "unit_windows": unit_windows.check,
    "private_order": private_order.check,
    "private_sets": private_sets.check,
    "private_subqueries": private_subqueries.check,
    "identifiers": identifiers.check,
    "interval_ends": interval_ends.check,
    "interval_values": interval_values.check,
    "text_lengths": text_lengths.check,
    "constant_rows": constant_rows.check,
}
MOST_REPORTED = 5


@dataclass(frozen=True, slots=True)
class Checked:
    """A bound query that keeps every rule. Only ``run`` creates one."""

    bound: Bound
    rules: tuple[str, ...]


def run(bound: Bound) -> Checked:
    """Return the query as checked; raise the independent refusals, in text order, if there are any.

    At most ``MOST_REPORTED`` refusals are raised.
    """
    found = (refusal for rule in RULES.values() for refusal in rule(bound))
    refusals = dict.fromkeys(islice(found, MOST_REPORTED))
    if refusals:
        raise Refused(*refusals, text=bound.source.text)
    return Checked(bound, tuple(RULES))
