"""Rules for the values of a node's fields. A rule refuses a value, or returns parts to check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from dpsql.engines.duckdb.allowlist.listing import Listing, NotListed

Scope = frozenset[str]
"""The names, in lower case, of the WITH queries that may be read here."""
Rule = Callable[[Any, Scope, Listing], Iterable["Task"]]


class Task(NamedTuple):
    """A value that a rule has to check."""

    rule: Rule
    value: Any
    scope: Scope


def form(what: object) -> NotListed:
    """The error for a form of syntax that is not listed."""
    return NotListed("form", str(what)[:100])


def text(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
    """A text: a name or a constant."""
    if not isinstance(value, str):
        raise form("where a text is expected")
    return ()


def number(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
    """A whole number."""
    if type(value) is not int:
        raise form("where a number is expected")
    return ()


def flag(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
    """A truth value."""
    if type(value) is not bool:
        raise form("where yes or no is expected")
    return ()


def require_empty(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
    """The empty value of a field whose form of syntax is not used."""
    if value or type(value) is int:
        raise form(value)
    return ()


def words(listing: str, between: str | None = None) -> Rule:
    """A rule for one of the words of ``listing``."""
    known = frozenset(listing.split(between))

    def rule(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
        if not isinstance(value, str) or value not in known:
            raise form(value)
        return ()

    return rule


def each(inner: Rule) -> Rule:
    """A rule for a list whose items follow the rule ``inner``."""

    def rule(value: Any, scope: Scope, _: Listing) -> Iterable[Task]:
        if not isinstance(value, list):
            raise form("where a list is expected")
        return [Task(inner, item, scope) for item in value]

    return rule


def optional(inner: Rule) -> Rule:
    """A rule for None, or a value that follows the rule ``inner``."""

    def rule(value: Any, scope: Scope, _: Listing) -> Iterable[Task]:
        return () if value is None else [Task(inner, value, scope)]

    return rule


def record(fields: Mapping[str, Rule]) -> Rule:
    """A rule for an object with exactly these fields."""

    def rule(value: Any, scope: Scope, _: Listing) -> Iterable[Task]:
        if not isinstance(value, dict) or value.keys() != fields.keys():
            raise form("with fields that are not known")
        return [Task(fields[name], item, scope) for name, item in value.items()]

    return rule


def choice(tag: str, kinds: Mapping[str, Rule]) -> Rule:
    """A rule for a node whose field ``tag`` names one of ``kinds``. These may be added later."""

    def rule(value: Any, scope: Scope, _: Listing) -> Iterable[Task]:
        kind = value.get(tag) if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in kinds:
            raise form(kind)
        return [Task(kinds[kind], value, scope)]

    return rule


def check_listed_name(
    what: str, node: Mapping[str, Any], fields: tuple[str, ...], names: frozenset[str]
) -> str:
    """The name of a node in lower case. It must have no schema, and be one of ``names``."""
    written = [node[field] for field in fields if node[field]]
    bare = len(written) == 1 and node["qualified_name"] == {"path": written}
    if not bare or written[0].lower() not in names:
        raise NotListed(what, ".".join(written))
    return str(written[0].lower())
