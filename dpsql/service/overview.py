r"""SHOW TABLES and DESCRIBE list the tables, views and columns that a role may ask about.

They are read in the syntax of several databases. ``SHOW TABLES`` and ``\d`` list the tables and
views of the role. ``DESCRIBE orders``, ``DESC orders``, ``SHOW COLUMNS FROM orders`` and
``\d orders`` list the columns of one of them.

Claim: their answers depend only on the policy and on public tables, as those of ``dpsql.policy``
    do. They cost nothing.
Assumes: a table that the policy calls public is public: values that a column takes from it are
    shown.
Argument: the rows are made by ``own_tables.relations``, which asks no engine and writes nothing to
    the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.diagnostics.span import Span
from dpsql.policy.types import Kind

Row = Sequence[object]
Columns = tuple[tuple[str, Kind], ...]
SPACE = r"(?:\s|--[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)"
"""White space or a comment.

Every repetition of it is possessive, so that no text makes the regular expression backtrack into
it.
"""
NAME = r'(?:"(?:[^"]|"")++"|[^\W\d][\w$]*+)'
_TABLES = re.compile(rf"{SPACE}*+(?:show{SPACE}++tables|\\dt?)\s*+;?\s*+", re.IGNORECASE)
_COLUMNS = re.compile(
    rf"{SPACE}*+(?:(?:describe|desc)(?:{SPACE}++table)?|show{SPACE}++columns{SPACE}++(?:from|in)|\\d)"
    rf"{SPACE}++(?:(?:public|main)\s*+\.\s*+)?({NAME})\s*+;?\s*+",
    re.IGNORECASE,
)
TABLE_COLUMNS: Columns = (
    ("table_name", Kind.TEXT), ("type", Kind.TEXT), ("unit", Kind.TEXT), ("description", Kind.TEXT),
)  # fmt: skip
COLUMN_COLUMNS: Columns = (
    ("column_name", Kind.TEXT), ("type", Kind.TEXT), ("nullable", Kind.BOOLEAN),
    ("values", Kind.TEXT), ("description", Kind.TEXT),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a view that the role sees."""

    name: str
    type: str
    unit: str | None
    description: str | None
    columns: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The subject of such a statement: all relations, or the columns of the one named."""

    name: str | None = None
    place: Span | None = None


def overview_of(text: str) -> Wanted | None:
    """The subject of a statement of this kind; None for any other statement.

    >>> overview_of("SHOW TABLES;"), overview_of('desc public."Orders"').name
    (Wanted(name=None, place=None), 'Orders')
    >>> overview_of("DESCRIBE SELECT 1")
    """
    if _TABLES.fullmatch(text):
        return Wanted()
    found = _COLUMNS.fullmatch(text)
    if found is None:
        return None
    return Wanted(plain_name(found[1]), Span(*found.span(1)))


def plain_name(written: str) -> str:
    """The name without its quotes. A name that is not quoted is folded to lower case."""
    return written[1:-1].replace('""', '"') if written.startswith('"') else written.lower()


def overview_rows(
    wanted: Wanted, relations: Iterable[Relation], text: str
) -> tuple[Columns, list[Row]]:
    """The columns and rows of the answer."""
    known = list(relations)
    if wanted.name is None:
        return TABLE_COLUMNS, [(r.name, r.type, r.unit, r.description) for r in known]
    found = [r for r in known if r.name.casefold() == wanted.name.casefold()]
    if not found:
        refusal = Refusal(
            "DP104",
            f'there is no table "{wanted.name}"',
            "A table that the policy does not list for this role does not exist.",
            f"Known: {', '.join(r.name for r in known)}.",
            wanted.place,
        )
        raise Refused(refusal, text=text)
    return COLUMN_COLUMNS, list(found[0].columns)
