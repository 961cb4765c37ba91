"""Corrects misspelled names of tables to similar names that the role may see."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from sqlglot import exp

from dpsql.diagnostics.span import Span
from dpsql.sql.bind.scope import fold_name, spell_name
from dpsql.sql.parse import Source
from dpsql.sql.suggest.candidate import LOOK_UP, MEND, Candidate, Case, Change
from dpsql.sql.suggest.places import at, upward
from dpsql.sql.suggest.writer import touch

CATALOG = "SELECT table_name, column_name, type FROM dpsql.policy"
"""A query of all tables and columns that may be asked about."""


def renamed_table(case: Case, span: Span | None, visible: Sequence[str]) -> Iterator[Change]:
    """The statement with similar names for the table that does not exist."""
    found = at(case.tree, span)
    table = next((n for n in upward(found) if isinstance(n, exp.Table)), None) if found else None
    if table is None or not isinstance(table.this, exp.Identifier):
        return
    name = fold_name(table.this)
    plain = {"".join(c for c in known.lower() if c.isalnum()): known for known in visible}
    wanted = "".join(c for c in name.lower() if c.isalnum())
    near = difflib.get_close_matches(wanted, sorted(plain), 2, 0.7)
    for order, known in enumerate(near):
        yield _as(case, table, plain[known], order)


def _as(case: Case, table: exp.Table, known: str, order: int) -> Change:
    tree = case.copy()
    name = table.name
    for node in list(tree.find_all(exp.Table)):
        if node.name == name and node.args.get("db") == table.args.get("db"):
            touch(node)
            node.set("this", exp.to_identifier(known, quoted=spell_name(known) != known))
            node.set("db", None)
            node.set("catalog", None)
    for column in tree.find_all(exp.Column):
        if column.table == name and not _is_alias(tree, name):
            touch(column)
            column.set("table", exp.to_identifier(known, quoted=spell_name(known) != known))
    return Change(tree, MEND + order, (f"{known} instead of {name}",))


def _is_alias(tree: exp.Expr, name: str) -> bool:
    return any(table.alias == name for table in tree.find_all(exp.Table, exp.Subquery))


def catalog_question(source: Source) -> Iterator[Candidate]:
    """The query of what may be asked about; it has the same meaning in every dialect."""
    if source.text.strip() != CATALOG:
        note = "lists the tables and columns that you may ask about"
        yield Candidate(CATALOG, LOOK_UP, (note,), loses=True)
