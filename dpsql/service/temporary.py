"""Temporary views: queries to which a session gives a name for as long as the session lasts.

The text of the views is part of the session's settings. So every cache that has the settings in its
key distinguishes them, a rollback restores them, and DISCARD drops them.

Claim: a question over such a view is refused, priced and recalled as if the view's text stood in
    its place. The view hides no table or view that the session may see.
Assumes: two names are the same name if ``str.casefold`` makes them equal.
Argument: where a statement names the view, its text is bound in place of the name, over the tables
    and views that the session may see (``sql.bind.views``). A view cannot be created under a name
    that the session sees already. A view that has come to read itself is refused where it is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.effort import limit_effort
from dpsql.policy.model import TemporaryView
from dpsql.service.overview import NAME, SPACE, plain_name
from dpsql.service.settings import Settings
from dpsql.service.views import ViewShape, shape_of, twice
from dpsql.sql.bind import bind
from dpsql.sql.bind.context import Catalog
from dpsql.sql.parse import LONGEST_NAME, Source, parse

MOST, LONGEST = 32, 20_000
"""The most views that a session may have, and the most characters that each may have."""
_CREATE = re.compile(
    rf"{SPACE}*+create{SPACE}++(or{SPACE}++replace{SPACE}++)?temp(?:orary)?{SPACE}++view{SPACE}++"
    rf"({NAME}){SPACE}++as(?={SPACE}|\()(.+)",
    re.IGNORECASE | re.DOTALL,
)
_DROP = re.compile(
    rf"{SPACE}*+drop{SPACE}++view{SPACE}++(if{SPACE}++exists{SPACE}++)?"
    rf"({NAME}(?:\s*+,\s*+{NAME})*+)(?:\s++(?:cascade|restrict))?\s*+;?\s*+",
    re.IGNORECASE,
)
_DISCARD = re.compile(r"\s*+discard\s++(?:all|temp|temporary)\s*+;?\s*+", re.IGNORECASE)


def by_name(views: tuple[TemporaryView, ...]) -> dict[str, TemporaryView]:
    """The views by their names, as a catalog holds them."""
    return {view.name: view for view in views}


def shapes(views: tuple[TemporaryView, ...], catalog: Catalog) -> tuple[ViewShape, ...]:
    """The shapes of those views that can be read."""
    found = []
    mine = by_name(views)
    with limit_effort():
        for view in views:
            try:
                found.append(_shape(view, mine, catalog))
            except Refused:  # a table or view that it reads is gone
                continue
    return tuple(found)


def _shape(view: TemporaryView, views: Mapping[str, TemporaryView], catalog: Catalog) -> ViewShape:
    """The shape of a view among ``views``; refused if it cannot be read."""
    beside = replace(catalog, temporary=views)
    with limit_effort():
        # Bound on its own first, so that the position of an error is one in the view's text.
        bind(parse(Source(view.sql, view.dialect)), beside)
        return shape_of(view.name, beside)


def with_views(settings: Settings, text: str, catalog: Catalog) -> tuple[str, Settings] | None:
    """The tag and the settings after CREATE TEMP VIEW, DROP VIEW or DISCARD; else None.

    ``catalog`` has everything that the session may see except its own views.
    """
    if _DISCARD.fullmatch(text):
        return "DISCARD", replace(settings, views=())
    created = _CREATE.fullmatch(text)
    if created is not None:
        view = TemporaryView(
            plain_name(created[2]), created[3].strip().rstrip(";"), settings.dialect
        )
        return "CREATE VIEW", _created(settings, view, catalog, again=bool(created[1]))
    dropped = _DROP.fullmatch(text)
    if dropped is not None:
        names = [plain_name(name) for name in re.findall(NAME, dropped[2])]
        return "DROP VIEW", _dropped(settings, names, missing=bool(dropped[1]))
    return None


def _created(settings: Settings, view: TemporaryView, catalog: Catalog, *, again: bool) -> Settings:
    # Only visible names are taken: a refusal must not tell that a hidden table has that name (see
    # test_temporary_views).
    taken = {name.casefold() for name in catalog.visible}
    others = tuple(v for v in settings.views if v.name.casefold() != view.name.casefold())
    if view.name.casefold() in taken or view.name.lower().startswith("pg_"):
        raise Refused(
            _taken(
                view.name,
                "A temporary view must not hide a table or view of the policy or the catalog.",
            )
        )
    if len(others) < len(settings.views) and not again:
        raise Refused(_taken(view.name, "This session already has a view of that name."))
    if len(others) >= MOST or len(view.sql) > LONGEST or len(view.name) > LONGEST_NAME:
        raise Refused(_too_many())
    problems = twice(_shape(view, by_name((*others, view)), catalog))
    if problems:
        why = "Each column of a view must have its own name."
        raise Refused(Refusal("DP106", f"the view {problems[0]}", why))
    return replace(settings, views=(*others, view))


def _dropped(settings: Settings, names: list[str], *, missing: bool) -> Settings:
    known = {view.name.casefold() for view in settings.views}
    for name in names:
        if name.casefold() not in known and not missing:
            why = (
                "Views of the policy belong to its owner. A session can drop only views that it "
                "has created."
            )
            raise Refused(Refusal("DP104", f'there is no temporary view "{name}"', why))
    gone = {name.casefold() for name in names}
    return replace(
        settings, views=tuple(v for v in settings.views if v.name.casefold() not in gone)
    )


def _taken(name: str, why: str) -> Refusal:
    return Refusal("DP106", f'the name "{name}" is already taken', why, "Choose another name.")


def _too_many() -> Refusal:
    return Refusal(
        "DP115",
        f"a session has at most {MOST} temporary views of {LONGEST} characters",
        "They are kept in memory for as long as the session lasts.",
        "DROP VIEW those that you do not need any more.",
    )
