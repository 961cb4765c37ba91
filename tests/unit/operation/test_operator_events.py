"""Events of the operator's log: a closed list, one line each, whatever clients say."""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging
import typing
from datetime import UTC, datetime

import pytest

from dpsql.diagnostics.operation import events, lines
from dpsql.diagnostics.operation.events import COUNTS, EVENTS, Event, record

NOON = datetime(2026, 11, 19, 12, 0, 0, 5000, tzinfo=UTC)
HOSTILE = (
    'eve\n2026-01-01 ERROR stopped\r\x1b[2J\u202e\u2028\x7f\x00\ud800 "quoted" \\ ' + "x" * 5_000
)


def test_the_list_has_every_event() -> None:
    there = {
        kind for _, kind in inspect.getmembers(events, inspect.isclass)
        if issubclass(kind, Event) and kind is not Event
    }  # fmt: skip
    assert set(EVENTS.values()) == there
    assert all(kind.__doc__ for kind in there)


def _made(kind: type[Event], text: str) -> Event:
    given: dict[str, object] = {}
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        of = hints[field.name]
        given[field.name] = (
            text if of is str else 7 if of in (int, float) else typing.get_args(of)[0]
        )
    return kind(**given)


@pytest.mark.parametrize("kind", EVENTS.values(), ids=EVENTS)
def test_fields_are_texts_numbers_and_listed_words(kind: type[Event]) -> None:
    for field in dataclasses.fields(kind):
        of = typing.get_type_hints(kind)[field.name]
        assert of in (str, int, float) or typing.get_origin(of) is typing.Literal
        assert field.name not in ("time", "level", "event")
    assert kind.repeats in (None, "", *(field.name for field in dataclasses.fields(kind)))


@pytest.mark.parametrize("kind", EVENTS.values(), ids=EVENTS)
def test_an_event_is_one_bounded_line_whatever_clients_say(kind: type[Event]) -> None:
    event = _made(kind, HOSTILE)
    for line in (lines.plain(event, NOON), lines.as_json(event, NOON)):
        assert line.endswith("\n")
        assert line[:-1].isprintable()
        assert len(line.splitlines()) == 1
        assert len(line) < 10_000
        line.encode()
    told = json.loads(lines.as_json(event, NOON))
    assert told["event"] == kind.name()
    assert told["time"] == "2026-11-19T12:00:00.005Z"
    assert told["level"] == logging.getLevelName(kind.level).lower()


def test_an_event_whose_texts_are_not_escaped_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "_show", str)
    with pytest.raises(AssertionError):
        test_an_event_is_one_bounded_line_whatever_clients_say(events.LoginFailed)


def test_a_line_for_people() -> None:
    event = events.HttpRequest("GET", "/metrics", 200, 3.14159, login="ann", address="192.0.2.7")
    assert lines.plain(event, NOON) == (
        '2026-11-19T12:00:00.005Z INFO http_request method="GET" path="/metrics" status=200'
        ' milliseconds=3.142 login="ann" address="192.0.2.7"\n'
    )


def test_what_is_recorded_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    before = COUNTS.all()["login_failed"]
    with caplog.at_level(logging.INFO, "dpsql.operator"):
        record(events.LoginFailed(login="eve", address="192.0.2.7", face="http"))
    assert COUNTS.all()["login_failed"] > before
    assert 'login_failed login="eve" address="192.0.2.7" face="http"' in caplog.messages
