"""The handlers of all messages of the simple and the extended protocol, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpsql.serve.pgwire import asking, client_log, replies, script
from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire import messages as m
from dpsql.serve.pgwire.asking import Steps
from dpsql.serve.pgwire.errors import PROTOCOL, SYNTAX, UNSUPPORTED, WireError, wire_error
from dpsql.serve.pgwire.execute import columns_of, end, execute, parameter_count
from dpsql.serve.pgwire.parameters import check_formats, spread, value
from dpsql.serve.pgwire.portals import Portal, Prepared
from dpsql.serve.pgwire.session import MESSAGE, Session
from dpsql.serve.pgwire.transaction import Status


def _query(session: Session, message: m.SimpleQuery) -> Steps:
    """Run the statements of a script one after the other, up to the first that fails."""
    session.note(message.text)
    session.names.portals.pop("", None)
    session.names.prepared.pop("", None)
    statements = yield from _read_script(session, message.text)
    if not statements:
        session.send(replies.EMPTY)
    transaction = session.transaction
    if len(statements) > 1 and transaction.status is Status.IDLE:
        transaction.script = session.saved()
    try:
        for statement in statements:
            if session.tired:
                yield asking.Pause()
            if isinstance(statement, WireError):
                transaction.check()
                raise statement
            session.turn += MESSAGE
            try:
                yield from _statement(session, statement.command)
            except Exception as error:
                raise wire_error(error, statement.offset) from error
    except WireError:
        _end_script(session, committed=False)
        raise
    _end_script(session, committed=True)


def _read_script(session: Session, text: str) -> Steps:
    """The statements of a script. A long script is read in a thread of a lane."""
    client_log.record_comment(session.process, text)
    if len(text) > script.LONG:
        return (yield asking.Read(text))
    return script.read_script(text)


def _statement(session: Session, command: c.Command) -> Steps:
    """Run one statement of a script. As a script is a transaction, it may declare cursors."""
    transaction = session.transaction
    idle = transaction.status is Status.IDLE
    if transaction.script is None or not idle or not isinstance(command, _BLOCK_ONLY):
        yield from execute(session, command)
        return
    transaction.begin(transaction.script)
    try:
        yield from execute(session, command)
    finally:
        transaction.status = Status.IDLE


_BLOCK_ONLY = (c.Declare, c.Savepoint, c.Release, c.RollbackTo)


def _end_script(session: Session, *, committed: bool) -> None:
    """End the transaction of a script, unless the script has begun a transaction block."""
    transaction = session.transaction
    try:
        if transaction.script is not None and transaction.status is Status.IDLE:
            end(session, committed=committed)
    finally:
        transaction.script = None


def _parse(session: Session, message: m.Parse) -> Steps:
    found = yield from _read_script(session, message.text)
    if len(found) > 1:
        raise WireError(SYNTAX, "cannot insert multiple commands into a prepared statement")
    statement = found[0] if found else None
    if isinstance(statement, WireError):
        session.transaction.check()
        raise statement
    command = None if statement is None else statement.command
    if not isinstance(command, c.End | c.RollbackTo | None):
        session.transaction.check()
    if not message.name:
        session.names.prepared.pop("", None)
    known = tuple(0 if oid == _UNKNOWN else oid for oid in message.oids)
    session.names.add_prepared(message.name, Prepared(command, known))
    session.send(replies.PARSED)


_UNKNOWN = 705


def _bind(session: Session, message: m.Bind) -> Steps:
    prepared = session.names.find_prepared(message.statement)
    wanted = _wanted(prepared)
    if len(message.values) != wanted:
        raise WireError(
            PROTOCOL,
            f"bind message supplies {len(message.values)} parameters, but prepared statement "
            f'"{message.statement}" requires {wanted}',
        )
    if not isinstance(prepared.command, c.End | c.RollbackTo | None):
        session.transaction.check()
    if prepared.described and prepared.settings != session.backend.settings():
        yield from _described_again(session, prepared)
    check_formats(message.formats, wanted, results=False)
    formats = spread(message.formats, wanted)
    oids = (*prepared.oids, *([0] * wanted))[:wanted]
    if any(f and not oid for f, oid in zip(formats, oids, strict=True)):
        oids = (yield from _described(session, prepared)).oids
    values = tuple(map(value, message.values, formats, oids))
    if not message.portal:
        session.names.portals.pop("", None)
    inside = session.transaction.status is not Status.IDLE
    columns = prepared.columns if not wanted else None
    portal = Portal(
        prepared.command, values, oids, message.results, columns=columns,
        settings=prepared.settings, in_block=inside,
    )  # fmt: skip
    yield from _check_results(session, portal)
    session.names.add_portal(message.portal, portal)
    session.send(replies.BOUND)


def _check_results(session: Session, portal: Portal) -> Steps:
    """Check that there is a format for each column, before anything is charged."""
    if len(portal.results) <= 1:
        return
    if isinstance(portal.command, c.Query):
        columns = yield from session.columns(portal)
    else:
        columns = yield from columns_of(session, portal.command)
    if columns is not None:
        check_formats(portal.results, len(columns), results=True)


def _wanted(prepared: Prepared) -> int:
    if isinstance(prepared.command, c.Query):
        return parameter_count(prepared.command, prepared.oids)
    return len(prepared.oids)


def _described(session: Session, prepared: Prepared) -> Steps:
    """Describe a prepared statement, if that was not done before."""
    command = prepared.command
    if isinstance(command, c.Query) and not prepared.described:
        found = yield asking.DescribeQuery(command, prepared.oids)
        prepared.set_described(found.oids, found.columns, session.backend.settings())
    if not isinstance(command, c.Query):
        prepared.columns = yield from columns_of(session, command)
    return prepared


def _described_again(session: Session, prepared: Prepared) -> Steps:
    """Describe a statement again after settings have changed. Refused if its columns changed.

    A client that knows the earlier columns must get the same. The refusal is as PostgreSQL's, and
    comes before anything is charged.
    """
    assert isinstance(prepared.command, c.Query)
    found = yield asking.DescribeQuery(prepared.command, prepared.oids)
    if found.columns != prepared.columns:
        raise WireError(
            UNSUPPORTED, "cached plan must not change result type",
            "A setting, or the role, has changed the columns since the statement was described.",
            "Prepare it again.",
        )  # fmt: skip
    prepared.settings = session.backend.settings()


def _describe(session: Session, message: m.Describe) -> Steps:
    columns: Any
    formats: Sequence[int] = ()
    if message.of_statement:
        prepared = session.names.find_prepared(message.name)
        if not isinstance(prepared.command, c.End | c.RollbackTo | None):
            session.transaction.check()
        yield from _described(session, prepared)
        session.send(replies.parameters(prepared.oids))
        columns = prepared.columns
    else:
        portal = session.names.find_portal(message.name)
        formats = portal.results
        if isinstance(portal.command, c.Query):
            columns = yield from session.columns(portal)
        else:
            columns = yield from columns_of(session, portal.command)
    if columns:
        session.describe(columns, formats)
    else:
        session.send(replies.NO_DATA)


def _execute(session: Session, message: m.Execute) -> Steps:
    portal = session.names.find_portal(message.portal)
    if portal.command is None:
        session.send(replies.EMPTY)
    elif isinstance(portal.command, c.Query):
        yield from _read(session, portal, message.rows)
    elif portal.done:
        raise WireError("55000", f'portal "{message.portal}" cannot be run')
    else:
        yield from _check_results(session, portal)  # its name may stand for another statement now
        portal.done = True
        yield from execute(session, portal.command, announce=False, formats=portal.results)


def _read(session: Session, portal: Portal, limit: int) -> Steps:
    """Send the next rows of a portal. It is charged once; reading on is free."""
    session.transaction.check()
    assert isinstance(portal.command, c.Query)
    session.note(portal.command.text)
    if portal.answer is None and not portal.done:
        yield from _check_results(session, portal)  # other settings give other columns
    answer = yield from session.open(portal)
    start = min(portal.position, answer.count)
    stop = min(start + limit, answer.count) if limit else answer.count
    yield from session.rows(answer, start, stop, portal.results)
    portal.position = stop
    if limit and stop - start == limit:
        session.send(replies.SUSPENDED)
    else:
        session.send(replies.complete(f"SELECT {stop - start}"))


def _close(session: Session, message: m.Close) -> None:
    if message.of_statement:
        session.names.prepared.pop(message.name, None)
    else:
        session.names.portals.pop(message.name, None)
    session.send(replies.CLOSED)


def _nothing(*_: object) -> None:
    """Do nothing, since queued messages are sent as soon as possible anyway."""


_HANDLERS: dict[type, Callable[..., Steps | None]] = {
    m.SimpleQuery: _query,
    m.Parse: _parse,
    m.Bind: _bind,
    m.Describe: _describe,
    m.Execute: _execute,
    m.Close: _close,
    m.Flush: _nothing,
    m.Ignored: _nothing,
}


def handle(session: Session, message: m.Message) -> Steps:
    """Carry out a message, step by step."""
    steps = _HANDLERS[type(message)](session, message)
    if steps is not None:
        yield from steps


def end_script(session: Session) -> None:
    """End a script, or a series up to Sync.

    Outside a transaction block this closes all portals but cursors WITH HOLD.
    """
    if session.transaction.status is Status.IDLE:
        session.names.end_block(committed=True)
    session.report()
    session.send(replies.ready_for_query(session.transaction.status.value))
