"""The common beginning of most commands: a session under a policy, and the statement."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dpsql.cli.exits import Usage
from dpsql.diagnostics.operation.file import LogFile
from dpsql.diagnostics.operation.log import OperatorLog, keep_log
from dpsql.diagnostics.refusal import EngineFailed
from dpsql.ledger.open import open_ledger
from dpsql.ledger.store import Ledger
from dpsql.policy.model import Policy
from dpsql.service import Service, Session


@contextmanager
def open_session(chosen: argparse.Namespace) -> Iterator[Session]:
    """A session of the named role; messages of the engine go to the operator's log."""
    with operator_log(chosen.policy), Service.open(chosen.policy) as service:
        session = service.session(chosen.role, chosen.session)
        dialect = getattr(chosen, "dialect", session.settings.dialect)
        session.settings = replace(session.settings, dialect=dialect)
        yield session


def beside(policy: Path) -> Path:
    """The default place of the operator's log."""
    return policy.with_name(f"{policy.stem}.operator.log")


@contextmanager
def operator_log(
    policy: Path, log: OperatorLog | None = None, *, comments: bool = False
) -> Iterator[None]:
    """Send events to this log, or to a file beside the policy, which is created when needed."""
    chosen = log or OperatorLog(LogFile(beside(policy)))
    try:
        with keep_log(chosen, comments=comments):
            yield
    except EngineFailed:
        sys.stderr.write(f"The operator's log is {chosen.place}.\n")
        raise


def open_existing_ledger(policy: Policy) -> Ledger | None:
    """The policy's ledger; None if there is none yet, as reading does not create it."""
    there = policy.ledger.exists() or policy.ledger.is_symlink()
    missing = policy.ledger_server is None and not there
    if missing and not policy.ledger_keeping.must_exist:
        return None
    return open_ledger(policy, clock, settle=False)


def clock() -> datetime:
    """The current time."""
    return datetime.now(UTC)


def statement(text: str) -> str:
    """The SQL argument, or standard input for ``-``."""
    try:
        found = sys.stdin.read() if text == "-" else text
    except UnicodeError:
        raise Usage("standard input is not text; type a statement") from None
    if not found.strip():
        raise Usage("there is no SQL to answer; type a statement")
    return found
