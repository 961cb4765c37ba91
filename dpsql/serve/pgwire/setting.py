"""Carries out SET, SET ROLE and set_config(), for the session or for one transaction."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dpsql.serve.pgwire import asking, replies
from dpsql.serve.pgwire import commands as c
from dpsql.serve.pgwire.errors import NO_SETTING, NO_TRANSACTION, WireError

if TYPE_CHECKING:
    from dpsql.serve.pgwire.session import Session

_ROLE = "role"
"""The key under which SET LOCAL ROLE is kept. No setting can have this name."""
_OWN = re.compile(r"dpsql\.(?!notices$)\w+", re.IGNORECASE)


def set_variable(session: Session, command: c.Set, *_: object) -> str:
    """Carry out SET, until the session or the transaction ends."""
    variables, transaction = session.variables, session.transaction
    if command.local and not transaction.lasts:
        return _not_local(session)
    before = variables.all().get(command.name.lower())
    variables.set(command.name, command.value)
    if command.local:
        transaction.local.setdefault(command.name.lower(), before)
    else:
        transaction.local.pop(command.name.lower(), None)
    return "SET"


def become(session: Session, command: c.Become, *_: object) -> str:
    """Carry out SET ROLE, which lasts as long as SET."""
    transaction, before = session.transaction, session.backend.taken
    if command.local and not transaction.lasts:
        return _not_local(session)
    session.become(command.role)
    if command.local:
        transaction.local.setdefault(_ROLE, before)
    else:
        transaction.local.pop(_ROLE, None)
    return command.tag


def set_own_locally(session: Session, text: str, name: str) -> asking.Steps:
    """Carry out SET LOCAL of one of dpsql's own settings."""
    transaction = session.transaction
    if not transaction.lasts:
        return _not_local(session)
    before = session.backend.settings()
    yield asking.RunOwn(text)
    transaction.own.setdefault(name, before)
    return "SET"


def _not_local(session: Session) -> str:
    """Warn that SET LOCAL has no effect outside a transaction."""
    words = "SET LOCAL can only be used in transaction blocks"
    session.send(replies.notice(words, severity="WARNING", sqlstate=NO_TRANSACTION))
    return "SET"


def give_back(session: Session) -> None:
    """Restore the settings that were made for one transaction only, after its commit."""
    local, session.transaction.local = session.transaction.local, {}
    for name, value in local.items():
        if name == _ROLE:
            session.become(value)
        else:
            session.variables.set(name, value)
    own, session.transaction.own = session.transaction.own, {}
    session.backend.take_back(own)


def apply_setting(session: Session, given: asking.Setting) -> asking.Steps:
    """Carry out set_config(): as SET, but without a warning outside a transaction."""
    if given.local and not session.transaction.lasts:
        return
    if given.name.lower() == _ROLE:
        role = None if given.value.lower() == "none" else given.value
        become(session, c.Become(role, local=given.local))
    elif not given.name.lower().startswith("dpsql.") or given.name.lower() == "dpsql.notices":
        set_variable(session, c.Set(given.name, given.value, given.local))
    elif _OWN.fullmatch(given.name):
        value = given.value.replace("'", "''")
        text = f"SET {given.name} = '{value}'"
        if given.local:
            yield from set_own_locally(session, text, given.name.lower().removeprefix("dpsql."))
        else:
            yield asking.RunOwn(text)
    else:
        raise WireError(NO_SETTING, f'unrecognized configuration parameter "{given.name[:60]}"')
