"""What was looked up of a database file, kept beside it: the next opening of the same data scans nothing.

Claim: what is read here was written by the owner's side, and found in this very file, unchanged since.
Assumes: the system enforces the modes of files, and changes a time of a file that is written.
Argument: the file belongs to whoever runs this, to the database's owner or to root, and nobody else may
    write or read it; it is opened without following a link, and its owner is asked of what was opened.
    What it says holds for one state of the database only: device, inode, size, and both times. Each
    entry is the digest of a whole query, so another policy or another form of a query has none. Whatever
    is not of exactly the expected shape is not read at all; then everything is looked up anew.
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
from hashlib import sha256
from pathlib import Path

FORMAT = 1
MOST_BYTES, MOST_ENTRIES = 1 << 20, 5_000
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class State:
    """A database file at one moment: which file it is, and when anything about it changed."""

    content: str
    """Other bytes are another content, as far as sizes and times tell."""
    touched: str
    """A change of its rights or names is seen here too."""

    @classmethod
    def of(cls, database: Path) -> State:
        """The file, and the log of what is not in it yet."""
        paths = (database, database.with_name(f"{database.name}.wal"))
        files = [path.stat() for path in paths if path.exists()]
        return cls(
            "/".join(f"{f.st_dev}-{f.st_ino}-{f.st_size}-{f.st_mtime_ns}" for f in files),
            "/".join(str(f.st_ctime_ns) for f in files),
        )


class FactsFile:
    """Outcomes of queries over one state of a database: the one that an engine has open."""

    def __init__(self, database: Path, state: State) -> None:
        """Read what was kept for that state."""
        self._database, self._state = database, state
        self._said = f"{state.content} {state.touched}"
        self._path = database.with_name(f"{database.name}.verified")
        self._known = self._read()
        self._new: dict[str, int] = {}

    def get(self, query: str) -> int | None:
        """Whether the query had no row, or its number; None where that was not kept."""
        return {**self._known, **self._new}.get(_digest(query))

    def put(self, query: str, found: int) -> None:
        """Note what was found: whether there was no row, or a number."""
        self._new[_digest(query)] = found

    def save(self) -> None:
        """Keep what is new, if the database is still as it was; a folder that cannot be written is no harm."""
        known = {**self._known, **self._new}
        if not self._new or len(known) > MOST_ENTRIES or State.of(self._database) != self._state:
            return
        document = json.dumps({"format": FORMAT, "database": self._said, "found": known})
        with suppress(OSError):
            number, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
            try:
                with os.fdopen(number, "w", encoding="ascii") as file:
                    file.write(document)
                Path(name).replace(self._path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise

    def _read(self) -> Mapping[str, int]:
        text = self._text()
        try:
            document = json.loads(text)
        except ValueError:
            return {}
        match document:
            case {"format": 1, "database": self._said, "found": dict() as found, **rest}:
                return found if not rest and _well_formed(found) else {}
            case _:
                return {}

    def _text(self) -> str:
        """The file, if nobody else can have written it; else nothing."""
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
    """Whether each entry is the digest of a query, and says yes, no, or how many."""
    return len(found) <= MOST_ENTRIES and all(
        isinstance(key, str) and _DIGEST.fullmatch(key) and isinstance(value, int) and value >= 0
        for key, value in found.items()
    )


def _digest(query: str) -> str:
    return sha256(query.encode()).hexdigest()
