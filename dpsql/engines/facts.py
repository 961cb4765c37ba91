"""The outcomes of look-ups in the data when a policy was opened, by the texts of their queries."""

from __future__ import annotations

from collections.abc import Mapping


class Facts:
    """The outcomes of queries about declarations. It asks nothing, and does not change."""

    def __init__(
        self, found: Mapping[str, bool] | None = None, kept: Mapping[str, str] | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """``found`` says of each query whether it has no row.

        ``kept`` has the names in ``OVER_LIMIT_CATALOG`` of kept rows, each with their table.
        ``numbers`` has the results of queries about public tables.
        """
        self._found, self.kept = dict(found or {}), dict(kept or {})
        self._numbers = dict(numbers or {})

    def number(self, query: str) -> int | None:
        """The result of a query about public tables; None if it was not looked up."""
        return self._numbers.get(query)

    def hold(self, query: str) -> bool:
        """Whether a query was looked up, and has no row."""
        return self._found.get(query, False)
