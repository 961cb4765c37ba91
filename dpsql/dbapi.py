"""dpsql as a PEP 249 module: what notebooks, scripts and drivers speak."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from dpsql.diagnostics.refusal import (
    DatabaseError,
    EngineFailed,
    Error,
    InterfaceError,
    LedgerFailed,
    NotSupportedError,
    OperationalError,
    OutOfBudget,
    PolicyError,
    ProgrammingError,
    Refused,
    SourceMismatch,
)
from dpsql.service import Reply, Service, Session, plain
from dpsql.sql.parameters import builtins, text

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module; each opens a connection of its own."""
paramstyle = "qmark"
"""``?``; ``$1`` is read as well."""


class Warning(Exception):  # noqa: A001 (PEP 249 fixes the name)
    """Never raised; PEP 249 wants the name."""


class DataError(DatabaseError):
    """Never raised; PEP 249 wants the name."""


class IntegrityError(DatabaseError):
    """Never raised; PEP 249 wants the name."""


class InternalError(DatabaseError):
    """A defect in dpsql."""


class TypeGroup:
    """A PEP 249 type object: equal to the type codes it stands for."""

    def __init__(self, *codes: str) -> None:
        """Stand for these type codes, as ``description`` has them."""
        self.codes = frozenset(codes)

    def __eq__(self, other: object) -> bool:
        """Whether a type code belongs here."""
        return other in self.codes if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        """By identity."""
        return id(self)


STRING = TypeGroup("text")
BINARY = TypeGroup()
NUMBER = TypeGroup("bigint", "double", "boolean")
DATETIME = TypeGroup("date", "timestamp")
ROWID = TypeGroup()

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802 (PEP 249 fixes the name)
    """The local date of a Unix time."""
    return dt.datetime.fromtimestamp(ticks).astimezone().date()


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802 (PEP 249 fixes the name)
    """The local time of day of a Unix time."""
    return dt.datetime.fromtimestamp(ticks).astimezone().time()


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802 (PEP 249 fixes the name)
    """The local time of a Unix time."""
    return dt.datetime.fromtimestamp(ticks).astimezone().replace(tzinfo=None)


def connect(
    policy: str | Path, role: str | None = None, *, session: str = "default",
    dialect: str = "postgres",
) -> Connection:  # fmt: skip
    """Open a policy and its source; queries are charged to ``role`` and to ``session``.

    ``dialect`` is the SQL that statements are written in, as ``SET dpsql.dialect`` takes it.

    The only role is taken when none is named. A session's account is durable: connecting again
    under its name gives nothing back.
    """
    service = Service.open(policy)
    try:
        opened = service.session(role, session)
        opened.execute(f"SET dpsql.dialect = '{dialect}'")
        return Connection(service, opened)
    except BaseException:
        service.close()
        raise


class Connection:
    """An open policy, for one role. Use it in one thread, and close it."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError = InternalError, ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, service: Service, session: Session) -> None:
        """``connect`` makes it."""
        self._service: Service | None = service
        self._session = session

    @property
    def role(self) -> str:
        """Whose budget is charged."""
        return self._session.role

    def cursor(self) -> Cursor:
        """A cursor; settings belong to the connection, so its cursors share them."""
        self.session()
        return Cursor(self)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Cursor:
        """A new cursor that has executed the statement."""
        return self.cursor().execute(sql, parameters)

    def explain(self, sql: str, parameters: Sequence[Any] = ()) -> str:
        """Plan, generated SQL, noise, expected error, cost. Reads no data and spends nothing."""
        return self.session().explain(_text(sql), _values(parameters))

    def budget(self) -> dict[str, Any]:
        """What dataset, tables, role and session have left, and of how much."""
        return plain.describe_remaining(self.session().budget())

    def commit(self) -> None:
        """Nothing: every answer is final when it arrives."""
        self.session()

    def rollback(self) -> None:
        """Nothing: what was spent stays spent. (Pools call this when a connection comes back.)"""
        self.session()

    def close(self) -> None:
        """Let go of source and ledger; budgets are durable."""
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def session(self) -> Session:
        """The session behind it; for a closed connection an ``InterfaceError``."""
        if self._service is None:
            raise InterfaceError("the connection is closed")
        return self._session

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close on the way out."""
        self.close()


class Cursor:
    """One statement after the other, and the answer to the last."""

    def __init__(self, connection: Connection) -> None:
        """``Connection.cursor`` makes it."""
        self.connection = connection
        self.arraysize = 1
        self._reply: Reply | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._next, self._closed = 0, False

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Self:
        """Answer one statement: a query, SET, SHOW dpsql.budget or EXPLAIN."""
        session = self._open()
        self._reply, self._rows, self._next = None, [], 0
        reply = session.execute(_text(sql), _values(parameters), intervals=True)
        self._reply, self._rows = reply, plain.python_rows(reply)
        return self

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]]) -> None:  # noqa: ARG002
        """Not supported: PEP 249 leaves no way to return the answers, and each would cost."""
        raise NotSupportedError(
            "executemany would pay for answers that nobody sees; call execute for each"
        )

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]] | None:
        """Name and type of each column; None when there is no answer."""
        if self._reply is None or not self._reply.columns:
            return None
        return [(c.name, c.type, None, None, None, None, None) for c in self._reply.columns]

    @property
    def rowcount(self) -> int:
        """How many rows the answer has; -1 when there is none."""
        return -1 if self._reply is None or not self._reply.columns else len(self._rows)

    @property
    def rownumber(self) -> int:
        """Where the next row is, from 0."""
        return self._next

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, at most ``size`` (``arraysize`` unless given)."""
        self._answer()
        start = self._next
        self._next = min(len(self._rows), start + (self.arraysize if size is None else size))
        return self._rows[start : self._next]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that were not fetched yet."""
        return self.fetchmany(len(self._rows))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows that were not fetched yet."""
        return iter(self.fetchone, None)

    def arrow(self) -> pa.Table:
        """The whole answer as an Arrow table; of columns with one name, later ones get numbers."""
        return plain.with_distinct_names(self._answer())

    def df(self) -> Any:
        """The whole answer as a pandas data frame."""
        return _with("pandas", self.arrow().to_pandas)

    def pl(self) -> Any:
        """The whole answer as a polars data frame."""

        def made() -> Any:
            import polars as pl

            return pl.from_arrow(self.arrow())

        return _with("polars", made)

    @property
    def intervals(self) -> dict[str, list[tuple[float | None, float | None]]]:
        """For each noised column the 95 % interval of every row, named as in ``arrow``."""
        return plain.intervals(self._answer())

    @property
    def cost(self) -> dict[str, float]:
        """What the answer cost: epsilon and delta."""
        return plain.cost(self._answer())

    @property
    def remaining(self) -> dict[str, Any]:
        """What dataset, tables, role and session have left now."""
        return plain.describe_remaining(self._answer().remaining)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which parts of the answer are the policy's word and not the data's."""
        return self._answer().notes

    @property
    def recalled(self) -> bool:
        """Whether it is a stored answer, which costs nothing."""
        return self._answer().recalled

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing; PEP 249 wants the name."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing; PEP 249 wants the name."""

    def close(self) -> None:
        """Let go of the answer."""
        self._closed, self._reply, self._rows = True, None, []

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close on the way out."""
        self.close()

    def _open(self) -> Session:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        return self.connection.session()

    def _answer(self) -> Reply:
        self._open()
        if self._reply is None:
            raise InterfaceError("there is no answer; execute a statement first")
        return self._reply


def _text(sql: str) -> str:
    """The statement as the characters that it is made of, whatever its class says of itself."""
    if not isinstance(sql, str):
        raise ProgrammingError("a statement is text")
    return text(sql)


def _values(parameters: Sequence[Any]) -> list[Any]:
    """Parameters by position, as Python values."""
    if isinstance(parameters, str | bytes | Mapping):
        raise ProgrammingError("parameters are a list or tuple, one value for each ? in order")
    values = (v.item() if isinstance(v, np.generic) else v for v in parameters)
    return list(builtins(values))


def _with(library: str, made: Callable[[], Any]) -> Any:
    try:
        return made()
    except ImportError:
        raise NotSupportedError(
            f'{library} is not installed: pip install "dpsql[{library}]"'
        ) from None


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "EngineFailed",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "LedgerFailed",
    "NotSupportedError",
    "OperationalError",
    "OutOfBudget",
    "PolicyError",
    "ProgrammingError",
    "Refused",
    "SourceMismatch",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
