"""``dpsql ledger``: backs up the ledger, restores it, or repairs it after a wrong clock."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from datetime import date
from pathlib import Path
from urllib.parse import quote

from dpsql.cli.exits import ANSWERED, Usage
from dpsql.cli.opened import clock
from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import failures
from dpsql.ledger.accounts import zone_of
from dpsql.ledger.backup import back_up
from dpsql.ledger.head import HeadNote
from dpsql.ledger.open import on_server, open_ledger
from dpsql.ledger.repair import put_clock_right
from dpsql.ledger.restore import Evidence, RestoreOutcome, check_dataset, restore
from dpsql.ledger.restore_file import FileRestore
from dpsql.ledger.rows import Database
from dpsql.policy.load import load
from dpsql.policy.model import LedgerKeeping, Policy


def run(chosen: argparse.Namespace) -> int:
    """Do one of three actions of the owner; a restore or repair leaves a record in the ledger."""
    policy = load(chosen.policy)
    lines = {"backup": _backup, "restore": _restore, "repair": _repair}[chosen.action](
        policy, chosen
    )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return ANSWERED


def _backup(policy: Policy, chosen: argparse.Namespace) -> list[str]:
    if policy.ledger_server is not None:
        raise LedgerFailed(
            "is on a server",
            "back it up with the server's own tools, such as pg_dump with that schema, or "
            "continuous archiving, which loses nothing",
            detail=f"in the schema {policy.ledger_server.schema}",
        )
    if chosen.file is None:
        raise Usage("`dpsql ledger backup` needs a file to write")
    if not policy.ledger.exists():
        raise LedgerFailed("does not exist", "there is nothing to copy", place=policy.ledger)
    found = back_up(policy.ledger, chosen.file.absolute())
    return [f"{chosen.file}: {found.records:,} records, sound", f"head {found.head}"]


def _restore(policy: Policy, chosen: argparse.Namespace) -> list[str]:
    dataset = quote(policy.path.stem, safe="")
    if policy.ledger_server is not None:
        return _told(*_restore_on_server(policy, chosen, dataset))
    head = policy.ledger_keeping.head
    note = None if head is None else HeadNote(head, policy.ledger)
    noted = chosen.head
    if noted is None and note is not None:
        known = note.read()
        noted = known.hash if known.seq else None
    evidence = Evidence(noted, chosen.nothing_was_asked)
    return _told(*FileRestore(policy.ledger, dataset, clock, evidence, note).run(chosen.file))


def _restore_on_server(
    policy: Policy, chosen: argparse.Namespace, dataset: str
) -> tuple[RestoreOutcome, None]:
    """Complete a restore after the server's own tools have restored the tables.

    The policy's own note of the head is no evidence here, since other proxies have their own.
    """
    if chosen.file is not None:
        raise Usage(
            "a ledger on a server is put back with the server's own tools; then run "
            "`dpsql ledger restore` without a file"
        )
    assert policy.ledger_server is not None
    evidence = Evidence(chosen.head, chosen.nothing_was_asked)
    keeping = LedgerKeeping(must_exist=True)
    with closing(on_server(policy.ledger_server, clock, keeping, settle=False)) as ledger:

        def act(db: Database) -> RestoreOutcome:
            check_dataset(db, ledger.place, dataset)
            return restore(db, clock(), None, evidence)

        if not (verdict := ledger.verify()).sound:
            raise failures.unsound(ledger.place, verdict.problems[0])
        found = ledger.amend(act)
    if policy.ledger_keeping.head is not None:
        HeadNote(policy.ledger_keeping.head, ledger.place).write(found.head, anew=True)
    return found, None


def _told(found: RestoreOutcome, kept: Path | None) -> list[str]:
    lines = [f"restored: {found.because}"]
    if found.added:
        lines.append(
            f"added to {len(found.added)} accounts what only one of the copies had recorded"
        )
    if found.closed:
        lines.append(
            "closed: every account until its next window; one without a window stays closed until "
            "the policy gives it one (per)"
        )
    elif found.closed_before is not None:
        lines.append(
            "closed by an earlier restore: every account whose window had begun by "
            f"{found.closed_before:%Y-%m-%d %H:%M %Z}"
        )
    if kept is not None:
        lines.append(f"the damaged ledger is kept as {kept.name}")
    return [*lines, f"head {found.head.hash}"]


def _repair(policy: Policy, chosen: argparse.Namespace) -> list[str]:
    now = clock().astimezone(zone_of(policy))
    if chosen.today is None:
        raise Usage(
            f"the clock says {now:%Y-%m-%d %H:%M} {policy.time_zone}; if that is right, "
            "type the date with --today"
        )
    if _date(chosen.today) != now.date():
        raise Usage(f"the clock says {now:%Y-%m-%d}, not {chosen.today}: set it first")
    with closing(open_ledger(policy, clock, settle=False)) as ledger:
        found = ledger.amend(lambda db: put_clock_right(db, now))
    if found is None:
        return ["nothing to repair: the ledger is not ahead of the clock"]
    lines = [f"the ledger was dated {found.was:%Y-%m-%d %H:%M:%S %Z}; it goes on from now"]
    if found.added:
        lines.append(f"charged once more, to the present window: {', '.join(found.added)}")
    return lines


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Usage(f"--today takes a date such as 2026-11-19, not {text!r}") from None
