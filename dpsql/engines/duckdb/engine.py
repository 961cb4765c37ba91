"""DuckDB, read-only and locked. Every failure becomes one constant message."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path

import duckdb
import pyarrow as pa

from dpsql.diagnostics.quote import place
from dpsql.diagnostics.refusal import Ended, EngineFailed, SourceMismatch, Stopped, TooLarge
from dpsql.engines.duckdb import allocator
from dpsql.engines.duckdb.allowlist import NotListed, StatementCheck
from dpsql.engines.duckdb.allowlist.generated import GENERATED
from dpsql.engines.duckdb.collations import BYTE_BY_BYTE, collations
from dpsql.engines.duckdb.definitions import check_macros, computed_views, unsteady
from dpsql.engines.duckdb.fetch import fetch
from dpsql.engines.duckdb.lockdown import lock
from dpsql.engines.duckdb.write import write, write_rows
from dpsql.engines.engine import Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.engines.facts_file import State
from dpsql.engines.incident import record_incident
from dpsql.engines.lookups import one_row
from dpsql.execution import check, has_ended, stoppable
from dpsql.ir.statements import Query, TableRows
from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.policy.model import Limits
from dpsql.policy.prepared_copies import CATALOG, OVER_LIMIT_CATALOG
from dpsql.policy.source import SourceDescription, TableDescription

LOCKED = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}
"""Settings for opening a database. All openings in one process, and all connections, share them."""
VERIFYING = 6 * 3600.0
"""Seconds for one query about declarations. No client waits while a policy is opened."""
MOST_RELATIONS, LONGEST_RELATION = 64, 10_000
"""The most bound statements of a thread, and characters of one: the memory pool omits them."""
PART, PARTS = 65_536, 4
"""The rows of one part of a result, and the parts that are read at once."""
COUNTING = "256MB"
"""The memory for counting groups, of which there are at most two million."""
TURN = 0.05
"""Seconds between two checks whether to go on waiting."""
_KEEPING = threading.Lock()
"""Services of one process share the rows that are kept of a database. One writes them at a time."""
IDENTITY = {"default_collation": "''", "TimeZone": "'UTC'", "Calendar": "'gregorian'"}
"""Settings with which texts are compared byte by byte, and times are in one zone."""
_OPEN: weakref.WeakSet[DuckDB] = weakref.WeakSet()
"""The engines of this process. Those of one path share one database, as it was opened first."""
UNSTEADY = (
    "statistics_propagation", "compressed_materialization", "join_filter_pushdown",
    "row_group_pruner", "join_order", "build_side_probe_side",
)  # fmt: skip
"""The optimizers that plan a statement, or skip parts of a table, by the stored values.

They are disabled under strict timing. One key far from all others decides between arrays and hash
tables, one person's rows decide whether a block is read or skipped, and the number of rows decides
which side of a join is searched.
"""


class DuckDB:
    """An open database file. Safe to use from several threads: each gets a cursor."""

    def __init__(self, path: Path, limits: Limits, copies: Path | None = None) -> None:
        """Open the file, and its prepared copies if any, read-only. Lock the configuration."""
        self._timeout = limits.timeout_seconds
        self._local = threading.local()
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": limits.memory,
            **LOCKED,
        }
        if limits.threads:
            config["threads"] = limits.threads
        if limits.strict_timing:
            config["disabled_optimizers"] = ",".join(UNSTEADY)
        if not path.is_file():
            raise SourceMismatch(f"{place(path)}: there is no such database file")
        _private(path.with_name(f"{path.name}.tmp"))
        self.path, self.state = path, State.of(path)
        if any(o.path == path and not o.unchanged() for o in tuple(_OPEN)):
            raise SourceMismatch(
                f"{path}: the database has changed since this process opened it; restart it"
            )
        try:
            self._root = duckdb.connect(str(path), read_only=True, config=config)
            check_macros(self._root)
            self.prepared = _sealed(self._root, path, copies)
        except duckdb.Error as error:
            raise SourceMismatch(
                f"{place(path)}: not a DuckDB database that can be opened: {error}"
            ) from None
        _OPEN.add(self)
        if not self.unchanged():
            self.close()
            raise SourceMismatch(f"{path}: the database was written to meanwhile; open it again")

    def describe(self) -> SourceDescription:
        """The catalog of the file."""
        columns: dict[str, dict[str, str]] = {}
        not_null: dict[str, set[str]] = {}
        found = self._root.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns()"
            " WHERE NOT internal AND database_name = current_database()"
            " AND schema_name = current_schema() ORDER BY table_name, column_index"
        ).fetchall()
        for table, column, engine_type, nullable in found:
            columns.setdefault(table, {})[column] = engine_type
            not_null.setdefault(table, set()).update([] if nullable else [column])
        cursor = self._root.cursor()
        why, made = unsteady(cursor), computed_views(cursor)
        for table, types in columns.items():
            types.update(collations(cursor, table, types))
        unique: dict[str, list[frozenset[str]]] = {}
        for table, names in self._root.execute(
            "SELECT table_name, constraint_column_names FROM duckdb_constraints()"
            " WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE')"
            " AND database_name = current_database() AND schema_name = current_schema()"
        ).fetchall():
            unique.setdefault(table, []).append(frozenset(names))
        tables = {
            name: TableDescription(
                found_columns, frozenset(not_null[name]), tuple(unique.get(name, ())),
                unsteady=why.get(name.lower(), ""), computed=name.lower() in made,
            )
            for name, found_columns in columns.items()
        }  # fmt: skip
        return SourceDescription(tables)

    def measure(self, sql: str, parameters: Mapping[str, Value]) -> ExactRows:
        """Run a generated statement and seal its integers.

        Of many groups, some parts are read now, and the others when noise is added to them: the
        number of groups that are not public, and so their memory, depends on private rows.
        """
        parts = self._parts("measure", sql, dict(parameters) or None)
        read = list(islice(parts, PARTS))
        if len(read) < PARTS:
            return ExactRows(pa.concat_tables(read))
        return ExactRows(chain(read, parts), parts.close)

    def read_public(self, sql: str) -> pa.Table:
        """Run a generated statement over public tables, within the memory of the execution."""
        cursor = self._cursor()
        failure: EngineFailed | Ended
        try:
            with stoppable(cursor.interrupt, self._timeout):
                return fetch(self._relation(cursor, sql, None))
        except Ended as ended:
            failure = ended
        except Exception as error:  # noqa: BLE001 (as above)
            failure = Stopped() if has_ended() else record_incident("read public", error, sql)
        self._local.relations.pop(sql, None)
        raise failure

    def is_empty(self, query: Query | str) -> bool:
        """Whether a query has no row. A query as text is one that the second check has made."""
        sql = query if isinstance(query, str) else write(one_row(query))
        found = self._run("look up declarations", sql, None, VERIFYING)
        return bool(found.num_rows == 0)

    def largest(self, query: Query) -> int:
        """The one number of a query about public tables."""
        found = self._run("look up public tables", write(query), None, VERIFYING)
        [number] = found.column(0).to_pylist()
        return int(number)

    def numbers(self, query: Query) -> tuple[int, ...]:
        """The one row of a counting query, for the owner's terminal only."""
        (row,) = self._run("count rows", write(query), None, VERIFYING).to_pylist()
        return tuple(int(number) for number in row.values())

    def unchanged(self) -> bool:
        """Whether the file at the path is still the opened one, and was not written to."""
        return self.path.exists() and State.of(self.path).content == self.state.content

    def keep(self, name: str, table: str, rows: TableRows) -> bool:
        """Keep rows of a table in memory, for all engines of this database."""
        quoted, cursor = name.replace('"', '""'), self._cursor()
        made = f'CREATE TABLE IF NOT EXISTS {OVER_LIMIT_CATALOG}."{quoted}" AS {write_rows(rows)}'
        try:
            with _KEEPING, stoppable(cursor.interrupt, VERIFYING):
                cursor.execute(made)
        except duckdb.Error as error:
            record_incident(f"keep rows of {table}", error, made)
            return False
        return True

    def close(self) -> None:
        """Close the database. A statement that does not stop ends with the process."""
        with suppress(duckdb.Error):
            self._root.close()
        _OPEN.discard(self)

    def _run(
        self, what: str, sql: str, parameters: dict[str, Value] | None, seconds: float | None = None
    ) -> pa.Table:
        """Run a statement under a deadline. Every failure becomes an incident for the operator."""
        cursor = self._cursor()
        failure: EngineFailed
        try:
            with stoppable(cursor.interrupt, seconds or self._timeout):
                return self._relation(cursor, sql, parameters).to_arrow_table()
        except Exception as error:  # noqa: BLE001 (every cause must look the same to analysts)
            self._local.relations.pop(sql, None)
            failure = record_incident(what, error, sql)
        raise failure

    def _parts(
        self, what: str, sql: str, parameters: dict[str, Value] | None
    ) -> Generator[pa.Table]:
        """The same, part by part. No variable here holds rows: a traceback has all variables."""
        cursor = self._cursor()
        failure: EngineFailed
        try:
            with stoppable(cursor.interrupt, self._timeout):
                yield from self._read(cursor, sql, parameters)
        except Exception as error:  # noqa: BLE001 (as above)
            self._local.relations.pop(sql, None)
            failure = record_incident(what, error, sql)
        else:
            return
        raise failure

    def _read(
        self, cursor: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, Value] | None
    ) -> Iterator[pa.Table]:
        """The parts of a result, after a first part without rows."""
        with closing(self._relation(cursor, sql, parameters).to_arrow_reader(PART)) as reader:
            yield reader.schema.empty_table()
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def _relation(
        self, cursor: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, Value] | None
    ) -> duckdb.DuckDBPyRelation:
        """The relation of a statement, bound once. It is lazy, so that each use runs it anew.

        A statement with parameters differs from run to run, so it is bound each time. So is a
        relation that is not lazy, because it has its rows already.
        """
        if parameters is not None:
            return cursor.sql(sql, params=parameters)
        kept: OrderedDict[str, duckdb.DuckDBPyRelation] = self._local.relations
        found = kept.pop(sql, None)
        if found is None:  # not `or`: asking a relation whether it is true counts its rows
            found = cursor.sql(sql)
        if found.type == "QUERY_RELATION" and len(sql) <= LONGEST_RELATION:
            kept[sql] = found
            if len(kept) > MOST_RELATIONS:
                kept.popitem(last=False)
        return found

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._local, "cursor", None)
        if cursor is None:
            cursor = self._local.cursor = self._root.cursor()
            self._local.relations = OrderedDict()
        return cursor


def _private(folder: Path) -> None:
    """Make the folder of spilled data privately, before the engine makes it readable for all.

    It stays, as any other opener would make it anew. It is not encrypted: DuckDB would need
    ``httpfs``, a network client, or ``force_mbedtls_unsafe``, whose keys are predictable.

    Claim: if the user who runs this made the folder, nobody else reads its contents.
    Assumes: the system enforces the modes of folders; its administrator is trusted.
    Argument: the folder is made with mode 0700, and gets it again if it belongs to this user.
    """
    with suppress(OSError):  # the engine cannot write there either
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid == os.geteuid():
            folder.chmod(0o700)


def check_owner(copies: Path, database: Path) -> None:
    """Refuse copies that somebody else may have written: they say which rows belong to which unit.

    Copies, and links to them, must belong to the database's owner, to the user who runs this, or to
    root. Nobody may write them who may not write the database.
    """
    mine, own = database.stat(), copies.stat()
    strange = {copies.lstat().st_uid, own.st_uid} - {mine.st_uid, os.geteuid(), 0}
    if strange or own.st_mode & ~mine.st_mode & 0o022:
        raise SourceMismatch(
            f"{place(copies)}: others than the owner of the database may have written this; remove it, and"
            " run `dpsql prepare` again"
        )


def _sealed(root: duckdb.DuckDBPyConnection, path: Path, copies: Path | None) -> str | None:
    """Open the copies, then lock the database. Returns the document of the copies.

    A database that this process has open already is locked, with the copies of that time.
    """
    (done,) = root.execute("SELECT current_setting('lock_configuration')").fetchone() or (False,)
    if not done:
        if copies is not None and copies.is_file():
            check_owner(copies, path)
            name = str(copies).replace("'", "''")
            root.execute(f"ATTACH '{name}' AS {CATALOG} (READ_ONLY)")
        root.execute(f"ATTACH ':memory:' AS {OVER_LIMIT_CATALOG} (READ_WRITE)")
        for setting, value in IDENTITY.items():
            root.execute(f"SET GLOBAL {setting} = {value}")
        allocator.keep_little(root)
    settings = "SELECT current_setting('default_collation'), current_setting('TimeZone')"
    collation, zone = root.execute(settings).fetchone() or ("", "UTC")
    if collation.lower() not in BYTE_BY_BYTE:
        raise SourceMismatch(
            f"{path}: this process has set default_collation for it; open it without: texts that a"
            " collation takes for equal would be one group, named by whichever row came first"
        )
    if zone != "UTC":
        raise SourceMismatch(
            f"{path}: this process has set TimeZone for it; open it without: instants are read in UTC"
        )
    lock(root)
    there = root.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    if copies is None or (CATALOG,) not in there:
        return None
    found = root.execute(f'SELECT document FROM {CATALOG}."dpsql prepared"').fetchone()
    return None if found is None else str(found[0])


class Constants:
    """An in-memory DuckDB without data. It evaluates queries over constants, one at a time.

    Claim: whether a query is counted depends on its text alone, unless its execution ends.
    Assumes: the engine has no data, and no volatile function, so equal texts give equal results.
    Argument: it is checked by its text, and its deadline is the execution's.
    """

    def __init__(self) -> None:
        """Open and lock it."""
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1, "memory_limit": COUNTING, "temp_directory": "", **LOCKED,
        }  # fmt: skip
        self._connection = duckdb.connect(":memory:", config=config)
        lock(self._connection)
        self._check = StatementCheck(GENERATED)
        self._counts = Cache[str, int](Use.CACHED_COUNTS, 10_000)
        self._lock = threading.Lock()

    def count(self, sql: str) -> int:
        """The number of rows of a query. It is remembered, since it depends on the text alone."""
        found, counting = self._counts.get(sql), f"SELECT count(*) FROM ({sql}) AS c"
        self._admit(counting)  # its steps count, also where the number is known
        if found is None:
            with self._alone():
                found = self._counted(counting)
            self._counts.put(sql, found)
        return found

    def _admit(self, sql: str) -> None:
        try:
            self._check.check(sql)
            return
        except NotListed as error:
            failure = record_incident("count values", error, sql)
        raise failure

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait for those who count first, but no longer than this execution lasts."""
        while not self._lock.acquire(timeout=TURN):
            check()
        try:
            yield
        finally:
            self._lock.release()

    def _counted(self, sql: str) -> int:
        failure: EngineFailed | Ended
        try:
            with stoppable(self._connection.interrupt):
                [(found,)] = self._connection.execute(sql).fetchall()
            return int(found)
        except duckdb.OutOfMemoryException:
            failure = TooLarge()
        except duckdb.Error as error:
            failure = Stopped() if has_ended() else record_incident("count values", error, sql)
        raise failure
