"""The log file: readable only by its owner, rotated at a bounded size, and safe to move away.

Claim: nobody but the user who runs dpsql can read what is written, from the first byte on, in the
    file and in rotated files.
Assumes: the system enforces the modes of files; its administrator is trusted.
Argument: a new file is made with mode 0600. An existing file is used only if it is a regular file
    of this user and its path is no link, and it is given that mode before anything is written.
    Files are rotated by renaming, which keeps their mode.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

MODE = 0o600
MOST_BYTES, MOST_FILES = 10_000_000, 10


class Unsafe(Exception):
    """The path is a link, or a file that others may have put there; nothing is written to it."""


class LogFile:
    """Appends lines to a file, from one thread. Raises ``OSError`` if a line cannot be written."""

    def __init__(
        self, path: Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
    ) -> None:
        """Keeps at most ``most_files`` files of ``most_bytes`` each; nothing is opened yet."""
        self.path, self._most_bytes, self._most_files = path, most_bytes, most_files
        self._handle: int | None = None
        self._torn = False

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> None:
        """Create the file, or open an existing one; raises ``Unsafe`` if it may be another's."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        flags |= getattr(os, "O_NONBLOCK", 0)  # do not block on a pipe in its place: it is refused
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
        """Append a line. The file is reopened if it was moved away, and rotated if it is full."""
        data = line.encode("utf-8", "backslashreplace")
        self._move_on(len(data))
        assert self._handle is not None
        if self._torn:
            data = b"\n" + data
        while data:
            self._torn = True  # in case the disk is full after some bytes
            data = data[os.write(self._handle, data) :]
        self._torn = False

    def _move_on(self, size: int) -> None:
        """Open the file if necessary: for the first line, after a move, and after a rotation."""
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
        """Rename the current file to number 1, each number to the next, and drop the oldest."""
        names = [self.path, *(self._rotated_name(n) for n in range(1, self._most_files))]
        for older, newer in reversed(list(zip(names[1:], names, strict=False))):
            with suppress(FileNotFoundError):
                newer.replace(older)
        if len(names) == 1:
            self.path.unlink(missing_ok=True)

    def _rotated_name(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.close(handle)
