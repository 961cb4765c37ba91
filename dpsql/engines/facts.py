"""What was looked up of the data when a policy was opened: queries, and whether they found a row."""

from __future__ import annotations

from collections.abc import Mapping


class Facts:
    """Which queries about declarations found nothing. It never asks, and does not change."""

    def __init__(
        self, found: Mapping[str, bool] | None = None, kept: Mapping[str, str] | None = None
    ) -> None:
        """``found`` says of each query whether it has no row.

        ``kept`` has the names in ``HEAVY`` under which the engine keeps rows, and of which table.
        """
        self._found, self.kept = dict(found or {}), dict(kept or {})

    def hold(self, query: str) -> bool:
        """Whether a query found nothing. What was not looked up is not relied on."""
        return self._found.get(query, False)
