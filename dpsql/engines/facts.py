"""What was looked up of the data when a policy was opened: the texts of queries, and what they found."""

from __future__ import annotations

from collections.abc import Mapping


class Facts:
    """Which queries about declarations found nothing. It never asks, and does not change."""

    def __init__(
        self, found: Mapping[str, bool] | None = None, kept: Mapping[str, str] | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """``found`` says of each query whether it has no row.

        ``kept`` has the names in ``HEAVY`` under which the engine keeps rows, and of which table.
        ``numbers`` has what queries about public tables found.
        """
        self._found, self.kept = dict(found or {}), dict(kept or {})
        self._numbers = dict(numbers or {})

    def number(self, query: str) -> int | None:
        """What a query about public tables found; None for what was not looked up."""
        return self._numbers.get(query)

    def hold(self, query: str) -> bool:
        """Whether a query found nothing. What was not looked up is not relied on."""
        return self._found.get(query, False)
