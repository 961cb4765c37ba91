"""Shows a session's temporary views in its catalog.

Some relations have a copy that lists temporary views too. Statements of sessions with such views
are rewritten to read the copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dpsql.serve.catalog.words import INFORMATION, TEMPORARY, WITH_TEMPORARY
from dpsql.serve.tokens import Token
from dpsql.serve.uses import tables

_BELOW = re.compile(r"(FROM|JOIN) (pg_class|pg_attribute|pg_namespace)\b")
"""The relations in views.sql that must be replaced by copies with the session's views."""


def temporary_copies(statements: Sequence[str]) -> Iterator[str]:
    """Copies of the catalog's views over tables and columns, which list the session's views too."""
    for name, schema in WITH_TEMPORARY.items():
        own = f"{INFORMATION}.{name}" if schema == "information_schema" else name
        start = f"CREATE VIEW {own} AS "
        for statement in statements:
            if statement.startswith(start):
                below = _BELOW.sub(rf"\1 {TEMPORARY}.\2", statement.removeprefix(start))
                yield f"CREATE VIEW {TEMPORARY}.{name} AS {below}"


def with_temporary(tokens: Sequence[Token]) -> list[Token]:
    """The statement with relations replaced by their copies that list temporary views."""
    found = list(tokens)
    for named in reversed(tables(tokens)):
        if WITH_TEMPORARY.get(named.name) == (named.schema or "pg_catalog"):
            own = found[named.end - 1]
            where = [own._replace(kind="word", text=TEMPORARY), own._replace(kind="op", text=".")]
            found[named.at : named.end] = [*where, own]
    return found
