"""The catalog of one role. It is made once, and answers rewritten queries without a charge."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpsql.engines.catalog.content import CatalogFailed, CatalogRows, Content, stream
from dpsql.engines.catalog.pool import WORKERS
from dpsql.engines.catalog.process import Statement
from dpsql.policy.model import Column, Policy
from dpsql.policy.types import type_name
from dpsql.serve.catalog.casts import packed_oid, unpack_column
from dpsql.serve.catalog.client_words import check_depth, check_size, check_words
from dpsql.serve.catalog.failures import RESOURCES, translate_failure
from dpsql.serve.catalog.listing import make_listing
from dpsql.serve.catalog.names import shown_names
from dpsql.serve.catalog.rewrite import quote_text, rewrite_query
from dpsql.serve.catalog.rows import Row, policy_rows, temporary_rows
from dpsql.serve.catalog.sessions import EFFECTIVE, Deeds, about
from dpsql.serve.catalog.temporary import temporary_copies, with_temporary
from dpsql.serve.catalog.types import (
    CHAR_TYPE,
    NAME_TYPE,
    PROCEDURE_TYPE,
    STORED,
    UNBOUNDED,
    oid_of,
    shape_of,
)
from dpsql.serve.catalog.words import INFORMATION
from dpsql.serve.pgwire import oids
from dpsql.serve.pgwire.asking import Answer, Description
from dpsql.serve.pgwire.commands import Query
from dpsql.serve.pgwire.crowd import Place
from dpsql.serve.pgwire.errors import WireError
from dpsql.serve.pgwire.execute import parameter_count
from dpsql.serve.pgwire.parameters import Value, items
from dpsql.serve.pgwire.probing import ABOUT_TYPES, find_list_parameters, infer_parameters
from dpsql.serve.pgwire.variables import DEFAULTS
from dpsql.serve.policy_snapshot import Who
from dpsql.serve.tokens import Token
from dpsql.serve.uses import CATALOG_SCHEMAS, tables
from dpsql.service import Service
from dpsql.service.views import ViewShape

_DATA = Path(__file__).parent / "data"
_DATABASE_OID = 5
SHAPES = "pgx_shapes"
"""The schema of the policy's tables without rows. Only ``shape`` names it."""
_VIEW = re.compile(r"CREATE VIEW (?:main\.)?([\w.]+)")
_NOTHING = "pgx_nothing"
"""A table without rows, with a column of each type."""
MANY_NAMES = frozenset({"pg_catalog.pg_proc"})
"""Relations with so many names that these are stored as text."""


@cache
def relations() -> Mapping[str, Sequence[tuple[str, str]]]:
    """The columns of PostgreSQL's relations, by ``schema.name``."""
    found: dict[str, Sequence[tuple[str, str]]] = json.loads((_DATA / "columns.json").read_text())
    return found


def _statements(file: str) -> list[str]:
    text = "\n".join(
        line for line in (_DATA / file).read_text().splitlines() if not line.startswith("--")
    )
    return [s for s in text.split(";\n") if s.strip()]


@cache
def macros() -> frozenset[str]:
    """The macros that define PostgreSQL's functions here."""
    text = (_DATA / "functions.sql").read_text()
    return frozenset(re.findall(r"CREATE MACRO (pg[ft]_\w+)\(", text))


def _own(name: str) -> str:
    schema, _, relation = name.partition(".")
    return f'{INFORMATION}."{relation}"' if schema == "information_schema" else f'"{relation}"'


def _names_in(table: pa.Table, relation: str) -> set[str]:
    """The values of all columns of type ``name`` in the rows of a relation."""
    kinds = dict(relations()[relation])
    found: set[str] = set()
    for column in table.column_names:
        if kinds.get(column) == "name":
            found.update(v for v in table.column(column).to_pylist() if v is not None)
    return found


def _made(names: Iterable[str], filled: Container[str]) -> Iterator[str]:
    """Statements that make the types, and PostgreSQL's relations except those of views.sql.

    Each column of a table has a copy of its enumeration. To save memory, relations without rows are
    views.
    """
    views = set(re.findall(_VIEW, (_DATA / "views.sql").read_text() + _DATABASES))
    letters = ", ".join(quote_text(chr(c)) for c in range(32, 127))
    yield f"CREATE TYPE {CHAR_TYPE} AS ENUM ('', {letters})"
    listed = ", ".join(map(quote_text, sorted(names, key=str.encode)))
    yield f"CREATE TYPE {NAME_TYPE} AS ENUM ({listed})"
    yield f"CREATE SCHEMA {INFORMATION}"
    yield f"CREATE SCHEMA {SHAPES}"
    kinds = {kind: f"c{i}" for i, kind in enumerate(sorted({*STORED.values(), "VARCHAR"}))}
    yield f"CREATE TABLE {_NOTHING} ({', '.join(f'{c} {kind}' for kind, c in kinds.items())})"
    for name, columns in relations().items():
        if _own(name).replace('"', "") in views:
            continue
        known = {**STORED, "name": "VARCHAR"} if name in MANY_NAMES else STORED
        typed = [(_name(c), known.get(t, "VARCHAR")) for c, t in columns]
        if _own(name) in filled:
            yield f"CREATE TABLE {_own(name)} ({', '.join(f'{c} {kind}' for c, kind in typed)})"
        else:
            shown = ", ".join(f"{kinds[kind]} AS {c}" for c, kind in typed)
            yield f"CREATE VIEW {_own(name)} AS SELECT {shown} FROM {_NOTHING}"


@cache
def _postgres_rows() -> Mapping[str, pa.Table]:
    """The rows of PostgreSQL's own relations.

    The files are small, and read one after the other, since each thread would keep memory.
    """
    return {
        f'"{path.stem}"': pq.ParquetFile(path).read(use_threads=False)
        for path in sorted(_DATA.glob("*.parquet"))
    }


@cache
def _postgres_streams() -> Mapping[str, bytes]:
    """The same rows, in the form in which they are sent to the process that answers."""
    return {name: stream(table) for name, table in _postgres_rows().items()}


@cache
def _numbers() -> Mapping[str, int]:
    """The oids of PostgreSQL's own relations."""
    found = _postgres_rows()['"pg_class"'].select(["oid", "relname"]).to_pydict()
    return {f"pg_catalog.{n}": o for o, n in zip(found["oid"], found["relname"], strict=True)}


@cache
def _procedures() -> Mapping[int, str]:
    """The names of PostgreSQL's own functions."""
    found = _postgres_rows()['"pg_proc"'].select(["oid", "proname"]).to_pydict()
    return dict(zip(found["oid"], found["proname"], strict=True))


def _table(rows: Sequence[Row]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    arrays = [pa.array([row.get(name) for row in rows]) for name in names]
    return pa.Table.from_arrays(arrays, names=names)


def _empty_table(name: str, columns: Sequence[Column]) -> str:
    """The statement that makes a table of the policy without rows.

    A query over it tells the columns that a statement would have.
    """
    return f"CREATE TABLE {SHAPES}.{_name(name)} ({', '.join(f'{_name(c.name)} {_stored(c)}' for c in columns)})"


def _stored(column: Column) -> str:
    return shape_of(type_name(column.declared) or column.kind.value)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_DATABASES = f"""
CREATE VIEW pg_database AS SELECT {_DATABASE_OID}::UINTEGER AS oid, pgf_current_database() AS datname,
  (SELECT min(oid) FROM pg_roles) AS datdba, 6::INTEGER AS encoding, 'c'::{CHAR_TYPE} AS datlocprovider,
  false AS datistemplate, true AS datallowconn, -1::INTEGER AS datconnlimit, 0::UINTEGER AS datfrozenxid,
  0::UINTEGER AS datminmxid, 1663::UINTEGER AS dattablespace, 'C' AS datcollate, 'C' AS datctype,
  NULL::VARCHAR AS daticulocale, NULL::VARCHAR AS datcollversion, NULL::VARCHAR[] AS datacl"""


class RoleCatalog:
    """PostgreSQL's catalog as a role sees it. The processes that answer get it on first use."""

    def __init__(self, policy: Policy, role: str, views: Mapping[str, ViewShape]) -> None:
        """The content is made on the first query."""
        self._policy, self._role, self._views = policy, role, views
        self._lock = threading.Lock()
        self._content: Content | None = None
        shown = policy.roles[role].tables
        named = (*policy.tables, *views)
        self._own_tables = {t for t in named if shown is None or t in shown}

    def has(self, name: str) -> bool:
        """Whether this is a catalog relation. A table of the policy with this name comes first."""
        return name not in self._own_tables and f"pg_catalog.{name}" in relations()

    def columns(
        self, query: Query, who: Who, values: Sequence[Value] | None,
        views: Sequence[ViewShape] = (),
    ) -> Description:  # fmt: skip
        """The columns and the parameter types of a catalog query."""
        if values is not None:
            return Description(self.answer(query, who, values, None, views).columns)
        count = parameter_count(query, ())
        types, values = infer_parameters(query.tokens, [0] * count, lambda _: False)
        try:
            found = self.answer(query, who, values, None, views)
        except WireError as error:
            if error.sqlstate in ABOUT_TYPES:
                types, _ = infer_parameters(
                    query.tokens, [0] * count, lambda v: self._takes(query, who, v)
                )
            found = self.answer(query, who, [None] * count, None, views)
        return Description(found.columns, types)

    def _takes(self, query: Query, who: Who, values: Sequence[Value]) -> bool:
        """Whether the catalog accepts values of these types."""
        try:
            self.answer(query, who, values)
        except WireError as error:
            if error.sqlstate in RESOURCES:  # other values would take as long again
                raise
            return False
        return True

    def answer(
        self, query: Query, who: Who, values: Sequence[Value], place: Place | None = None,
        views: Sequence[ViewShape] = (),
    ) -> Answer:  # fmt: skip
        """The rows of a catalog query.

        Without a ``place`` the query is only described, and its functions stop no statement.
        ``views`` are the temporary views of the session that asks.
        """
        numbers: dict[str, int] = {}
        for named in tables(query.tokens):
            schema = named.schema or "pg_catalog"
            numbers[named.alias] = _numbers().get(f"{schema}.{named.name}", 0)
            if schema not in CATALOG_SCHEMAS or f"{schema}.{named.name}" not in relations():
                shown = f"{named.schema}.{named.name}" if named.schema else named.name
                raise WireError("42P01", f'relation "{shown}" does not exist')
        tokens = with_temporary(query.tokens) if views else query.tokens
        return self._run(query, tokens, who, values, numbers, place or Place(), views)

    def interrupt(self, thread: int) -> None:
        """Stop the query that another thread runs."""
        WORKERS.interrupt(thread)

    def shape(self, query: Query, who: Who, values: Sequence[Value]) -> Answer:
        """The columns of a query over the policy's tables, as if all were empty."""
        tokens = list(query.tokens)
        for named in reversed(tables(tokens)):
            if named.schema not in ("", "public") or named.name not in self._own_tables:
                raise WireError("42P01", f'relation "{named.name}" does not exist')
            own = tokens[named.end - 1]
            where = [own._replace(kind="word", text=SHAPES), own._replace(kind="op", text=".")]
            tokens[named.at : named.end] = [*where, own]
        return self._run(query, tokens, who, values, {}, Place())

    def _run(
        self, query: Query, tokens: Sequence[Token], who: Who, values: Sequence[Value],
        numbers: Mapping[str, int], place: Place, views: Sequence[ViewShape] = (),
    ) -> Answer:  # fmt: skip
        check_size(query.tokens)
        check_words(query.tokens)
        check_depth(query.tokens, macros())
        sql = rewrite_query(tokens, macros(), numbers)
        lists = find_list_parameters(tokens)
        parameters = [
            items(v) if at in lists and isinstance(v, str) else _plain(v)
            for at, v in enumerate(values)
        ]
        named = {t.name for t in tokens}
        deeds = Deeds(place)
        statement = Statement(
            self._made(), sql, parameters,
            {
                "database": who.database, "login": who.login, **about(place, named),
                "views": temporary_rows(views),
            },
            deeds if named & EFFECTIVE else None,
        )  # fmt: skip
        try:
            found = WORKERS.run(f"{self._policy.path}\0{who.login}", statement)
        except CatalogFailed as failure:
            raise translate_failure(failure, named) from None
        return replace(
            _answer(query, found), warnings=tuple(deeds.warnings), settings=tuple(deeds.settings)
        )

    def _made(self) -> Content:
        with self._lock:
            if self._content is None:
                self._content = self._make()
            return self._content

    def _make(self) -> Content:
        made = policy_rows(self._policy, self._role, DEFAULTS, self._views)
        own = {name: _table(rows) for name, rows in made.items()}
        merged = dict(_postgres_rows())
        names = set[str]().union(
            *(_names_in(table, f"pg_catalog.{name}") for name, table in own.items()),
            *(
                _names_in(table, relation)
                for name, table in merged.items()
                if (relation := f"pg_catalog.{name.strip(chr(34))}") not in MANY_NAMES
            ),
        )
        before = _made(names, {*merged, *(f'"{name}"' for name in own)})
        after = [
            "UPDATE pg_namespace SET nspacl = NULL",
            "UPDATE pg_tablespace SET spcacl = NULL",
            *_statements("functions.sql"), _DATABASES, *_statements("views.sql"),
            *temporary_copies(_statements("views.sql")),
        ]  # fmt: skip
        shapes = self._shapes()
        after += [_empty_table(name, columns) for name, columns in shapes.items()]
        filled = dict(_postgres_streams())
        filled |= {f"main.{name}": stream(table) for name, table in own.items()}
        shown = [(name, column.name) for name, columns in shapes.items() for column in columns]
        named = make_listing(relations(), macros(), SHAPES, shown)
        return Content(tuple(before), filled, after, named)

    def _shapes(self) -> Mapping[str, Sequence[Column]]:
        """The columns of the tables that the role sees."""
        known = {t.name: tuple(t.columns.values()) for t in self._policy.tables.values()}
        known |= {view.name: view.columns for view in self._views.values()}
        return {name: c for name, c in known.items() if c and name in self._own_tables}


def role_catalog(service: Service, role: str) -> RoleCatalog:
    """The catalog that a role of an open service sees."""
    return RoleCatalog(service.policy, role, service.views)


def _answer(query: Query, found: CatalogRows) -> Answer:
    names = shown_names(query.tokens, [name for name, _ in found.columns])
    kinds = [packed_oid(kind) or oid_of(kind) for _, kind in found.columns]
    columns = map(oids.column, names, kinds)
    arrays = [
        _shown(array, kind) for array, (_, kind) in zip(found.table.columns, found.columns, strict=True)
    ]  # fmt: skip
    return Answer(tuple(columns), pa.Table.from_arrays(arrays, names=found.table.column_names))


def _shown(array: pa.ChunkedArray, kind: str) -> pa.ChunkedArray | pa.Array:
    """A column as it is sent: functions with their names, decimals without trailing zeros."""
    if packed_oid(kind) is not None:
        return pa.array(unpack_column(array, kind))
    if kind == PROCEDURE_TYPE:
        known = {0: "-", **_procedures()}
        numbers = [None if v is None else int(v) for v in array.to_pylist()]
        pairs = [None if n is None else {"oid": n, "name": known.get(n, str(n))} for n in numbers]
        return pa.array(pairs, pa.struct([("oid", pa.uint32()), ("name", pa.string())]))
    if kind == UNBOUNDED:
        return pa.array([None if v is None else _short(v) for v in array.to_pylist()])
    return array


def _short(value: Decimal) -> Decimal:
    """The same number without trailing zeros; ``normalize`` would round it."""
    text = f"{value:f}"
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


def _plain(value: Value) -> Any:
    """A value as the engine takes it. A decimal is passed exactly, or refused."""
    if not isinstance(value, Decimal):
        return value
    if not value.is_finite():
        return float(value)
    plain = _short(value)
    whole, scale = plain.adjusted() + 1, -int(plain.as_tuple().exponent)
    if whole > 28 or scale > 10:
        raise WireError(
            "22003", "a numeric has at most 28 digits before its point, and 10 behind it",
            "Constants are computed in fixed point.",
        )  # fmt: skip
    return plain
