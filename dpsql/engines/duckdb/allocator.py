"""Memory that the engine has freed, and that its allocator keeps for later.

All engines of a process share one allocator. What a statement has freed counts in no limit of theirs.
"""

from __future__ import annotations

from contextlib import suppress

import duckdb

MOST_KEPT = "16MB"
"""What a thread keeps of a piece of work; the engine's own choice is 128 MB, for each thread."""


def keep_little(connection: duckdb.DuckDBPyConnection) -> None:
    """Let threads give back what they have freed once it is more than a little."""
    with suppress(duckdb.Error):  # this build has another allocator
        connection.execute(f"SET GLOBAL allocator_flush_threshold = '{MOST_KEPT}'")


def give_back() -> None:
    """What is free goes back to the system: an engine that is closed does that for all."""
    duckdb.connect(":memory:").close()
