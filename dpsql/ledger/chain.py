"""The hash chain over a ledger's records: an edit, a gap or a reordering breaks it.

Each record's hash covers its number, its hold, its text and the hash of the record before it.
Anyone who can write the file can also recompute every later hash. So the last hash (``dpsql audit``
prints it) should be kept somewhere else: a chain that still contains a hash noted earlier is
unchanged up to that record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """One event in the life of a hold; ``json`` describes it."""

    seq: int
    hold: int
    json: str
    prev_hash: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The record's text, parsed."""
        content: dict[str, Any] = json.loads(self.json)
        return content

    @property
    def intact(self) -> bool:
        """Whether the record fits its own hash."""
        return self.hash == _hash(self.seq, self.hold, self.prev_hash, self.json)


OWNER = 0
"""The hold number in records of what the owner did. No hold has this number."""


def next_record(last: Record, hold: int, content: Mapping[str, object]) -> Record:
    """The record after ``last``."""
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    seq = last.seq + 1
    return Record(seq, hold, text, last.hash, _hash(seq, hold, last.hash, text))


def faults(last: Record, record: Record) -> Iterator[str]:
    """The reasons why ``record`` is not the one that was written after ``last``; none if it is.

    >>> one = next_record(START, 7, {"state": "reserved"})
    >>> two = next_record(one, 7, {"state": "committed"})
    >>> list(faults(one, two)), list(faults(START, two))
    ([], ['record 2: record 1 is missing before it'])
    """
    if record.seq != last.seq + 1:
        yield f"record {record.seq}: record {last.seq + 1} is missing before it"
    elif record.prev_hash != last.hash:
        yield f"record {record.seq}: it does not follow record {last.seq}"
    if not record.intact:
        yield f"record {record.seq}: it was edited"


def _hash(seq: int, hold: int, prev_hash: str, text: str) -> str:
    """The hash of a record; zeros for ``START``, which stands before the first record."""
    if not seq:
        return "0" * 64
    return hashlib.sha256(f"{seq}\n{hold}\n{prev_hash}\n{text}".encode()).hexdigest()


START = Record(0, 0, "{}", "", _hash(0, 0, "", ""))
"""Stands before the first record."""
