"""Views: queries of the policy or of the session that can be named like tables.

Claim: a query over a view is equal to the query with the view's text as a subquery. So it is
    refused, bounded, priced and recalled like the written-out query.
Assumes: the author of a view in the policy may let its readers ask about every table.
Argument: the text is parsed and bound like a subquery; only the names that it may use differ. A
    view of the policy may read all tables, as its owner may. A session's own view may read what the
    session may read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from dpsql.effort import count_known, note_known, total
from dpsql.policy.model import TemporaryView, View
from dpsql.sql.bind.context import Catalog, Context, Output, QueryBinder, count_copy, refuse
from dpsql.sql.bind.scope import Scope, same
from dpsql.sql.clauses import move_clause
from dpsql.sql.parse import Source, parse
from dpsql.sql.spans import span_of


def view_of(name: str, catalog: Catalog) -> View | None:
    """The view of that name: the policy's, if the role may see it, or the session's own."""
    found = (v for key, v in catalog.policy.views.items() if same(key, name))
    view = next(found, None)
    if view is not None and view.name in catalog.visible:
        return view
    return next((v for key, v in catalog.temporary.items() if same(key, name)), None)


def bind_view(view: View, node: exp.Expr, context: Context, query: QueryBinder) -> Output:
    """The bound query of a view, over the tables that its author may see.

    For a view of the policy these are all tables.
    """
    if view in context.views:
        raise refuse(
            "DP115",
            node,
            f'view "{view.name}" reads itself',
            "Replacing the view by its query would never end.",
        )
    body = _placed(view, node)
    count_copy(body, context, node)
    catalog, parameters, hidden_by = context.catalog, context.parameters, context.hidden_by
    context.catalog, context.parameters = _seen(view, catalog), ()
    context.views += (view,)
    if not isinstance(view, TemporaryView):
        context.hidden_by = hidden_by or view.name
    try:
        return query(body, context, Scope())
    finally:
        context.catalog, context.parameters, context.hidden_by = catalog, parameters, hidden_by
        context.views = context.views[:-1]


def _seen(view: View, catalog: Catalog) -> Catalog:
    """The catalog with the tables that the view's query may name."""
    if isinstance(view, TemporaryView):
        return catalog
    policy = catalog.policy
    everything = frozenset(policy.tables) | frozenset(policy.views)
    return replace(catalog, visible=everything, temporary={})


def _placed(view: View, node: exp.Expr) -> exp.Expr:
    """The view's tree, with the place of the view's name for all nodes: refusals point there."""
    body, place = _tree(view), span_of(node)
    assert place is not None, "a name has a place"
    for part in body.walk():
        part.meta.update(start=place.start, end=place.end - 1)
        move_clause(part, place)
    return body


def _tree(view: View) -> exp.Query:
    """A tree of a view that may be changed. Trees of a session's own views are not cached."""
    if isinstance(view, TemporaryView):
        return parse(Source(view.sql, view.dialect)).tree
    tree, steps = _owners(view.sql)
    count_known(("view", view.sql), steps)
    return tree.copy()


@lru_cache(maxsize=256)
def _owners(sql: str) -> tuple[exp.Query, int]:
    """The tree of a view of the policy, and the steps that parsing it took."""
    before = total()
    tree = parse(Source(sql, "postgres")).tree
    note_known(("view", sql))
    return tree, total() - before
