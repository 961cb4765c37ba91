"""dpsql as a PEP 249 module, for notebooks, scripts and drivers."""

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
"""Threads may share the module, but not connections."""
paramstyle = "qmark"
"""Parameters are written ``?``; ``$1`` is accepted as well."""


class Warning(Exception):  # noqa: A001 (PEP 249 fixes the name)
    """Never raised; PEP 249 requires the name."""


class DataError(DatabaseError):
    """Never raised; PEP 249 requires the name."""


class IntegrityError(DatabaseError):
    """Never raised; PEP 249 requires the name."""


class InternalError(DatabaseError):
    """A defect in dpsql."""


class TypeGroup:
    """A PEP 249 type object, which is equal to the type codes that it stands for."""

    def __init__(self, *codes: str) -> None:
        """A type object for these type codes, as they are in ``description``."""
        self.codes = frozenset(codes)

    def __eq__(self, other: object) -> bool:
        """Whether a type code is one of this type."""
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

    If no role is named, the policy must have one role, which is taken. A session's account is
    durable: connecting again under its name restores no budget.
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
        """Use ``connect`` to create one."""
        self._service: Service | None = service
        self._session = session

    @property
    def role(self) -> str:
        """The role whose budget is charged."""
        return self._session.role

    def cursor(self) -> Cursor:
        """A new cursor. Settings belong to the connection, so its cursors share them."""
        self.session()
        return Cursor(self)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Cursor:
        """A new cursor that has executed the statement."""
        return self.cursor().execute(sql, parameters)

    def explain(self, sql: str, parameters: Sequence[Any] = ()) -> str:
        """Plan, generated SQL, noise, expected error and cost. Reads no data and spends nothing."""
        return self.session().explain(_text(sql), _values(parameters))

    def budget(self) -> dict[str, Any]:
        """What dataset, tables, role and session have left, and their limits."""
        return plain.describe_remaining(self.session().budget())

    def commit(self) -> None:
        """Do nothing: every answer is final when it arrives."""
        self.session()

    def rollback(self) -> None:
        """Do nothing: charges stay. (Connection pools call this when a connection is returned.)"""
        self.session()

    def close(self) -> None:
        """Close source and ledger; budgets are durable."""
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def session(self) -> Session:
        """The session of the connection. Raises ``InterfaceError`` if it is closed."""
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
    """Executes statements one after the other, and holds the answer to the last."""

    def __init__(self, connection: Connection) -> None:
        """Use ``Connection.cursor`` to create one."""
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
        """Not supported: PEP 249 has no way to return the answers, and each would cost budget."""
        raise NotSupportedError(
            "executemany would pay for answers that nobody sees; call execute for each"
        )

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]] | None:
        """Name and type of each column; None if there is no answer."""
        if self._reply is None or not self._reply.columns:
            return None
        return [(c.name, c.type, None, None, None, None, None) for c in self._reply.columns]

    @property
    def rowcount(self) -> int:
        """The number of rows of the answer; -1 if there is none."""
        return -1 if self._reply is None or not self._reply.columns else len(self._rows)

    @property
    def rownumber(self) -> int:
        """The position of the next row, from 0."""
        return self._next

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None if there is none."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, at most ``size`` of them (default: ``arraysize``)."""
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
        """The whole answer as an Arrow table; if columns share a name, later ones get numbers."""
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
        """For each noised column, named as in ``arrow``, the 95 % interval of every row's noise."""
        return plain.intervals(self._answer())

    @property
    def cost(self) -> dict[str, float]:
        """The cost of the answer: epsilon and delta."""
        return plain.cost(self._answer().cost)

    @property
    def remaining(self) -> dict[str, Any]:
        """What dataset, tables, role and session have left now."""
        return plain.describe_remaining(self._answer().remaining)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what comes from the policy and not from the data, and on what may be cut."""
        return self._answer().notes

    @property
    def recalled(self) -> bool:
        """Whether the answer was stored before, and cost nothing."""
        return self._answer().recalled

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing; PEP 249 requires the name."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing; PEP 249 requires the name."""

    def close(self) -> None:
        """Drop the answer; the cursor cannot be used any more."""
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
    """The statement as a plain ``str``, even if it is of a subclass."""
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
