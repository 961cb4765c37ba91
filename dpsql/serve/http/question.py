"""Reads the body of a request as a statement. Keys that the description lacks are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from dpsql.diagnostics.quote import line
from dpsql.memory.pool import Hold
from dpsql.service.settings import SETTINGS
from dpsql.sql.parameters import MOST_PARAMETERS

_LARGEST = 2**63
MOST_BRACKETS = 1_000
"""The most lists and objects in a body."""
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Question:
    """One statement with its parameters, its settings, and the wanted form of the answer."""

    sql: str
    parameters: tuple[Any, ...] = ()
    session: str = "default"
    settings: tuple[str, ...] = ()
    arrow: bool = False
    owner: Hashable = None
    """The login for which the memory of request and answer is counted."""
    hold: Hold | None = None
    """The hold that counts the memory of the request."""


class Unreadable(Exception):
    """A request that does not fit the description."""

    def __init__(self, status: int, headline: str, instead: str) -> None:
        """``headline`` and ``instead`` are told to the client."""
        self.status, self.headline, self.instead = status, line(headline), line(instead)
        super().__init__(self.headline)


def question(body: bytes, *, arrow: bool) -> Question:
    """Read a body as a question."""
    if _brackets(body) > MOST_BRACKETS:
        raise _bad(
            f"the body has more than {MOST_BRACKETS} lists and objects",
            '{"sql": "SELECT count(*) FROM orders WHERE channel = ?", "parameters": ["web"]}',
        )
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


def _brackets(body: bytes) -> int:
    """The number of lists and objects in a body, counted without parsing it.

    While a parser makes very many of them, the garbage collector scans all objects of the process
    again and again, and all clients wait: for 0.2 seconds with a body of lists.
    """
    found = body.count(b"[") + body.count(b"{")
    if found > MOST_BRACKETS:  # brackets inside texts do not count
        plain = _TEXT.sub(b"", body)
        found = plain.count(b"[") + plain.count(b"{")
    return found


def _no_number(_: str) -> Any:
    raise ValueError


def _parameters(given: Any) -> tuple[Any, ...]:
    if isinstance(given, list) and len(given) > MOST_PARAMETERS:
        raise _bad(
            f"there are more than {MOST_PARAMETERS} parameters",
            "Ask for fewer values, or name them by a condition: x BETWEEN ? AND ?",
        )
    if not isinstance(given, list) or not all(map(_is_parameter, given)):
        raise _bad('"parameters" is not a list of values', '"parameters": ["web", 3, null]')
    return tuple(given)


def _is_parameter(value: Any) -> bool:
    """Whether this is a value, or a list of values for ANY or ALL."""
    return all(map(_is_value, value)) if isinstance(value, list) else _is_value(value)


def _is_value(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -_LARGEST <= value < _LARGEST
    return value is None or isinstance(value, str | bool | float)


def _session(given: Any) -> str:
    if not isinstance(given, str):
        raise _bad('"session" is not a name', '"session": "board"')
    return given


def _settings(given: Any) -> tuple[str, ...]:
    """The SET statements that the given settings stand for."""
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
