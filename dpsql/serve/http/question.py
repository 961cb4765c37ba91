"""A request's body as a statement to ask. Only what is described is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsql.diagnostics.quote import line
from dpsql.service.settings import SETTINGS

_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Question:
    """One statement, what goes into it, and how the answer is wanted."""

    sql: str
    parameters: tuple[Any, ...] = ()
    session: str = "default"
    settings: tuple[str, ...] = ()
    arrow: bool = False


class Unreadable(Exception):
    """A request that is not what the description says."""

    def __init__(self, status: int, headline: str, instead: str) -> None:
        """Hold what is said of it."""
        self.status, self.headline, self.instead = status, line(headline), line(instead)
        super().__init__(self.headline)


def question(body: bytes, *, arrow: bool) -> Question:
    """The question that a body is."""
    try:
        given = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise _bad("the body is not JSON", '{"sql": "SELECT count(*) FROM orders"}') from None
    if not isinstance(given, dict) or not isinstance(given.get("sql"), str):
        raise _bad('"sql" is missing', '{"sql": "SELECT count(*) FROM orders"}')
    for key in given:
        if key not in ("sql", *_READERS):
            raise _bad(f'"{key}" is not known', f"Known: sql, {', '.join(_READERS)}.")
    read = {key: reader(given[key]) for key, reader in _READERS.items() if key in given}
    return Question(given["sql"], arrow=arrow, **read)


def _no_number(_: str) -> Any:
    raise ValueError


def _parameters(given: Any) -> tuple[Any, ...]:
    if not isinstance(given, list) or not all(map(_is_value, given)):
        raise _bad('"parameters" is not a list of values', '"parameters": ["web", 3, null]')
    return tuple(given)


def _is_value(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -_LARGEST <= value < _LARGEST
    return value is None or isinstance(value, str | bool | float)


def _session(given: Any) -> str:
    if not isinstance(given, str):
        raise _bad('"session" is not a name', '"session": "board"')
    return given


def _settings(given: Any) -> tuple[str, ...]:
    """The SET statements that they stand for."""
    if not isinstance(given, dict):
        raise _bad('"settings" is not an object', '"settings": {"epsilon": 0.05}')
    found = []
    for name, value in given.items():
        if name not in SETTINGS or not isinstance(value, str | int | float):
            known = ", ".join(SETTINGS)
            raise _bad(f'"{name}" is not a setting with a value', f"Known: {known}.")
        text = ("on" if value else "off") if isinstance(value, bool) else str(value)
        found.append(f"SET dpsql.{name} = '{text}'")
    return tuple(found)


def _bad(headline: str, instead: str) -> Unreadable:
    return Unreadable(400, headline, instead)


_READERS: dict[str, Callable[[Any], Any]] = {
    "parameters": _parameters,
    "session": _session,
    "settings": _settings,
}
