"""Memory that the engine has freed, and that its allocator keeps for later.

All engines of a process share one allocator. Freed memory counts in no limit of an engine.
"""

from __future__ import annotations

from contextlib import suppress

import duckdb

MOST_KEPT = "16MB"
"""Freed memory that each thread keeps after a piece of work. The engine's default is 128 MB."""


def keep_little(connection: duckdb.DuckDBPyConnection) -> None:
    """Let threads give freed memory back to the system once it is more than ``MOST_KEPT``."""
    with suppress(duckdb.Error):  # this build has another allocator
        connection.execute(f"SET GLOBAL allocator_flush_threshold = '{MOST_KEPT}'")


def give_back() -> None:
    """Give free memory back to the system. Closing any engine does that for all engines."""
    duckdb.connect(":memory:").close()
