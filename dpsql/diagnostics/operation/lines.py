"""The text of an event: a line of words, or a line of JSON.

Claim: an event is one line of bounded length. It has no character that a terminal or a log reader
    interprets as a command, whatever names clients choose.
Assumes: such a character is not printable, in Python's sense.
Argument: texts are cut and quoted. In them every quote, backslash and unprintable character (ends
    of lines, escape sequences, marks that change the direction of text) is escaped.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import Field, fields
from datetime import datetime
from typing import Any

from dpsql.diagnostics.operation.events import Event

LONGEST = 200
"""The most characters of a text, unless its field has another limit."""


def words(event: Event) -> str:
    """The event without its time.

    >>> from dpsql.diagnostics.operation.events import LoginFailed
    >>> words(LoginFailed(login="eve\\n2026", address="192.0.2.7", face="http"))
    'login_failed login="eve\\\\n2026" address="192.0.2.7" face="http"'
    """
    return " ".join([event.name(), *(f"{name}={_show(value)}" for name, value in _fields(event))])


def plain(event: Event, moment: datetime) -> str:
    """The event as a line of words, for people."""
    return f"{_time(moment)} {logging.getLevelName(event.level)} {words(event)}\n"


def as_json(event: Event, moment: datetime) -> str:
    """The event as a line of JSON, for programs."""
    head = {
        "time": _time(moment),
        "level": logging.getLevelName(event.level).lower(),
        "event": event.name(),
    }
    return json.dumps({**head, **dict(_fields(event))}) + "\n"


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(event: Event) -> Iterator[tuple[str, Any]]:
    """The fields with their values, without empty optional ones; texts are cut, numbers rounded."""
    for given in fields(event):
        value = getattr(event, given.name)
        if isinstance(value, str):
            if value or given.default != "":
                yield given.name, _cut(value, given)
        elif isinstance(value, float):
            yield given.name, round(value, 3)
        elif value or given.default != 0:
            yield given.name, value


def _cut(text: str, given: Field[Any]) -> str:
    most = int(given.metadata.get("longest", LONGEST))
    return text if len(text) <= most else f"{text[:most]}.."


def _show(value: object) -> str:
    if not isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in quoted)
