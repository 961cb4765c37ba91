"""The closed list of names that catalog statements may use in the engine that holds the catalog.

Clients write PostgreSQL's names, and the rewrite replaces some of them. The result is checked on
the tree that the engine itself parsed. So a name that the rewrite lets through by mistake does not
run either.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsql.engines.duckdb.allowlist import OPERATORS, PLAIN_TYPES, Listing
from dpsql.serve.catalog.words import (
    BUILTIN,
    ELSEWHERE,
    INFORMATION,
    REG,
    TEMPORARY,
    WITH_TEMPORARY,
)

_JSON = frozenset({"->>", "to_json"})
_SETS = frozenset({"@>", "<@", "&&", "^@"})
_SHOWN = ("regclass", "regtype", "regnamespace", "json", "jsonb", "name", "varchar", "bpchar")
_REWRITTEN = frozenset({
    "list_transform", "struct_pack", "pgx_login", "pgx_series", "pgx_must_be",
    "pgx_matched",
    "pgx_names",
    *(f"pgx_{kind}" for kind in REG - {"regprocedure"}),
    *(f"pgx_{kind}_name" for kind in REG - {"regprocedure"}),
    *(f"pgx_as_{name}" for name in _SHOWN),
})  # fmt: skip
"""Functions that only the rewrite writes. Clients that write these names are refused earlier."""
_ROWS = frozenset({"unnest", "generate_series"})


def make_listing(
    relations: Iterable[str], macros: Iterable[str], shapes: str, own: Iterable[tuple[str, str]]
) -> Listing:
    """The list of all names that are allowed.

    ``relations`` are ``schema.name``. ``own`` has a pair of table and column for each column of the
    policy's tables, which are in the schema ``shapes``.
    """
    named = {_place(name) for name in relations}
    own = list(own)
    kept = frozenset(macros)
    called = frozenset(name for name in kept if name.startswith("pgf_"))
    functions = OPERATORS | BUILTIN | frozenset(ELSEWHERE.values()) | _JSON | _SETS | _REWRITTEN
    temporary = {(TEMPORARY, relation) for relation in WITH_TEMPORARY}
    return Listing(
        relations=frozenset(named | temporary | {(shapes, table.lower()) for table, _ in own}),
        functions=functions | called,
        rows=_ROWS | (kept - called),
        windows=BUILTIN | {"count_star"},
        types=PLAIN_TYPES,
        columns=frozenset(column.lower() for _, column in own),
    )


def _place(name: str) -> tuple[str, str]:
    schema, _, relation = name.partition(".")
    return (INFORMATION if schema == "information_schema" else "", relation.lower())
