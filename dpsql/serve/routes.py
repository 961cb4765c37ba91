"""Decides who answers a statement: the catalog, which holds no data, or the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from dpsql.serve.pgwire.commands import Query
from dpsql.serve.pgwire.errors import UNSUPPORTED, WireError
from dpsql.serve.uses import CATALOG_SCHEMAS, tables
from dpsql.sql.parse import LONGEST_TEXT

Route = Literal["catalog", "service"]


def route(query: Query, in_catalog: Callable[[str], bool]) -> Route:
    """The one whose relations the statement names, or the catalog if it names none.

    A statement that names relations of both is refused. One that is too long goes to the service,
    which refuses it unread. So does one with an open bracket, since its tables cannot be found; the
    service says where it does not parse.
    """
    words = [token.word for token in query.tokens]
    if len(query.text) > LONGEST_TEXT or words.count("(") != words.count(")"):
        return "service"
    is_catalog = [
        named.schema in CATALOG_SCHEMAS or (not named.schema and in_catalog(named.name))
        for named in tables(query.tokens)
    ]
    if all(is_catalog):
        return "catalog"
    if any(is_catalog):
        raise WireError(
            UNSUPPORTED, "catalog and data tables cannot be read in one statement",
            "The catalog is answered from the policy, data only in aggregate.",
            "Send two statements.",
        )  # fmt: skip
    return "service"
