"""The hostile statements through the endpoint: nothing but generated SQL reaches the engine.

The catalog's database and the post-processor hold no data, read no file and know no function of
the machine; what the service refuses is refused here too, in the same way by both protocols. By day
each third is sent; the laws ask a service all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import psycopg
import pytest
from endpoint import Endpoint, endpoint
from support.daily import some
from support.hostile import HOSTILE, Hostile

from dpsql.engines.catalog import pool
from dpsql.engines.duckdb.guarded import Admitted

CANARY = "c17@example.org"
"""An address in the data: it must not be in any answer, notice or error."""


OF_SESSIONS = ("catalogue", "settings", "statements")
"""Classes with statements that a PostgreSQL session carries out itself, without data."""


class Spied:
    """What reached the engine of an endpoint."""

    def __init__(self, where: Endpoint, patch: pytest.MonkeyPatch) -> None:
        self.endpoint, self.statements = where, list[str]()
        engine = where.service.tools.engine
        for name in ("measure", "read_public"):
            patch.setattr(engine, name, self._noting(getattr(engine, name)))

    def _noting(self, call: object) -> object:
        def noted(statement: Admitted | str, *more: Mapping[str, object]) -> object:
            self.statements.append(statement if isinstance(statement, str) else statement.sql)
            return call(statement, *more)  # type: ignore[operator]

        return noted


@pytest.fixture(scope="module")
def spied() -> Iterator[Spied]:
    with pytest.MonkeyPatch.context() as patch, endpoint() as found:
        patch.setattr(pool, "SECONDS", 1.5)
        yield Spied(found, patch)


def _outcome(c: psycopg.Connection, sql: str, *, extended: bool) -> tuple[str, list[str]]:
    """The SQLSTATE, or the answer's columns; and everything that was said."""
    heard: list[str] = []
    c.add_notice_handler(lambda d: heard.append(f"{d.message_primary} {d.message_detail}"))
    try:
        cursor = c.cursor(binary=extended)
        cursor.execute(sql.encode(errors="surrogatepass"), prepare=extended)
        heard.append(str(cursor.fetchall() if cursor.description else ""))
        return str([d[:2] for d in cursor.description or ()]), heard
    except psycopg.Error as error:
        said = error.diag
        heard += [str(said.message_primary), str(said.message_detail), str(said.message_hint)]
        return str(error.sqlstate), heard


@pytest.fixture
def connection(spied: Spied) -> Iterator[psycopg.Connection]:
    with psycopg.connect(
        spied.endpoint.dsn(options="-c dpsql.epsilon=0.001"), autocommit=True
    ) as found:
        yield found


_PRIVATE = re.compile('"(customers|orders|visits)"')


def _refused(state: str) -> bool:
    return re.fullmatch(r"[0-9A-Z]{5}", state) is not None


@pytest.mark.parametrize("case", some(HOSTILE, 0, 3), ids=str)
def test_a_hostile_statement_gets_nowhere(
    spied: Spied, connection: psycopg.Connection, case: Hostile
) -> None:
    before = len(spied.statements)
    plain, heard = _outcome(connection, case.sql, extended=False)
    if connection.info.transaction_status:
        connection.rollback()
    extended, more = _outcome(connection, case.sql, extended=True)
    text = "\n".join(heard + more)
    assert CANARY not in text
    assert "root:" not in text
    assert "XX000" not in (plain, extended)
    reached = "\n".join(spied.statements[before:])
    assert not re.search(r"read_csv|/etc/|getenv|random\(", reached, re.IGNORECASE)
    if case.never and case.kind not in OF_SESSIONS and "\0" not in case.sql:
        assert _refused(plain), plain
    if _refused(plain) and ";" not in case.sql:
        assert _refused(extended), extended
        assert not _PRIVATE.search(reached), "what is refused reads no rows of units"
