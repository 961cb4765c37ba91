"""The file of a log: only its owner reads it, it is cut into files of a bounded size, and may be moved away.

Claim: nobody but the user who runs dpsql can read what is written, from the first byte on, in the file
    and in those that were rotated.
Assumes: the system enforces the modes of files; its administrator is trusted.
Argument: a file is made with mode 0600. One that is there is taken only if it is a regular file of this
    user, reached through no link, and is given that mode before anything is written. Files are rotated by
    renaming, which keeps their mode.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

MODE = 0o600
MOST_BYTES, MOST_FILES = 10_000_000, 10


class Unsafe(Exception):
    """A file that others may have put there, or a link: nothing is written into it."""


class LogFile:
    """Lines at the end of a file, for one thread. Raises ``OSError`` where they cannot be written."""

    def __init__(
        self, path: Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
    ) -> None:
        """At most ``most_bytes`` in each of ``most_files`` files; nothing is opened yet."""
        self.path, self._most_bytes, self._most_files = path, most_bytes, most_files
        self._handle: int | None = None
        self._torn = False

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> None:
        """Make the file, or take the one that is there; ``Unsafe`` if it may be another's."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        flags |= getattr(os, "O_NONBLOCK", 0)  # a pipe in its place is refused, and not waited for
        if self.path.is_symlink():
            raise Unsafe(f"{self.path} is a link; name the file itself")
        handle = os.open(self.path, flags, MODE)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise Unsafe(
                    f"{self.path} is no regular file; name another, or - for standard error"
                )
            if hasattr(os, "geteuid"):
                if found.st_uid != os.geteuid():
                    raise Unsafe(
                        f"{self.path} belongs to another user; remove it, or name another file"
                    )
                if stat.S_IMODE(found.st_mode) != MODE:
                    os.fchmod(handle, MODE)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    def write(self, line: str) -> None:
        """One line more, in a file that still has its place and is not too long."""
        data = line.encode("utf-8", "backslashreplace")
        self._move_on(len(data))
        assert self._handle is not None
        if self._torn:
            data = b"\n" + data
        while data:
            self._torn = True  # should the next bytes not fit on the disk
            data = data[os.write(self._handle, data) :]
        self._torn = False

    def _move_on(self, size: int) -> None:
        """Open the file if need be: at first, after it was moved away, and when it is full."""
        if self._handle is not None and not self._in_place(self._handle):
            self.close()
        if self._handle is None:
            self.open()
            assert self._handle is not None
        written = os.fstat(self._handle).st_size
        if written and written + size > self._most_bytes:
            self.close()
            self._rotate()
            self.open()

    def _in_place(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), self.path.lstat())
        except FileNotFoundError:
            return False

    def _rotate(self) -> None:
        """The newest becomes number one, and so on; the oldest is gone."""
        names = [self.path, *(self._rotated_name(n) for n in range(1, self._most_files))]
        for older, newer in reversed(list(zip(names[1:], names, strict=False))):
            with suppress(FileNotFoundError):
                newer.replace(older)
        if len(names) == 1:
            self.path.unlink(missing_ok=True)

    def _rotated_name(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def close(self) -> None:
        """Let go of the file; the next line opens it again."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.close(handle)
