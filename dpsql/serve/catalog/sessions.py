"""Connects catalog queries with sessions: the session's number, its settings, whom it may stop."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from dpsql.engines.catalog.content import Variable
from dpsql.serve.pgwire.asking import Setting
from dpsql.serve.pgwire.crowd import LONGEST_SHOWN, Place, Seen
from dpsql.serve.pgwire.errors import BAD_VALUE, WireError

MOST, LONGEST = 100, 20_000
"""The most settings or warnings of one statement, and the most characters of a setting.

A statement may call these functions once for each of very many rows.
"""
EFFECTIVE = frozenset({"pg_cancel_backend", "pg_terminate_backend", "set_config"})


def about(place: Place, named: Collection[str]) -> Mapping[str, Variable]:
    """The variables of a statement that names these words. Those it does not name are empty."""
    return {
        "process": place.process if "pg_backend_pid" in named else 0,
        "settings": _settings(place) if "current_setting" in named else (),
        "sessions": [_row(s) for s in place.own()] if "pg_stat_activity" in named else (),
    }


def _settings(place: Place) -> list[list[str | None]]:
    return [[name, value] for name, value in place.settings().items()]


def _row(seen: Seen) -> list[str | None]:
    """The session as a row, in the order of the view pg_stat_activity."""
    return [
        str(seen.process), seen.login, seen.database, seen.application, seen.address,
        None if seen.port is None else str(seen.port), _moment(seen.begun), _moment(seen.asked),
        _moment(seen.changed), seen.state, seen.text[:LONGEST_SHOWN],
    ]  # fmt: skip


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(" ")


class Deeds:
    """Carries out pg_cancel_backend, pg_terminate_backend and set_config for one statement."""

    def __init__(self, place: Place) -> None:
        """Nothing is done at first."""
        self._place = place
        self.warnings: list[str] = []
        self.settings: list[Setting] = []

    def set(self, name: str, value: str, *, local: bool) -> str:
        """Keep a setting. The session takes it once the statement has succeeded."""
        if len(self.settings) >= MOST or len(name) + len(value) > LONGEST:
            raise WireError(BAD_VALUE, "too many or too long settings")
        self.settings.append(Setting(name, value, local))
        return value

    def stop(self, process: int, *, ends: bool) -> bool:
        """Stop a session if this one may. Others get the same warning as numbers of no session."""
        found = self._place.stop(process, ends=ends)
        if not found and len(self.warnings) < MOST:
            self.warnings.append(f"PID {process} is not a PostgreSQL backend process")
        return found
