"""What one statement does to sessions."""

from __future__ import annotations

from types import SimpleNamespace

from dpsql.serve.catalog.sessions import MOST, Deeds


def test_only_sessions_that_are_not_there_are_warned_about_and_not_without_end() -> None:
    deeds = Deeds(SimpleNamespace(stop=lambda process, *, ends: process == 1 and ends))  # type: ignore[arg-type]
    assert deeds.stop(1, ends=True)
    assert deeds.warnings == []
    assert not any(deeds.stop(2, ends=True) for _ in range(MOST + 5))
    assert deeds.warnings == ["PID 2 is not a PostgreSQL backend process"] * MOST
