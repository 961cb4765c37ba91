"""The columns of one table: their types, and the public facts about their values."""

from __future__ import annotations

from dpsql.policy.document import Word
from dpsql.policy.model import Column, Extremes
from dpsql.policy.problems import Problems
from dpsql.policy.scalars import NotAValue, kind_of, scalar
from dpsql.policy.section import Section
from dpsql.policy.types import Kind, Scalar

_ORDERED = (Kind.INTEGER, Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP)


def read_columns(table: Section, problems: Problems) -> dict[str, Column]:
    """Every column of ``table`` whose type is known."""
    found = {}
    for name, section in table.sections("columns").items():
        declared = section.get("type", str)
        if declared is not None:
            found[name] = _column(name, declared, section, problems)
    return found


def _column(name: str, declared: str, section: Section, problems: Problems) -> Column:
    bounds = _range(declared, section, problems)
    return Column(
        name=name,
        declared=declared,
        kind=kind_of(declared),
        nullable=section.get("nullable", bool) or False,
        identifier=section.get("identifier", bool) or False,
        range=bounds,
        values=_values(declared, bounds, section, problems),
        extremes=_extremes(section, problems),
        max_length=_max_length(declared, section, problems),
        description=section.get("description", str) or "",
    )


def _extremes(section: Section, problems: Problems) -> Extremes:
    chosen = section.get("extremes", str)
    if chosen != "declared":
        return "measured"
    if not {"range", "values", "values_from"} & (section.given.keys() | section.spoilt):
        problems.add(
            section.at("extremes"),
            f"extremes of {section.label} are `declared`, but it has neither a range nor values; "
            "write `range: [..]` or `values: [..]`, or remove extremes",
        )
    return "declared"


def _range(declared: str, section: Section, problems: Problems) -> tuple[Scalar, Scalar] | None:
    words = section.words("range")
    if words is None:
        return None
    if kind_of(declared) not in _ORDERED:
        problems.add(
            section.at("range"),
            f"{section.label} has a range, but its type is {declared}; write values: [..] instead",
        )
        return None
    bounds = _scalars(words, declared, section, problems)
    if len(bounds) != len(words):
        return None
    low, high = bounds
    if not _ascending(low, high):
        problems.add(
            section.at("range"),
            f"range of {section.label} starts above its end; "
            f"write [{words[1].text}, {words[0].text}]",
        )
        return None
    return low, high


def _max_length(declared: str, section: Section, problems: Problems) -> int | None:
    length = section.get("max_length", int)
    if length is not None and kind_of(declared) is not Kind.TEXT:
        problems.add(
            section.at("max_length"),
            f"{section.label} has max_length, but its type is {declared}; remove it",
        )
    return length


def _values(
    declared: str,
    bounds: tuple[Scalar, Scalar] | None,
    section: Section,
    problems: Problems,
) -> tuple[Scalar, ...] | None:
    words = section.words("values")
    if words is None:
        return None
    if "values_from" in section.given:
        problems.add(
            section.at("values_from"),
            f"{section.label} has both values and values_from; keep one",
        )
    values = _scalars(words, declared, section, problems)
    if len(values) < len(words):
        return None
    seen: set[Scalar] = set()
    for word, value in zip(words, values, strict=True):
        if value in seen:
            problems.add(
                word.place, f'value "{word.text}" of {section.label} is listed already; remove it'
            )
        elif bounds and not (_ascending(bounds[0], value) and _ascending(value, bounds[1])):
            problems.add(
                word.place,
                f'value "{word.text}" of {section.label} is outside its range; remove one of them',
            )
        seen.add(value)
    return tuple(values)


def _scalars(
    words: tuple[Word, ...], declared: str, section: Section, problems: Problems
) -> list[Scalar]:
    found = []
    for word in words:
        try:
            found.append(scalar(word.text, declared))
        except NotAValue as error:
            problems.add(
                word.place, f'"{word.text}" in {section.label} is not of type {declared}; {error}'
            )
    return found


def _ascending(low: Scalar, high: Scalar) -> bool:
    """Whether two values of one ordered type are in order."""
    return bool(low <= high)  # type: ignore[operator]  # both are of the column's own type
