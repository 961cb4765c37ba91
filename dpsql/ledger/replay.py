"""Recomputes balances from the chain of records, and compares them with those of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpsql.ledger.chain import OWNER, START, Record, faults
from dpsql.ledger.charge import Charge
from dpsql.ledger.rows import MARKS
from dpsql.ledger.states import State, may
from dpsql.ledger.store import Verification

ACTS = ("restored", "clock put right", "migrated")
"""The owner's actions on the ledger itself: ``restore.py``, ``repair.py``, ``migrate.py``."""
HoldRow = tuple[Any, ...]
"""A hold as a store keeps it: state, charge (four), accounts, policy version, role, session,
created, answer; the same as ``Past.row``."""


@dataclass(slots=True)
class Past:
    """A hold as its records describe it."""

    state: State
    charge: Charge
    accounts: list[str]
    about: tuple[str, ...]
    answer: str | None = None

    @property
    def row(self) -> HoldRow:
        """The row that the store should have for it."""
        return (self.state, *self.charge.numbers, self.accounts, *self.about, self.answer)


@dataclass(slots=True)
class Replay:
    """The state after the records so far. Only open holds are remembered, so memory stays small."""

    row_of: Callable[[int], HoldRow | None]
    """Returns the row of a hold in the store."""
    spent: dict[str, Charge] = field(default_factory=dict)
    open: dict[int, Past] = field(default_factory=dict)
    holds: int = 0
    marks: dict[str, str] = field(default_factory=dict)
    """The entries of ``rows.MARKS`` that records of the owner set."""
    merged: set[str] = field(default_factory=set)
    """The last hashes of other copies of this ledger that were merged into it."""
    last: Record = START

    def take(self, record: Record) -> Iterator[str]:
        """Apply one record; yields what is wrong with it."""
        yield from faults(self.last, record)
        self.last = record
        try:
            content = record.content
            if record.hold == OWNER:
                self._own(content)
                return
            wrong = self._follow(record.hold, State(content["state"]), content)
        except (AttributeError, KeyError, TypeError, ValueError):
            wrong = "it cannot be read"
        if wrong:
            yield f"record {record.seq}: {wrong}"

    def finish(
        self, balances: Mapping[str, Charge], holds: int, marks: Mapping[str, str]
    ) -> Iterator[str]:
        """Compare the final state with the store's balances, number of holds and marks."""
        for mark in MARKS:
            if self.marks.get(mark) != marks.get(mark):
                yield f"the mark {mark} is not as it was recorded"
        for hold, past in self.open.items():
            if self.row_of(hold) != past.row:
                yield f"hold {hold}: it is not as its records say"
        if holds != self.holds:
            yield f"{holds} holds are stored, {self.holds} were recorded"
        for account in sorted(self.spent.keys() | balances.keys()):
            recorded, stored = self.spent.get(account, Charge()), balances.get(account, Charge())
            if recorded != stored:
                yield f"account {account}: {stored} is stored, {recorded} was recorded"

    def _own(self, content: Mapping[str, Any]) -> None:
        """Apply a record of the owner: new terms, or one of ``ACTS``, which may add charges."""
        if content["owner"] not in ACTS and not isinstance(content["terms"], dict):
            raise TypeError
        for account, numbers in content.get("added", {}).items():
            self.spent[account] = self.spent.get(account, Charge()) + Charge(*numbers)
        self.marks |= {mark: content[mark] for mark in MARKS if mark in content}
        if "merged" in content:
            self.merged.add(content["merged"]["head"])

    def _follow(self, hold: int, state: State, content: Mapping[str, Any]) -> str | None:
        past = self.open.get(hold)
        if not may(past.state if past else None, state):
            return f"hold {hold} cannot become {state}"
        if past is None:
            past = self.open[hold] = _begun(state, content)
            self.holds += 1
            self._add(past, past.charge)
        past.state, past.answer = state, content.get("answer")
        if state is State.CANCELLED:
            self._add(past, Charge() - past.charge)
        if not state.open:
            del self.open[hold]
            if self.row_of(hold) != past.row:
                return f"hold {hold} is not stored as its records say"
        return None

    def _add(self, past: Past, charge: Charge) -> None:
        for account in past.accounts:
            self.spent[account] = self.spent.get(account, Charge()) + charge


def verify_records(
    records: Iterable[Record],
    replay: Replay,
    balances: Mapping[str, Charge],
    holds: int,
    meta: Mapping[str, str],
    known: Iterable[str],
    noted: str | None,
) -> Verification:
    """All problems of a store that its records reveal, after those ``known`` already."""
    problems, found = list(known), noted is None
    for record in records:
        problems += replay.take(record)
        found = found or record.hash == noted
    problems += replay.finish(balances, holds, meta)
    if not found and noted not in replay.merged:
        problems.append("the noted hash is not in the chain: records were removed or rewritten")
    return Verification(replay.last.seq, replay.last.hash, tuple(problems))


def _begun(state: State, content: Mapping[str, Any]) -> Past:
    return Past(
        state,
        Charge(*content["charge"]),
        content["accounts"],
        (content["policy"], content["role"], content["session"], content["time"]),
    )
