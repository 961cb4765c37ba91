"""Un-noised answers, sealed. Only engines make them and only ``release.noise`` opens them."""

from __future__ import annotations

from typing import NoReturn

import pyarrow as pa


class ExactRows:
    """Exact integers by group. It cannot be printed, iterated, compared, copied or pickled."""

    __slots__ = ("_table",)

    def __init__(self, table: pa.Table) -> None:
        """Seal a table; called by engines only."""
        self._table = table

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


def unseal(rows: ExactRows) -> pa.Table:
    """The table inside, for the noise stage."""
    return rows._table  # noqa: SLF001 (this is the one opener)
