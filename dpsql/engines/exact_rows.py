"""Sealed answers without noise. Only engines make them, and only ``release.noise`` opens them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

import pyarrow as pa


class ExactRows:
    """Exact integers by group. It cannot be printed, iterated, compared, copied or pickled."""

    __slots__ = ("_close", "_rows")

    def __init__(
        self, rows: pa.Table | Iterator[pa.Table], close: Callable[[], None] | None = None
    ) -> None:
        """Seal a table, or parts of one that are read when they are needed. Only engines call this.

        ``close`` releases the parts that were not read.
        """
        self._rows, self._close = rows, close

    def close(self) -> None:
        """Read no further part. The engine's work for it ends."""
        if self._close is not None:
            self._close()

    def __repr__(self) -> str:
        """Say nothing about the contents, not even their size."""
        return "<exact rows, sealed>"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or written anywhere."""
        raise TypeError("exact rows are sealed")

    def __iter__(self) -> NoReturn:
        """Refuse to be read."""
        raise TypeError("exact rows are sealed")

    def __eq__(self, _: object) -> NoReturn:
        """Refuse to be compared."""
        raise TypeError("exact rows are sealed")

    __hash__ = None  # type: ignore[assignment]


def unseal(rows: ExactRows) -> Iterator[pa.Table]:
    """The parts of the sealed table, for the noise stage: at least one, and each part once."""
    inside = rows._rows  # noqa: SLF001 (this is the one opener)
    return iter((inside,)) if isinstance(inside, pa.Table) else inside
