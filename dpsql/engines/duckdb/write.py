"""The writer of statements for DuckDB: the one place where their text is made.

Every class of node is matched. No text of a client is copied: names and constants are quoted, and
``relations`` writes the rows of the query below from its own tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.duckdb.groups import write_groups
from dpsql.engines.duckdb.layout import Clause, Text, lay_out
from dpsql.engines.duckdb.relations import Writer
from dpsql.engines.duckdb.terms import Scope, term
from dpsql.ir.public_groups import PublicGroups
from dpsql.ir.statements import (
    Alias,
    CommonTable,
    EveryGroup,
    From,
    JoinKeys,
    JoinPath,
    JoinUsing,
    Query,
    Read,
    Select,
    TableRows,
    Term,
    UnionAll,
)


def write(query: Query) -> str:
    """The text of a query's statement."""
    found: dict[str, CommonTable] = {}
    for shared in _shared(query):
        assert found.setdefault(shared.name, shared) == shared, "a name stands for one query"
    body = _query(query)
    if not found:
        return lay_out(body)
    tables = tuple(
        (
            f"{quote_name(s.name)} AS {'' if s.stored else 'NOT '}MATERIALIZED ",
            _query(s.query),
        )
        for s in found.values()
    )
    return lay_out(Text((Clause("WITH", tables), *body.clauses)))


def write_rows(rows: TableRows) -> str:
    """The text of a statement for the rows of a table, with the table's column names."""
    items = tuple((f"r.{name} AS {quote_name(column)}",) for name, column in rows.columns)
    clauses = [
        Clause("SELECT", items),
        Clause("FROM", ((_query(rows.query), " AS r"),)),
    ]
    if rows.order:
        order = tuple((f"r.{name} ASC NULLS LAST",) for name in rows.order)
        clauses.append(Clause("ORDER BY", order))
    return lay_out(Text(tuple(clauses)))


def _shared(query: Query | From) -> Iterator[CommonTable]:
    """The common tables of a query, each after those that it reads."""
    match query:
        case Read() | PublicGroups():
            return
        case CommonTable(query=inner):
            yield from _shared(inner)
            yield query
        case (
            EveryGroup(sums=inner)
            | Alias(query=inner)
            | JoinPath(rows=inner)
            | Select(source=inner)
        ):
            yield from _shared(inner)
        case UnionAll(queries=queries):
            for inner in queries:
                yield from _shared(inner)
        case JoinUsing(left=left, right=right) | JoinKeys(left=left, right=right):
            yield from _shared(left)
            yield from _shared(right)
        case _:
            assert_never(query)


def _query(query: Query) -> Text:
    match query:
        case Read():
            return _read(query)
        case PublicGroups():
            return Text((Clause(write_groups(query)),))
        case EveryGroup():
            return _every_group(query)
        case Select():
            return _select(query)
        case UnionAll(queries=queries):
            first, *others = map(_query, queries)
            joined = (c for o in others for c in (Clause("UNION ALL"), *o.clauses))
            return Text((*first.clauses, *joined))
        case CommonTable(name=name):
            return Text((Clause("SELECT", (("*",),)), Clause("FROM", ((quote_name(name),),))))
        case _:
            assert_never(query)


def _read(query: Read) -> Text:
    """Rows with computed columns. An expression that is used several times has a query below."""
    block = Writer().open(query.relation)
    source = block.tail().removeprefix(" FROM ")
    lifted: dict[str, str] = {}
    above, inner, outer = Scope(block.items, lifted), [], []
    for alias, node in query.items:
        scope = Scope(block.items)
        text = term(node, scope)
        inner += [] if scope.repeats else [(alias, text)]
        outer.append((alias, term(node, above) if scope.repeats else alias))
    if not lifted:
        return _rows(inner, source)
    inner += [(alias, text) for text, alias in lifted.items()]
    return Text((_listed(outer), Clause("FROM", ((_rows(inner, source), " AS x"),))))


def _rows(texts: list[tuple[str, str]], source: str) -> Text:
    return Text((_listed(texts), Clause("FROM", ((source,),)) if source else Clause("")))


def _listed(texts: list[tuple[str, str]]) -> Clause:
    return Clause("SELECT", tuple((_aliased(text, alias),) for alias, text in texts) or (("1",),))


def _aliased(text: str, alias: str) -> str:
    return text if text == alias else f"{text} AS {alias}"


def _term(node: Term) -> str:
    return term(node, Scope())


def _select(select: Select) -> Text:
    names = [alias for alias, _ in select.items]
    texts = [(alias, _term(node)) for alias, node in select.items]
    head = _listed(texts)
    clauses = [
        replace(head, head="SELECT DISTINCT") if select.distinct else head,
        Clause("FROM", (tuple(_from(select.source)),)),
    ]
    if select.where:
        clauses.append(Clause("WHERE", tuple((_term(w),) for w in select.where), " AND "))
    if select.group:
        clauses.append(Clause("GROUP BY", tuple((str(names.index(g) + 1),) for g in select.group)))
    if select.having is not None:
        clauses.append(Clause("HAVING", ((_term(select.having),),)))
    if select.order:
        order = tuple((f"{_term(key)} ASC NULLS LAST",) for key in select.order)
        clauses.append(Clause("ORDER BY", order))
    if select.limit is not None:
        clauses.append(Clause("LIMIT", ((str(select.limit),),)))
    return Text(tuple(clauses))


def _from(source: From) -> Iterator[str | Text]:
    match source:
        case Alias(query=CommonTable(name=name), alias=alias):
            yield f"{quote_name(name)} AS {alias}"
        case Alias(query=query, alias=alias):
            yield _query(query)
            yield f" AS {alias}"
        case JoinUsing(kind=kind, left=left, right=right, using=using):
            yield from _from(left)
            yield f" {'' if kind == 'inner' else kind.upper() + ' '}JOIN "
            yield from _from(right)
            yield f" USING ({', '.join(using)})"
        case JoinKeys(left=left, right=right, of=of, keys=keys):
            yield from _from(left)
            yield " LEFT JOIN "
            yield from _from(right)
            same = (f"{of}.{key} IS NOT DISTINCT FROM {right.alias}.{key}" for key in keys)
            yield f" ON {' AND '.join(same) or 'TRUE'}"
        case JoinPath():
            yield from _led(source)
        case _:
            assert_never(source)


def _led(source: JoinPath) -> Iterator[str | Text]:
    """Rows joined with one parent after the other, with the aliases ``o0`` and so on."""
    yield from _from(source.rows)
    holder, columns = source.rows.alias, source.columns
    for number, step in enumerate(source.path):
        parent = f"o{number}"
        pairs = zip(columns, step.key, strict=True)
        match = " AND ".join(f"{holder}.{a} = {parent}.{quote_name(b)}" for a, b in pairs)
        yield f" JOIN {quote_name(step.references)} AS {parent} ON {match}"
        following = source.path[number + 1 : number + 2]
        holder, columns = parent, tuple(quote_name(c) for s in following for c in s.columns)


def _every_group(node: EveryGroup) -> Text:
    keys = node.groups.keys
    items = [(key, f"c.{key}") for key in keys]
    items += [(number, f"coalesce(a.{number}, 0)") for number in node.numbers]
    same = " AND ".join(f"c.{key} IS NOT DISTINCT FROM a.{key}" for key in keys)
    source = (_query(node.groups), " AS c LEFT JOIN ", _query(node.sums), f" AS a ON {same}")
    shown = tuple(
        (text if text == f"c.{alias}" else f"{text} AS {alias}",) for alias, text in items
    )
    order = tuple((f"c.{key} ASC NULLS LAST",) for key in keys)
    return Text((Clause("SELECT", shown), Clause("FROM", (source,)), Clause("ORDER BY", order)))
