"""Carries out commands. Each kind has one small generator, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from sys import getsizeof
from typing import Any

import pyarrow as pa

from dpsql.memory.pool import POOL, Use
from dpsql.memory.sizes import size_of
from dpsql.serve.pgwire import asking, replies, setting
from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire.asking import Answer, Steps
from dpsql.serve.pgwire.copy_out import encode_copied_rows
from dpsql.serve.pgwire.cursors import check_scroll, reach
from dpsql.serve.pgwire.errors import LIMIT, NO_CURSOR, NO_STATEMENT, NO_TRANSACTION, WireError
from dpsql.serve.pgwire.oids import TEXT, column
from dpsql.serve.pgwire.parameters import value as parameter_value
from dpsql.serve.pgwire.portals import Portal, Prepared
from dpsql.serve.pgwire.replies import WireColumn
from dpsql.serve.pgwire.rows import FEW
from dpsql.serve.pgwire.session import Session
from dpsql.serve.pgwire.transaction import Status
from dpsql.serve.pgwire.variables import REPORTED
from dpsql.sql.parameters import MOST_PARAMETERS

SAVED = 600
"""Bytes of a savepoint, apart from its name and the values of settings."""
IN_FAILED_BLOCK = (c.End, c.RollbackTo)


def execute(
    session: Session, command: c.Command, *, announce: bool = True, formats: Sequence[int] = ()
) -> Steps:
    """Carry out a command.

    ``announce`` sends its columns before its rows, as the simple protocol does.
    """
    if not isinstance(command, IN_FAILED_BLOCK):
        session.transaction.check()
    tag = _DOING[type(command)](session, command, announce, formats)
    if not isinstance(tag, str):
        tag = yield from tag
    session.report()
    session.send(replies.complete(tag))


def _query(session: Session, command: c.Query, announce: Any, formats: Sequence[int]) -> Steps:
    answer = yield from session.answer(command)
    return (yield from _show(session, answer, announce, formats))


def _show(session: Session, answer: Answer, announce: Any, formats: Sequence[int]) -> Steps:
    if announce and answer.columns:
        session.describe(answer.columns, formats)
    if answer.columns or answer.tag == "SELECT":
        yield from session.rows(answer, 0, answer.count, formats)
    return f"SELECT {answer.count}" if answer.tag == "SELECT" else answer.tag


def _own(session: Session, command: c.Own, announce: Any, formats: Sequence[int]) -> Steps:
    if command.local:
        return (yield from setting.set_own_locally(session, command.text, command.sets))
    answer = yield asking.RunOwn(command.text)
    session.transaction.own.pop(command.sets, None)
    return (yield from _show(session, answer, announce, formats))


def _begin(session: Session, command: c.Begin, *_: object) -> str:
    if not session.transaction.begin(session.saved()):
        words = "there is already a transaction in progress"
        session.send(replies.notice(words, severity="WARNING", sqlstate="25001"))
    return command.tag


def _end(session: Session, command: c.End, *_: object) -> str:
    transaction = session.transaction
    if transaction.status is Status.IDLE:
        words = "there is no transaction in progress"
        session.send(replies.notice(words, severity="WARNING", sqlstate=NO_TRANSACTION))
    committed = command.commit and transaction.status is not Status.FAILED
    was_open = transaction.status is not Status.IDLE
    end(session, committed=committed)
    if command.chain and was_open:
        transaction.begin(session.saved())
    return "COMMIT" if committed else "ROLLBACK"


def end(session: Session, *, committed: bool) -> None:
    """End a transaction. Its settings stay if it is committed, and its cursors if they are held."""
    transaction, lasted = session.transaction, session.transaction.lasts
    before = transaction.before or transaction.script
    if committed:
        transaction.finish()
        setting.give_back(session)
    else:
        if before is not None:
            session.restore(before)
        transaction.local.clear()
        transaction.own.clear()
        transaction.finish()
    if lasted:
        session.names.end_block(committed=committed)
    if transaction.script is not None:
        transaction.script = session.saved()


def _savepoint(session: Session, command: c.Savepoint, *_: object) -> str:
    saved, before = session.saved(), session.transaction.newest
    own = POOL.hold(Use.SESSIONS, SAVED + getsizeof(command.name), session.owner)
    if before is not None and before.variables is saved.variables:
        shared = before.holds[-1]
    else:
        shared = POOL.hold(Use.SESSIONS, size_of(saved.variables), session.owner)
    session.transaction.save(command.name, replace(saved, holds=(own, shared)))
    return "SAVEPOINT"


def _release(session: Session, command: c.Release, *_: object) -> str:
    session.transaction.release(command.name)
    return "RELEASE"


def _rollback_to(session: Session, command: c.RollbackTo, *_: object) -> str:
    saved = session.transaction.back_to(command.name)
    session.restore(saved)
    session.names.close_later(saved.newest)
    return "ROLLBACK"


def text_answer(tag: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Answer:
    """An answer of rows of text that are made here."""
    arrays = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(names))]
    columns = tuple(column(name, TEXT) for name in names)
    return Answer(
        columns, pa.Table.from_arrays(arrays, names=[str(i) for i in range(len(names))]), tag
    )


def answer_show(session: Session, command: c.Show) -> Answer:
    """The answer to SHOW."""
    if command.name == "all":
        rows = [[name, value, ""] for name, value in sorted(session.variables.all().items())]
        return text_answer("SHOW", ("name", "setting", "description"), rows)
    value = session.variables.get(command.name)
    return text_answer("SHOW", (REPORTED.get(command.name, command.name),), [[value]])


def _show_variable(
    session: Session, command: c.Show, announce: Any, formats: Sequence[int]
) -> Steps:
    return (yield from _show(session, answer_show(session, command), announce, formats))


def _reset(session: Session, command: c.Reset, *_: object) -> str:
    session.variables.reset(command.name)
    if command.name is None:
        session.backend.restore(None)
    return "RESET"


def _discard(session: Session, command: c.Discard, *_: object) -> Steps:
    if command.what == "all":
        if session.transaction.status is not Status.IDLE:
            raise WireError("25001", "DISCARD ALL cannot run inside a transaction block")
        session.variables.reset(None)
        session.become(None)
        session.backend.restore(None)
        session.names.prepared.clear()
        session.names.portals.clear()
    if command.what in ("all", "temp", "temporary"):
        yield asking.RunOwn("DISCARD TEMP")
    return f"DISCARD {command.what.upper()}"


def _declare(session: Session, command: c.Declare, *_: object) -> Steps:
    inside = session.transaction.status is not Status.IDLE
    if not inside and not command.hold:
        raise WireError(
            NO_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks",
            hint="Use WITH HOLD, or BEGIN first.",
        )  # fmt: skip
    portal = Portal(
        command.query, hold=command.hold, scroll=command.scroll is not False, in_block=inside,
        declared=True,
    )  # fmt: skip
    yield from session.columns(portal)
    session.names.add_portal(command.name, portal)
    return "DECLARE CURSOR"


def cursor(session: Session, name: str) -> Portal:
    """A cursor that FETCH may read."""
    portal = session.names.find_portal(name, "cursor")
    if not isinstance(portal.command, c.Query):
        raise WireError(NO_CURSOR, f'cursor "{name}" does not exist')
    return portal


def _fetch(session: Session, command: c.Fetch, announce: Any, formats: Sequence[int]) -> Steps:
    portal = cursor(session, command.cursor)
    answer = yield from session.open(portal)
    reached = reach(command, portal.position, answer.count)
    check_scroll(command, reached, portal.position, scroll=portal.scroll)
    portal.position = reached.position
    if command.moves:
        return f"MOVE {reached.rows}"
    if announce:
        session.describe(answer.columns, formats)
    if reached.step > 0:
        yield from session.rows(
            answer, reached.start - 1, reached.start - 1 + reached.rows, formats
        )
    elif reached.rows:
        backwards = list(range(reached.start - 1, reached.stop - 2, -1))
        with session.encoding(answer, 0, answer.count):
            turned = replace(
                answer,
                table=answer.table.take(pa.array(backwards, pa.int64())),
                encoded={},
                size=0,
            )
            yield from session.rows(turned, 0, turned.count, formats)
    return f"FETCH {reached.rows}"


def _close(session: Session, command: c.CloseCursor, *_: object) -> str:
    if command.name is None:
        session.names.portals.clear()
        return "CLOSE CURSOR ALL"
    session.names.find_portal(command.name, "cursor")
    del session.names.portals[command.name]
    return "CLOSE CURSOR"


def _prepare(session: Session, command: c.Prepare, *_: object) -> Steps:
    if not command.name:
        raise WireError(NO_STATEMENT, "a prepared statement needs a name")
    described = yield asking.DescribeQuery(command.query, command.oids)
    prepared = Prepared(
        command.query, described.oids, described.columns, described=True,
        settings=session.backend.settings(),
    )  # fmt: skip
    session.names.add_prepared(command.name, prepared)
    return "PREPARE"


def _execute_prepared(
    session: Session, command: c.ExecutePrepared, announce: Any, formats: Sequence[int]
) -> Steps:
    query, values, oids = prepared_query(session, command)
    answer = yield from session.answer(query, values, oids)
    return (yield from _show(session, answer, announce, formats))


def prepared_query(
    session: Session, command: c.ExecutePrepared
) -> tuple[c.Query, tuple[Any, ...], tuple[int, ...]]:
    """The query of an EXECUTE, with its values read as the types it was prepared with."""
    prepared = session.names.find_prepared(command.name)
    if not isinstance(prepared.command, c.Query):
        raise WireError("0A000", "EXECUTE is for prepared queries")
    wanted = parameter_count(prepared.command, prepared.oids)
    if len(command.values) != wanted:
        raise WireError(
            "42601", f'wrong number of parameters for prepared statement "{command.name}"',
            f"Expected {wanted} parameters but got {len(command.values)}.",
        )  # fmt: skip
    oids = (*prepared.oids, *([0] * wanted))[:wanted]
    return prepared.command, read_values(command.values, oids), oids


def parameter_count(query: c.Query, oids: Sequence[int]) -> int:
    """The number of parameters of a query."""
    count = max(query.parameters, len(oids))
    if count > MOST_PARAMETERS:
        raise WireError(
            LIMIT, f"a statement has at most {MOST_PARAMETERS} parameters",
            "Each is read and bound by itself, between the statements of others.",
            "Send a list of values as one parameter: x = ANY($1)",
        )  # fmt: skip
    return count


def read_values(texts: Sequence[str | None], oids: Sequence[int]) -> tuple[Any, ...]:
    """The values of constants in SQL, read as parameters of these types."""
    return tuple(
        parameter_value(None if t is None else t.encode(), 0, oid)
        for t, oid in zip(texts, oids, strict=True)
    )


def _deallocate(session: Session, command: c.Deallocate, *_: object) -> str:
    if command.name is None:
        session.names.prepared.clear()
        return "DEALLOCATE ALL"
    session.names.find_prepared(command.name)
    del session.names.prepared[command.name]
    return "DEALLOCATE"


def _copy(session: Session, command: c.Copy, *_: object) -> Steps:
    answer = yield from session.answer(command.query)
    session.send(replies.copy_out(len(answer.columns), int(command.format == "binary")))
    if not answer.count or (answer.count <= FEW and answer.hold is None):
        session.send(encode_copied_rows(command, answer.columns, answer.table, 0, answer.count))
    else:
        for first, last in answer.pieces(0, answer.count):
            with session.encoding(answer, first, last):
                part = yield asking.EncodeCopy(command, answer, first, last)
            session.send(part)
    session.send(replies.COPY_DONE)
    return f"COPY {answer.count}"


def _nothing(_: Session, command: c.Nothing, *__: object) -> str:
    return command.tag


def columns_of(session: Session, command: c.Command | None) -> Steps:
    """The columns that a command would return, or None. Nothing is run that could be charged."""
    found: tuple[WireColumn, ...] | None = None
    if isinstance(command, c.Fetch) and not command.moves:
        found = yield from session.columns(cursor(session, command.cursor))
    elif isinstance(command, c.Show):
        found = answer_show(session, command).columns
    elif isinstance(command, c.Own) and command.returns_rows:
        answer = yield asking.RunOwn(command.text)
        found = answer.columns
    elif isinstance(command, c.ExecutePrepared):
        query, values, oids = prepared_query(session, command)
        found = yield asking.Columns(query, values, oids)
    return found


_DOING: dict[type, Callable[..., Steps | str]] = {
    c.Query: _query,
    c.Own: _own,
    c.Begin: _begin,
    c.End: _end,
    c.Savepoint: _savepoint,
    c.Release: _release,
    c.RollbackTo: _rollback_to,
    c.Set: setting.set_variable,
    c.Become: setting.become,
    c.Show: _show_variable,
    c.Reset: _reset,
    c.Discard: _discard,
    c.Declare: _declare,
    c.Fetch: _fetch,
    c.CloseCursor: _close,
    c.Prepare: _prepare,
    c.ExecutePrepared: _execute_prepared,
    c.Deallocate: _deallocate,
    c.Copy: _copy,
    c.Nothing: _nothing,
}
