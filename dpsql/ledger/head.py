"""The last hash of a ledger, noted in a separate file after each change, before any answer leaves.

Claim: if every change was made with the same note, every answer that left was paid for by a record
    at or before the noted one. So a ledger whose last record is the noted one lacks nothing, and a
    ledger without the noted record is an older copy.
Assumes: the file of the note is not restored with the ledger, and only dpsql writes it.
Argument: a change returns only after its record is durable and then noted. Several processes write
    the note one after the other, and never replace a later record by an earlier one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from dpsql.ledger import failures
from dpsql.ledger.chain import START, Record

_LINE = re.compile(r"(\d{19}) ([0-9a-f]{64}) ([0-9a-f]{16})\n")


@dataclass(frozen=True, slots=True)
class Head:
    """The last record of a ledger: its number and its hash."""

    seq: int
    hash: str

    @classmethod
    def of(cls, record: Record) -> Head:
        """The head of a ledger that ends with ``record``."""
        return cls(record.seq, record.hash)


EMPTY = Head.of(START)


@dataclass(frozen=True, slots=True)
class HeadNote:
    """A file with the last head of the ledger at ``place``: one line, which is overwritten."""

    file: Path
    place: failures.Place

    def read(self) -> Head:
        """The noted head; the head of an empty ledger, if none is noted."""
        try:
            text = self.file.read_text(encoding="ascii")
        except FileNotFoundError:
            return EMPTY
        except (OSError, UnicodeError) as error:
            raise failures.head_unread(self.file, _reason(error)) from None
        return self._parse(text)

    def write(self, head: Head, *, anew: bool = False) -> None:
        """Note this head durably, unless a later one is noted; with ``anew`` in any case."""
        try:
            number = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(number, fcntl.LOCK_EX)
                text = os.pread(number, 200, 0).decode("ascii", "replace")
                if anew or not text or self._parse(text).seq < head.seq:
                    os.pwrite(number, _line(head).encode(), 0)
                    os.ftruncate(number, len(_line(head)))
                    os.fsync(number)
            finally:
                os.close(number)
        except OSError as error:
            raise failures.head_unnoted(self.place, self.file, _reason(error)) from None

    def _parse(self, text: str) -> Head:
        found = _LINE.fullmatch(text)
        if found is None or found[3] != _check(found[1], found[2]):
            raise failures.head_unread(self.file, "it is not what dpsql wrote")
        return Head(int(found[1]), found[2])


def _line(head: Head) -> str:
    number = f"{head.seq:019d}"
    return f"{number} {head.hash} {_check(number, head.hash)}\n"


def _check(number: str, text: str) -> str:
    return hashlib.sha256(f"{number} {text}".encode()).hexdigest()[:16]


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
