"""What a field of a node may hold. A rule refuses a value, or says what in it is looked at next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from dpsql.engines.duckdb.allowlist.listing import Listing, NotListed

Scope = frozenset[str]
"""The names, in lower case, of the queries of WITH that may be read here."""
Rule = Callable[[Any, Scope, Listing], Iterable["Task"]]


class Task(NamedTuple):
    """A value that a rule has to look at."""

    rule: Rule
    value: Any
    scope: Scope


def form(what: object) -> NotListed:
    """A form of syntax that is not listed."""
    return NotListed("form", str(what)[:100])


def text(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
    """A name, or a text that stands for itself."""
    if not isinstance(value, str):
        raise form("where a text is expected")
    return ()


def number(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
    """A whole number."""
    if type(value) is not int:
        raise form("where a number is expected")
    return ()


def flag(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
    """Yes or no."""
    if type(value) is not bool:
        raise form("where yes or no is expected")
    return ()


def require_empty(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
    """What a field holds when its form of syntax is not used."""
    if value or type(value) is int:
        raise form(value)
    return ()


def words(listing: str, between: str | None = None) -> Rule:
    """One of the words of a text."""
    known = frozenset(listing.split(between))

    def rule(value: Any, _: Scope, __: Listing) -> Iterable[Task]:
        if not isinstance(value, str) or value not in known:
            raise form(value)
        return ()

    return rule


def each(inner: Rule) -> Rule:
    """A list."""

    def rule(value: Any, scope: Scope, _: Listing) -> Iterable[Task]:
        if not isinstance(value, list):
            raise form("where a list is expected")
        return [Task(inner, item, scope) for item in value]

    return rule


def optional(inner: Rule) -> Rule:
    """Nothing, or that."""

    def rule(value: Any, scope: Scope, _: Listing) -> Iterable[Task]:
        return () if value is None else [Task(inner, value, scope)]

    return rule


def record(fields: Mapping[str, Rule]) -> Rule:
    """Exactly these fields."""

    def rule(value: Any, scope: Scope, _: Listing) -> Iterable[Task]:
        if not isinstance(value, dict) or value.keys() != fields.keys():
            raise form("with fields that are not known")
        return [Task(fields[name], item, scope) for name, item in value.items()]

    return rule


def choice(tag: str, kinds: Mapping[str, Rule]) -> Rule:
    """A node whose field ``tag`` says which of these it is. The kinds may be filled in later."""

    def rule(value: Any, scope: Scope, _: Listing) -> Iterable[Task]:
        kind = value.get(tag) if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in kinds:
            raise form(kind)
        return [Task(kinds[kind], value, scope)]

    return rule


def check_listed_name(
    what: str, node: Mapping[str, Any], fields: tuple[str, ...], names: frozenset[str]
) -> str:
    """The name of a node in lower case: it must be bare, and among these."""
    written = [node[field] for field in fields if node[field]]
    bare = len(written) == 1 and node["qualified_name"] == {"path": written}
    if not bare or written[0].lower() not in names:
        raise NotListed(what, ".".join(written))
    return str(written[0].lower())
