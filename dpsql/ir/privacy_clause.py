"""The clause ``WITH DIFFERENTIAL_PRIVACY OPTIONS(...)``, and the named arguments of aggregates.

Each option is one row of ``OPTIONS``, which says how its text is read and what it must be. An
option without a row is refused, and so is a value that its row cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.exact import parse_exact

Ends = tuple[Fraction, Fraction]
LARGEST = 10**15
"""The largest absolute value of a contribution bound."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a clause for the measurement of its SELECT. None leaves one to role and session.

    ``place`` tells one clause from another: each has a budget of its own. ``least`` is the number
    of units below which a group is not shown.
    """

    place: int
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    groups: int | None = None
    rows: int | None = None
    selection: Literal["threshold", "public"] | None = None
    least: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Given:
    """``name = value`` or ``name => value`` as it was written. ``words`` are those of the value."""

    name: str
    words: tuple[str, ...]
    span: Span

    @property
    def text(self) -> str:
        """The words of the value, joined."""
        return "".join(self.words)


@dataclass(frozen=True, slots=True)
class Clause:
    """The clause of one SELECT: its terms, and the column that it names as the unit's key."""

    terms: Terms
    unit: tuple[tuple[str, bool], ...] = ()
    """The parts of the column's name, each with whether it was quoted."""
    unit_span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of an aggregate's named arguments, for a row or for a unit's part of a group."""

    row: Ends | None = None
    group: Ends | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


SMALLEST = Fraction(1, 10**9)
"""The least epsilon. The noise of a smaller one is wider than the exact samplers support."""
LEAST_DELTA = Fraction(1, 10**15)
"""The least delta. It is one step of the ledger; less could not be charged."""


def _epsilon(text: str) -> Fraction:
    value = parse_exact(text)
    if not SMALLEST <= value <= 10**9:
        raise ValueError
    return value


def _delta(text: str) -> Fraction:
    value = parse_exact(text)
    if value and not LEAST_DELTA <= value < 1:
        raise ValueError
    return value


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise ValueError
    return int(text)


def _strategy(text: str) -> str:
    return {"LAPLACE_THRESHOLD": "threshold", "PUBLIC_GROUPS": "public"}[text.upper()]


@dataclass(frozen=True, slots=True)
class Option:
    """An option: the field of ``Terms`` that it sets, its reader, its values and its purpose."""

    field: str
    read: Callable[[str], Any]
    takes: str
    about: str


_WHOLE = "a whole number from 1"
OPTIONS: dict[str, Option] = {
    "epsilon": Option("epsilon", _epsilon, "a number from 1e-9 to 1e9", "what this SELECT costs"),
    "delta": Option(
        "delta", _delta, "0, or a number from 1e-15 and below 1", "the delta it costs at most"
    ),
    "max_groups_contributed": Option(
        "groups", _count, _WHOLE, "in how many groups a unit counts, up to the role's limit"
    ),
    "max_rows_contributed": Option(
        "rows",
        _count,
        _WHOLE,
        "as how many rows all rows of a unit count; not with max_groups_contributed",
    ),
    "group_selection_strategy": Option(
        "selection",
        _strategy,
        "LAPLACE_THRESHOLD or PUBLIC_GROUPS",
        "show the groups that enough units are in, or all groups of a public list",
    ),
    "min_privacy_units_per_group": Option(
        "least", _count, _WHOLE, "leave out groups of fewer units; not with PUBLIC_GROUPS"
    ),
}
UNIT = "privacy_unit_column"
UNIT_ABOUT = "must name the key of the policy's unit: who is protected is not the query's choice"
KNOWN = (*OPTIONS, UNIT)
_EXCLUSIVE = (
    (
        "max_groups_contributed",
        "max_rows_contributed",
        "A unit is bounded by the groups it is in, or by its rows, not by both.",
    ),
)


def clause(options: Sequence[Given], place: Span) -> Clause:
    """The clause of the options. Raises one refusal for each option that cannot be kept."""
    refusals = list(_repeated(options, "option"))
    terms, unit = Terms(place.start, span=place), None
    for option in options:
        if option.name == UNIT:
            unit = option
            refusals += [] if _named(option) else [_not_a_column(option)]
        elif option.name not in OPTIONS:
            refusals.append(_unknown(option))
        else:
            known = OPTIONS[option.name]
            try:
                terms = replace(terms, **{known.field: known.read(option.text)})
            except (ValueError, KeyError, ArithmeticError):
                refusals.append(_not_a_value(option, known.takes))
    refusals += _together(options, terms)
    if refusals:
        raise Refused(*refusals[:5])
    if terms.least is not None and terms.selection is None:
        terms = replace(terms, selection="threshold")
    return Clause(terms, () if unit is None else _named(unit), None if unit is None else unit.span)


def bounds(arguments: Sequence[Given]) -> Bounds:
    """The bounds of an aggregate's named arguments."""
    refusals, found = list(_repeated(arguments, "argument")), Bounds(span=arguments[0].span)
    for argument in arguments:
        where = {
            "contribution_bounds_per_row": "row",
            "contribution_bounds_per_group": "group",
        }.get(argument.name)
        if argument.name == "report_format":
            refusals.append(_report(argument))
        elif where is None:
            refusals.append(_unknown_argument(argument))
        else:
            ends = _ends(argument)
            refusals += [] if ends is not None else [_not_ends(argument)]
            found = replace(found, row=ends) if where == "row" else replace(found, group=ends)
    if refusals:
        raise Refused(*refusals[:5])
    return found


_ENDS = re.compile(r"\(([+-]?[0-9.]+(?:[eE][+-]?\d+)?),([+-]?[0-9.]+(?:[eE][+-]?\d+)?)\)")


def _ends(argument: Given) -> Ends | None:
    found = _ENDS.fullmatch(argument.text)
    if found is None:
        return None
    try:
        low, high = (parse_exact(text.removeprefix("+")) for text in found.groups())
    except (ValueError, ArithmeticError):
        return None
    return (low, high) if low <= high and max(abs(low), abs(high)) <= LARGEST else None


def _named(option: Given) -> tuple[tuple[str, bool], ...]:
    """The parts of a column's name; none if the words are not a name."""
    parts, dots = option.words[::2], option.words[1::2]
    if len(parts) != len(dots) + 1 or set(dots) - {"."} or len(parts) > 2:
        return ()
    found = []
    for part in parts:
        quoted = len(part) > 2 and part[0] == part[-1] and part[0] in '"`'
        if not quoted and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part):
            return ()
        found.append((part[1:-1] if quoted else part, quoted))
    return tuple(found)


def _repeated(given: Sequence[Given], what: str) -> Iterator[Refusal]:
    seen: set[str] = set()
    for one in given:
        if one.name in seen:
            yield _refusal(
                one, f"{one.name} is given twice", f"An {what} has one value.", "Keep one of them."
            )
        seen.add(one.name)


def _together(options: Sequence[Given], terms: Terms) -> Iterator[Refusal]:
    """Refusals of options that exclude each other."""
    names = {option.name: option for option in options}
    for one, other, why in _EXCLUSIVE:
        if one in names and other in names:
            yield _refusal(names[other], f"{one} excludes {other}", why, "Keep one of them.")
    if terms.selection == "public" and terms.least is not None:
        yield _refusal(
            names["min_privacy_units_per_group"],
            "PUBLIC_GROUPS excludes min_privacy_units_per_group",
            "All public groups are answered, also empty ones, so small groups are not left out.",
            "Keep one of them, or leave out small groups with HAVING COUNT(*) >= 10.",
        )


def _unknown(option: Given) -> Refusal:
    return _refusal(
        option,
        f'there is no option "{option.name}"',
        "An unknown option could not take effect, and it must not be ignored silently.",
        f"Known: {', '.join(KNOWN)}.",
    )


def _not_a_value(option: Given, what: str) -> Refusal:
    return _refusal(
        option,
        f"{option.name} takes {what}, as a literal",
        "What a query may reveal is fixed before any data is read.",
        "Write the value as a literal, or leave the option out to get what the policy says.",
    )


def _not_a_column(option: Given) -> Refusal:
    return _refusal(
        option,
        f"{UNIT} takes the name of a column",
        "It names the key of the unit that the policy protects.",
        f"{UNIT} = customer_id",
    )


def _unknown_argument(argument: Given) -> Refusal:
    return _refusal(
        argument,
        f'there is no argument "{argument.name}"',
        "An unknown argument could not take effect, and it must not be ignored silently.",
        "Known: contribution_bounds_per_row => (lower, upper), "
        "contribution_bounds_per_group => (lower, upper).",
    )


def _not_ends(argument: Given) -> Refusal:
    return _refusal(
        argument,
        f"{argument.name} takes two literal numbers, the lower one first",
        "The noise grows with the bounds, so they are fixed before any data is read. No bound "
        "may be farther from zero than 1e15.",
        f"{argument.name} => (0, 100)",
    )


def _report(argument: Given) -> Refusal:
    return _refusal(
        argument,
        "report_format is not answered",
        "The report would show bounds that were found in the data, and how many values lie "
        "outside them. Here bounds are public, and counting those values would cost more.",
        "Leave it out. EXPLAIN shows the bounds, and SET dpsql.intervals = on shows the noise.",
    )


def _refusal(given: Given, headline: str, why: str, instead: str) -> Refusal:
    return Refusal("DP406", headline, why, instead, given.span)
