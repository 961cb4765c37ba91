"""``dpsql audit``: lists the records of the ledger, and verifies that they are unchanged."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable
from contextlib import closing
from fractions import Fraction
from typing import Any, TextIO

from rich.table import Table

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, FAILED
from dpsql.cli.opened import open_existing_ledger
from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger.chain import Record
from dpsql.ledger.charge import ATTO, NANO
from dpsql.ledger.head import EMPTY, HeadNote
from dpsql.ledger.shortage import more
from dpsql.ledger.store import Ledger, Verification
from dpsql.policy.load import load
from dpsql.policy.model import Policy

_LONGEST = 60
_COLUMNS = (
    "record", "time", "hold", "event", "epsilon", "delta", "rho", "threshold_delta", "role",
    "session", "accounts", "statement", "hash",
)  # fmt: skip


def run(chosen: argparse.Namespace) -> int:
    """Write every record of the ledger, then the verdict; an unsound ledger is a failure."""
    policy = load(chosen.policy)
    ledger = open_existing_ledger(policy)
    if ledger is None:
        raise LedgerFailed("does not exist", "nothing was asked under it yet", place=policy.ledger)
    with closing(ledger):
        if chosen.output is not None:
            _note_export(ledger)
        verdict = ledger.verify(chosen.noted or _noted(policy))
        records = None if chosen.verify else ledger.events()
        if chosen.output is None:
            _write(chosen.format, records, verdict, sys.stdout)
        else:
            with chosen.output.open("w", encoding="utf-8", newline="") as file:
                _write(chosen.format, records, verdict, file)
    return ANSWERED if verdict.sound else FAILED


def _noted(policy: Policy) -> str | None:
    """The hash of the head that is noted in the policy's file for it; None if there is none."""
    file = policy.ledger_keeping.head
    found = EMPTY if file is None else HeadNote(file, str(policy.ledger)).read()
    return found.hash if found.seq else None


def _note_export(ledger: Ledger) -> None:
    """Record in the ledger that its statements were exported."""
    terms = ledger.terms()
    if terms is not None:
        ledger.note_terms(terms, "exported")


def _write(
    form: str, records: Iterable[Record] | None, verdict: Verification, file: TextIO
) -> None:
    match form:
        case "json":
            _write_json(records or (), verdict, file)
        case "csv":
            out = csv.writer(file)
            out.writerow(_COLUMNS)
            out.writerows(_fields(record) for record in records or ())
            sys.stderr.writelines(f"{line}\n" for line in _verdict(verdict))
        case _:
            if records is not None:
                terminal.show(_listed(records), file)
            file.writelines(f"{line}\n" for line in _verdict(verdict))


def _write_json(records: Iterable[Record], verdict: Verification, file: TextIO) -> None:
    """Write one JSON object; records are written one by one, so memory stays small."""
    file.write('{"records": [')
    for place, record in enumerate(records):
        line = {"record": record.seq, "hold": record.hold, **_content(record), "hash": record.hash}
        file.write((",\n" if place else "\n") + json.dumps(line, ensure_ascii=False))
    file.write(f'\n], "sound": {json.dumps(verdict.sound)}, "head": "{verdict.head}", ')
    file.write(f'"problems": {json.dumps(list(verdict.problems))}}}\n')


def _content(record: Record) -> dict[str, Any]:
    """The content of a record; for a damaged record, only that it is damaged."""
    return record.content if record.intact else {"state": "damaged"}


def _fields(record: Record) -> list[object]:
    content = _content(record)
    charge = content.get("charge")
    pairs = [] if charge is None else zip(charge, (NANO, ATTO, NANO, ATTO), strict=True)
    costs: list[object] = [float(Fraction(number, unit)) for number, unit in pairs]
    texts = (
        *(content.get(name, "") for name in ("role", "session")),
        " ".join(content.get("accounts", ())),
        content.get("statement", ""),
    )
    return [
        record.seq, content.get("time", ""), record.hold or "",
        content.get("state") or content.get("owner", ""), *(costs or [""] * 4),
        *map(_harmless, texts), record.hash,
    ]  # fmt: skip


def _harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula, since analysts choose it and owners open it."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _listed(records: Iterable[Record]) -> Table:
    made = terminal.empty_table(
        ("", "time", "hold", "event", "epsilon", "delta", "who", "asked"), (0, 2)
    )
    for record in records:
        made.add_row(str(record.seq), *_row(record.hold, _content(record)))
    return made


def _row(hold: int, content: dict[str, Any]) -> list[Any]:
    charge = content.get("charge")
    epsilon, delta = ("", "") if charge is None else _cost(charge)
    who = f"{content['role']}/{content['session']}" if "role" in content else ""
    asked = " ".join(str(content.get("statement", "")).split())
    short = asked if len(asked) <= _LONGEST else f"{asked[: _LONGEST - 1]}…"
    time = str(content.get("time", ""))[:19].replace("T", " ")
    return [
        terminal.mute_text(time), str(hold), terminal.plain(str(content.get("state") or content.get("owner", ""))),
        epsilon, delta, terminal.plain(who), terminal.plain(short),
    ]  # fmt: skip


def _cost(charge: list[int]) -> tuple[str, str]:
    return more(Fraction(charge[0], NANO)), more(Fraction(charge[1], ATTO))


def _verdict(verdict: Verification) -> list[str]:
    count = f"{verdict.records:,} record{'' if verdict.records == 1 else 's'}"
    if verdict.sound:
        return [f"sound: {count}, every hash and balance recomputed", f"head {verdict.head}"]
    return [f"UNSOUND: {count}", *(f"  {p}" for p in verdict.problems), f"head {verdict.head}"]
