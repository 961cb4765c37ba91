"""YAML text as a tree of words with places. No types are guessed: a scalar is its text.

The tree is built from YAML's events. So tags and aliases are never followed, and the implicit types
of YAML 1.1 (``no`` is false, ``010`` is eight, ``1e-5`` is text) are never applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from dpsql.diagnostics.quote import PIECE, quote
from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.problems import Place, Problems

MAX_BYTES = 4_000_000
MAX_DEPTH = 20
LONGEST_NAME = 200
_NOT_TEXT = re.compile(
    r"|~|null|Null|NULL|true|True|TRUE|false|False|FALSE"
    r"|[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0[xo][0-9a-fA-F]+"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_NULL = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Word:
    """A scalar: its text, and whether it was written without quotes."""

    place: Place
    text: str
    plain: bool

    @property
    def null(self) -> bool:
        """Whether the scalar is empty or null."""
        return self.plain and self.text in _NULL

    @property
    def name(self) -> bool:
        """Whether every YAML parser reads it as text, so that it can be a name."""
        return self.text.isprintable() and not (
            self.text.strip() == "" or (self.plain and _NOT_TEXT.fullmatch(self.text))
        )


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping, in the order of the text; its keys are different names."""

    place: Place
    entries: tuple[tuple[Word, Node], ...]


Node = Word | Items | Entries


def text_of(path: Path, name: str) -> str:
    """The text of the policy file; raises a ``PolicyError`` if it cannot be read."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise PolicyError(f"{name}:1:1: no such file; `dpsql init` drafts a policy") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise PolicyError(f"{name}:1:1: the file cannot be read: {why}") from None
    if len(raw) > MAX_BYTES:
        raise PolicyError(f"{name}:1:1: the file is larger than {MAX_BYTES:,} bytes; shorten it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise PolicyError(
            f"{name}:{line}:{column}: the file is not UTF-8 text; save it as UTF-8"
        ) from None


def compose(text: str, name: str, problems: Problems) -> Node:
    """The tree of the only document in ``text``; raises a ``PolicyError`` if it is not YAML."""
    try:
        events = list(_events(text, name))
    except yaml.MarkedYAMLError as error:
        raise PolicyError(_syntax(error, name)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise PolicyError(
            f"{name}:{line}:{column}: a character that YAML does not allow; remove it"
        ) from None
    starts = [event for event in events if isinstance(event, DocumentStartEvent)]
    if not starts:
        raise PolicyError(f"{name}:1:1: the file is empty; `dpsql init` drafts a policy")
    if len(starts) > 1:
        place = _place(starts[1])
        problems.add(place, "a second YAML document; keep one and remove this `---`")
    inner = (event for event in events if isinstance(event, NodeEvent | _ENDS))
    composer = _Composer(inner, problems)
    tree = composer.node()
    if composer.unread:
        raise PolicyError(*problems.lines)
    return tree


_ENDS = SequenceEndEvent | MappingEndEvent


def _events(text: str, name: str) -> Iterator[Event]:
    """YAML's events. Raises at the first that is nested too deep: such texts are slow to parse."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth -= isinstance(event, _ENDS)
        if isinstance(event, NodeEvent) and depth > MAX_DEPTH:
            place = _place(event)
            raise PolicyError(
                f"{name}:{place.line}:{place.column}: nested deeper than {MAX_DEPTH} levels"
            )
        depth += isinstance(event, CollectionStartEvent)
        yield event


class _Composer:
    """Turns events into nodes; forms of YAML that policies do not use are reported."""

    def __init__(self, events: Iterator[Event], problems: Problems) -> None:
        self._events, self._problems = events, problems
        self.unread = False
        """Whether parts of the document are unknown, so that the rest cannot be checked."""

    def node(self) -> Node:
        node = self._next()
        assert node is not None
        return node

    def _next(self) -> Node | None:
        """The next node, or None at the end of a list or mapping."""
        event = next(self._events)
        if isinstance(event, _ENDS):
            return None
        place = _place(event)
        self._plain_node(event, place)
        if isinstance(event, SequenceStartEvent):
            return Items(place, tuple(self._rest()))
        if isinstance(event, MappingStartEvent):
            return self._entries(place)
        if isinstance(event, ScalarEvent):
            self._problems.heard(event.value)
            return Word(place, event.value, event.style is None)
        return Word(place, "", plain=True)

    def _rest(self) -> Iterator[Node]:
        while (node := self._next()) is not None:
            yield node

    def _plain_node(self, event: Event, place: Place) -> None:
        """Report anchors, aliases and tags without repeating them: they may be passwords."""
        if isinstance(event, AliasEvent):
            self._problems.add(
                place, "a YAML alias; write the value out here, in quotes if it begins with *"
            )
            self.unread = True
            return
        if getattr(event, "anchor", None):
            self._problems.add(
                place, "a YAML anchor; remove it, or put text that begins with & in quotes"
            )
        if getattr(event, "tag", None):
            self._problems.add(
                place, "a YAML tag; remove it, or put text that begins with ! in quotes"
            )

    def _entries(self, place: Place) -> Entries:
        found: dict[str, tuple[Word, Node]] = {}
        nodes = self._rest()
        for key in nodes:
            value = next(nodes)
            if isinstance(key, Word) and key.plain and key.text == "<<":
                self.unread = True
                self._problems.add(key.place, "a YAML merge key <<; write the keys out here")
            elif isinstance(key, Word) and len(key.text) > LONGEST_NAME:
                self.unread = True
                self._problems.add(
                    key.place,
                    f'the key "{quote(key.text)}" is too long; a name has at most {LONGEST_NAME}'
                    " characters",
                )
            elif not isinstance(key, Word) or not key.name:
                shown = f"{key.text} " if isinstance(key, Word) and key.text.strip() else ""
                self._problems.add(key.place, f"the key {shown}is not text; write it in quotes")
            elif key.text in found:
                first = found[key.text][0].place
                self._problems.add(
                    key.place,
                    f'"{key.text}" is written twice (first in line {first.line}); remove one',
                )
            else:
                found[key.text] = (key, value)
        return Entries(place, tuple(found.values()))


def _place(event: Event) -> Place:
    assert event.start_mark is not None
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)


def _syntax(error: yaml.MarkedYAMLError, name: str) -> str:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    what = quote(error.problem or "something", 2 * PIECE)
    if "\\t" in what:
        return f"{name}:{line}:{column}: not YAML: a tab; indent with spaces"
    return (
        f"{name}:{line}:{column}: not YAML: {what}; check the indentation and the brackets, "
        'and quote text that holds ": " or " #"'
    )
