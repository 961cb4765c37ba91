"""A private in-memory DuckDB for PostgreSQL's catalog. It holds a policy's names, and no data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.engines.catalog.content import (
    NO_CONTENT,
    Bounds,
    CatalogFailed,
    Content,
    Effects,
    Variable,
)
from dpsql.engines.duckdb.allowlist import NotListed, StatementCheck
from dpsql.engines.duckdb.lockdown import lock

_BATCH = 2_048
_USUAL = Bounds()
MOST_EFFECTS = 1_000
"""The most effects of one statement. The parent, which serves all clients, carries out each."""


AS_POSTGRESQL = {
    "integer_division": "true",
    "default_null_order": "nulls_last_on_asc_first_on_desc",
}
"""Settings with which integers are divided, and rows sorted, as in PostgreSQL."""


_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.InterruptException, "interrupted"),
    (duckdb.ParserException, "syntax"),
    (duckdb.CatalogException, "unknown"),
    (duckdb.BinderException, "binding"),
    (duckdb.ConversionException, "conversion"),
    (duckdb.OutOfRangeException, "conversion"),
    (duckdb.InvalidInputException, "conversion"),
    (duckdb.OutOfMemoryException, "memory"),
    (duckdb.FatalException, "died"),
    (duckdb.InternalException, "died"),
)


_WORDS = {
    "INTERRUPT": "interrupted",
    "Conversion": "conversion",
    "Out of Range": "conversion",
    "Invalid Input": "conversion",
    "Out of Memory": "memory",
}
"""The first words of an error that is raised while rows are read, and has lost its type."""


def _kind(error: Exception) -> str:
    by_type = (kind for known, kind in _KINDS if isinstance(error, known))
    return next(by_type, _WORDS.get(str(error).partition(" Error")[0], "other"))


class Sink(Protocol):
    """A receiver of the bytes of an Arrow stream, as they are written."""

    def write(self, data: bytes | memoryview) -> object:
        """Take the next bytes."""
        ...


def _give(reader: pa.RecordBatchReader, bounds: Bounds, sink: Sink) -> None:
    """Write all rows as an Arrow stream. Raises if an answer may not have so many."""
    size = rows = elements = 0
    with reader, pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            size += sum(map(_size, batch.columns))
            rows += batch.num_rows
            elements += sum(map(_elements, batch.columns))
            _within(size, bounds.bytes, "bytes")
            _within(rows, bounds.rows, "rows")
            _within(elements, bounds.elements, "members of lists, and numerics")
            _within(max(map(_longest, batch.columns), default=0), bounds.value, "bytes in a value")
            writer.write_batch(batch)


def _within(found: int, most: int, what: str) -> None:
    if found > most:
        raise CatalogFailed("large", f"an answer has at most {most} {what}")


def _size(array: pa.Array) -> int:
    """The bytes of an array, without a dictionary: all batches share one."""
    plain = array.indices if pa.types.is_dictionary(array.type) else array
    return int(plain.nbytes)


def _elements(array: pa.Array) -> int:
    """How many elements of an array are read one by one."""
    if pa.types.is_list(array.type):
        return len(array) + _elements_within(array.flatten())
    if pa.types.is_struct(array.type):
        return len(array) + sum(map(_elements_within, array.flatten()))
    return len(array) if pa.types.is_decimal(array.type) else 0


def _elements_within(array: pa.Array) -> int:
    return _elements(array) or len(array)


_TEXTS = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary,
)  # fmt: skip


def _longest(array: pa.Array) -> int:
    """The bytes of the longest text in an array."""
    if pa.types.is_list(array.type):
        return _longest(array.flatten())
    if pa.types.is_struct(array.type):
        return max(map(_longest, array.flatten()), default=0)
    if any(is_text(array.type) for is_text in _TEXTS):
        found: int | None = pc.max(pc.binary_length(array)).as_py()
        return found or 0
    return 0


def _constant(value: Variable | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "[" + ", ".join("[" + ", ".join(map(_constant, v)) + "]" for v in value) + "]"


class _Asker:
    """The effects of the statement that runs."""

    def __init__(self) -> None:
        self.effects: Effects | None = None
        self._count = 0

    def begin(self, effects: Effects | None) -> None:
        """Set the effects of the statement that runs next."""
        self.effects, self._count = effects, 0

    def stop(self, process: int, ends: bool) -> bool:  # noqa: FBT001
        """``pgx_stop``: stop or end a session for the statement that runs."""
        self._called()
        return self.effects is not None and self.effects.stop(process, ends=ends)

    def set(self, name: str, value: str, local: bool) -> str:  # noqa: FBT001
        """``pgx_set``: change a setting in the session of the statement that runs."""
        self._called()
        return value if self.effects is None else self.effects.set(name, value, local=local)

    def _called(self) -> None:
        self._count += 1
        if self._count > MOST_EFFECTS:
            raise RuntimeError(f"54000 a statement sets or stops at most {MOST_EFFECTS} times")


class CatalogDatabase:
    """A catalog database. It is made once from its content, then locked, and only read.

    One thread asks at a time.
    """

    def __init__(self, content: Content, memory: int) -> None:
        """Make and lock the database. ``memory`` is what the engine may use, in bytes."""
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "async_threads": 1,
            "memory_limit": f"{memory}B",
            "temp_directory": "",
            "python_enable_replacements": "false",
            **AS_POSTGRESQL,
        }
        self._root = duckdb.connect(":memory:", config=config)
        self._variables: dict[str, Variable] = {}
        self._asker = _Asker()
        self._check = StatementCheck(content.listing)
        self._root.create_function(
            "pgx_stop",
            self._asker.stop,
            ["BIGINT", "BOOLEAN"],
            "BOOLEAN",
            side_effects=True,
        )
        self._root.create_function(
            "pgx_set",
            self._asker.set,
            ["VARCHAR", "VARCHAR", "BOOLEAN"],
            "VARCHAR",
            side_effects=True,
        )
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")  # whatever the zone of the machine is
        for statement in content.before:
            self._root.execute(statement)
        for name, rows in content.tables.items():
            self._root.register("rows_to_add", pa.ipc.open_stream(rows).read_all())
            self._root.execute(f"INSERT INTO {name} BY NAME SELECT * FROM rows_to_add")
            self._root.unregister("rows_to_add")
        for statement in content.after:
            self._root.execute(statement)
        lock(self._root)

    def run(
        self, sink: Sink, sql: str, parameters: Sequence[Any] = (),
        variables: Mapping[str, Variable] | None = None, effects: Effects | None = None,
        bounds: Bounds = _USUAL,
    ) -> list[tuple[str, str]]:  # fmt: skip
        """Answer one SELECT, in a transaction that can write nothing.

        Returns the columns, and writes the rows to ``sink``. ``effects`` are what ``pgx_stop`` and
        ``pgx_set`` do for this statement, and for no other.
        """
        self._admit(sql)
        self._asker.begin(effects)
        with self._reading(variables or {}):
            found = self._root.sql(sql, params=list(parameters) or None)
            columns = zip(found.columns, (str(t) for t in found.types), strict=True)
            _give(found.to_arrow_reader(_BATCH), bounds, sink)
            return list(columns)

    def interrupt(self) -> None:
        """Stop the statement that runs. Another thread calls this."""
        self._root.interrupt()

    def close(self) -> None:
        """Close the database."""
        self._root.close()

    def _admit(self, sql: str) -> None:
        try:
            self._check.check(sql)
        except NotListed as refused:
            failure = CatalogFailed(refused.kind, refused.name)
        else:
            return
        raise failure

    @contextmanager
    def _reading(self, variables: Mapping[str, Variable]) -> Iterator[None]:
        failure: CatalogFailed | None = None
        for name, value in variables.items():
            if self._variables.get(name) != value:
                self._root.execute(f"SET VARIABLE {name} = {_constant(value)}")
                self._variables[name] = value
        self._root.execute("BEGIN TRANSACTION READ ONLY")
        try:
            yield
        except (duckdb.Error, OSError) as error:
            failure = CatalogFailed(_kind(error), str(error).split("\n", 1)[0])
        except MemoryError:
            failure = CatalogFailed("died", "")
        finally:
            self._asker.begin(None)
            self._root.execute("ROLLBACK")
        if failure is not None:
            raise failure


def check_engine() -> None:
    """Make a catalog database without tables. Raises if its engine could reach files or network."""
    CatalogDatabase(NO_CONTENT, 2**26).close()
