"""The outcomes of look-ups in a database file, kept in a file beside it for the next opening.

The digest of the database is kept there too, so that a large file is read once for each of its
states, not at each opening.

Claim: the outcomes and the digest that are read here were written by the owner's side, and found in
    this same database file, which is unchanged since.
Assumes: the system enforces the modes of files, and changes a time of a file that is written.
Argument: the file belongs to the user who runs this, to the database's owner or to root, and nobody
    else may write or read it. It is opened without following a link, and the owner is read from the
    opened file. Its entries hold for one state of the database only: device, inode, size, and both
    times. An entry has the digest of a whole query, so another policy or another form of a query
    has no entry. A file that does not have exactly the expected shape is not read, and all queries
    are asked again.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path

from dpsql.diagnostics.refusal import SourceMismatch

FORMAT = 2
MOST_BYTES, MOST_ENTRIES = 1 << 20, 5_000
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class State:
    """The state of a database file at one moment: its identity, and the times of its changes."""

    content: str
    """Changes with the file's bytes, as far as sizes and times tell."""
    touched: str
    """Changes also with the file's permissions or names."""

    @classmethod
    def of(cls, database: Path) -> State:
        """The state of the file, and of its write-ahead log."""
        files = [path.stat() for path in _files(database)]
        return cls(
            "/".join(f"{f.st_dev}-{f.st_ino}-{f.st_size}-{f.st_mtime_ns}" for f in files),
            "/".join(str(f.st_ctime_ns) for f in files),
        )

    @property
    def text(self) -> str:
        """A text that also changes when the file is replaced, moved or copied."""
        return f"{self.content} {self.touched}"


def _files(database: Path) -> list[Path]:
    """The files of a database: the file itself, and its write-ahead log if there is one."""
    return [p for p in (database, database.with_name(f"{database.name}.wal")) if p.exists()]


def digest_of(database: Path) -> str:
    """A digest of the bytes of a database and its log; a copy of them has the same."""
    return _digest_of(database, State.of(database))


@lru_cache(maxsize=16)
def _digest_of(database: Path, _: State) -> str:
    """The digest, computed once for each state of the database."""
    found = sha256()
    for path in _files(database):
        if path.stat().st_size:
            with path.open("rb") as file:
                found.update(file_digest(file, "sha256").digest())
    return found.hexdigest()


class FactsFile:
    """The outcomes of queries over the state of a database that an engine has open."""

    def __init__(self, database: Path, state: State) -> None:
        """Read the outcomes that were kept for that state."""
        self._database, self._state = database, state
        self._said = state.text
        self._path = database.with_name(f"{database.name}.verified")
        self._known, self._content = self._read()
        self._new: dict[str, int] = {}
        self._unsaved = False

    def content(self) -> str:
        """A digest of the bytes of the database and its log; a copy of them has the same.

        It is for comparisons only. Others see it under a key alone (``ledger.data_notes``), because
        whoever knows all rows but one could try out the last one. Raises if the file is no longer
        the one that was opened.
        """
        if not self._content:
            found = digest_of(self._database)
            if State.of(self._database).content != self._state.content:
                raise SourceMismatch(
                    f"{self._database}: the database was written to meanwhile; open it again"
                )
            self._content, self._unsaved = found, True
        return self._content

    def get(self, query: str) -> int | None:
        """Whether the query had no row, or its number; None if that was not kept."""
        return {**self._known, **self._new}.get(_digest(query))

    def put(self, query: str, found: int) -> None:
        """Record an outcome: whether there was no row, or a number."""
        self._new[_digest(query)], self._unsaved = found, True

    def save(self) -> None:
        """Keep new outcomes if the database is unchanged and the folder can be written."""
        known = {**self._known, **self._new}
        changed = State.of(self._database) != self._state
        if not self._unsaved or len(known) > MOST_ENTRIES or changed:
            return
        document = json.dumps(
            {"format": FORMAT, "database": self._said, "content": self._content, "found": known}
        )
        with suppress(OSError):
            number, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
            try:
                with os.fdopen(number, "w", encoding="ascii") as file:
                    file.write(document)
                Path(name).replace(self._path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise

    def _read(self) -> tuple[Mapping[str, int], str]:
        """The outcomes that were kept, and the digest of the database; "" if none was kept."""
        text = self._text()
        try:
            document = json.loads(text)
        except ValueError:
            return {}, ""
        match document:
            case {
                "format": 2,
                "database": self._said,
                "content": str() as content,
                "found": dict() as found,
                **rest,
            } if not rest and _well_formed(found) and _DIGEST.fullmatch(content or "0" * 64):
                return found, content
            case _:
                return {}, ""

    def _text(self) -> str:
        """The text of the file if nobody else can have written it; otherwise empty."""
        try:
            number = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return ""
        with os.fdopen(number, "rb") as file:
            mine, owner = os.fstat(number), self._database.stat().st_uid
            own = mine.st_uid in {os.geteuid(), owner, 0} and not mine.st_mode & 0o077
            if not own or not stat.S_ISREG(mine.st_mode) or mine.st_size > MOST_BYTES:
                return ""
            return file.read(MOST_BYTES).decode("ascii", "replace")


def _well_formed(found: dict[object, object]) -> bool:
    """Whether each entry is the digest of a query with a truth value or a number."""
    return len(found) <= MOST_ENTRIES and all(
        isinstance(key, str) and _DIGEST.fullmatch(key) and isinstance(value, int) and value >= 0
        for key, value in found.items()
    )


def _digest(query: str) -> str:
    return sha256(query.encode()).hexdigest()
