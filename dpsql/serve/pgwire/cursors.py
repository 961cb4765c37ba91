"""Reads FETCH and MOVE, and computes the positions to which they go. It handles no rows."""

from __future__ import annotations

from typing import NamedTuple

from dpsql.serve.pgwire.commands import Fetch
from dpsql.serve.pgwire.cursor import Cursor
from dpsql.serve.pgwire.errors import WireError


class Reach(NamedTuple):
    """The rows from ``start`` to ``stop``, and the position of the cursor after them.

    Rows are counted from one. ``stop`` is included, and ``step`` is 1 or -1.
    """

    start: int
    stop: int
    step: int
    position: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return max(0, (self.stop - self.start) * self.step + 1)


def reach(fetch: Fetch, position: int, total: int) -> Reach:
    """The rows that a FETCH reads from a cursor at ``position`` of ``total`` rows.

    >>> reach(Fetch("c", "forward", 2, False), 0, 5)
    Reach(start=1, stop=2, step=1, position=2)
    >>> reach(Fetch("c", "backward", None, False), 6, 5).rows
    5
    """
    if fetch.direction == "absolute":
        count = fetch.count or 0
        return _single(count if count >= 0 else max(0, total + 1 + count), total)
    if fetch.direction == "relative":
        return _single(position + (fetch.count or 0), total)
    back = fetch.direction == "backward"
    count = total + 1 if fetch.count is None else fetch.count
    if count == 0:
        return _single(position, total)
    if count < 0:
        back, count = not back, -count
    return _backward(position, count) if back else _forward(position, count, total)


def _single(at: int, total: int) -> Reach:
    if at < 1:
        return Reach(1, 0, 1, 0)
    return Reach(1, 0, 1, total + 1) if at > total else Reach(at, at, 1, at)


def _forward(position: int, count: int, total: int) -> Reach:
    end = position + count
    return Reach(position + 1, min(end, total), 1, min(end, total + 1))


def _backward(position: int, count: int) -> Reach:
    end = position - count
    return Reach(position - 1, max(end, 1), -1, max(end, 0))


def check_scroll(fetch: Fetch, reached: Reach, position: int, *, scroll: bool) -> None:
    """Refuse to move a cursor backward that is declared NO SCROLL."""
    if not scroll and reached.position < position:
        raise WireError(
            "55000", f'cursor "{fetch.cursor}" can only scan forward',
            hint="Declare it with SCROLL option to enable backward scan.",
        )  # fmt: skip


def read_fetch(cursor: Cursor) -> Fetch:
    """Read FETCH after its first word."""
    return _fetched(cursor, moves=False)


def read_move(cursor: Cursor) -> Fetch:
    """Read MOVE after its first word."""
    return _fetched(cursor, moves=True)


_ONES = {
    "next": ("forward", 1),
    "prior": ("backward", 1),
    "first": ("absolute", 1),
    "last": ("absolute", -1),
}


def _fetched(cursor: Cursor, *, moves: bool) -> Fetch:
    direction: str = "forward"
    many: int | None = 1
    word, named = cursor.peek(), cursor.remaining() > 1
    if named and word in _ONES:
        cursor.next()
        direction, many = _ONES[word]
    elif named and word in ("absolute", "relative"):
        cursor.next()
        direction, many = word, cursor.integer()
    elif named and word in ("forward", "backward"):
        cursor.next()
        direction = word
        many = _count(cursor)
    elif named:
        many = _count(cursor)
    cursor.skip("from", "in")
    return Fetch(cursor.name(), direction, many, moves)


def _count(cursor: Cursor) -> int | None:
    if cursor.skip("all"):
        return None
    return cursor.integer() if cursor.at_number() else 1
