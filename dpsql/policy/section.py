"""The tree of a policy file held against the list of keys, and what it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from dpsql.policy import keys
from dpsql.policy.document import Entries, Items, Node, Word
from dpsql.policy.problems import Place, Problems, instead, nearest
from dpsql.policy.scalars import NotAValue, flag, kind_of, number, whole

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """A record as it was written: only values of the right shape are in it.

    ``spoilt`` are the keys that were written but cannot be used, or are missing though required:
    they were reported already, and nothing should be concluded from their absence.
    """

    place: Place
    label: str
    given: Mapping[str, object] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    spoilt: frozenset[str] = frozenset()

    def get(self, key: str, kind: type[T]) -> T | None:
        """The value of ``key``, if it was given and is of the right shape."""
        value = self.given.get(key)
        assert value is None or isinstance(value, kind)
        return value

    def sections(self, key: str) -> dict[str, Section]:
        """The named records under ``key``."""
        return dict(self.get(key, dict) or {})

    def listed(self, key: str) -> list[Section]:
        """The records listed under ``key``."""
        return list(self.get(key, list) or [])

    def names(self, key: str) -> tuple[str, ...] | None:
        """The names given under ``key``."""
        return self.get(key, tuple)

    def words(self, key: str) -> tuple[Word, ...] | None:
        """The scalars listed under ``key``, still text."""
        return self.get(key, tuple)

    def at(self, key: str) -> Place:
        """Where the value of ``key`` is, or else the record."""
        return self.places.get(key, self.place)

    def sub(self, key: str, label: str) -> Section:
        """The record under ``key``; an empty one when it was not given."""
        return self.get(key, Section) or Section(self.place, label)


class Spoilt(Exception):
    """The value was reported and cannot be used."""


class Reader:
    """Walks nodes along shapes; reports what does not fit and goes on."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def record(self, shape: keys.Record, node: Node, at: Place, names: tuple[str, ...]) -> Section:
        """``node`` as a record of that shape; ``names`` are the names on the way to it."""
        label = shape.label.format(*names)
        if not isinstance(node, Entries):
            allowed = ", ".join(key.name for key in shape.keys)
            raise self._wrong(node, label, f"write keys and values; the keys are: {allowed}")
        given: dict[str, object] = {}
        places: dict[str, Place] = {}
        spoilt: set[str] = set()
        for word, value in node.entries:
            key = shape.key(word.text)
            if key is None:
                spoilt |= self._unknown(shape, word, label)
                continue
            places[key.name] = value.place
            try:
                given[key.name] = self._value(key.shape, value, word, label, names)
            except Spoilt:
                spoilt.add(key.name)
        for key in shape.keys:
            if key.required and key.name not in given.keys() | spoilt:
                spoilt.add(key.name)
                self._problems.add(at, f'{label} lacks the key "{key.name}": {key.about}')
            if key.name in spoilt and isinstance(key.shape, keys.Record):
                given[key.name] = _lost(key.shape, at, names)
        return Section(at, label, given, places, frozenset(spoilt))

    def _unknown(self, shape: keys.Record, word: Word, label: str) -> set[str]:
        names = [key.name for key in shape.keys]
        hint = instead(word.text, names, "keys here")
        self._problems.add(word.place, f'unknown key "{word.text}" in {label}; {hint}')
        return {guess} if (guess := nearest(word.text, names)) else set()

    def _value(
        self, shape: keys.Shape, node: Node, key: Word, label: str, names: tuple[str, ...]
    ) -> object:
        where = f'"{key.text}" in {label}'
        match shape:
            case keys.Record():
                return self.record(shape, node, key.place, names)
            case keys.Named():
                return self._named(shape, node, where, names)
            case keys.Listed():
                return self._listed(shape, node, where, names)
            case keys.Names():
                return self._names(shape, node, where)
            case keys.Values():
                return self._values(shape, node, where)
            case _:
                return self._scalar(shape, node, where)

    def _named(
        self, shape: keys.Named, node: Node, where: str, names: tuple[str, ...]
    ) -> dict[str, Section]:
        if not isinstance(node, Entries) or not node.entries:
            raise self._wrong(node, where, f"write {shape.word} by name")
        found: dict[str, Section] = {}
        folded: dict[str, str] = {}
        for word, value in node.entries:
            other = folded.setdefault(word.text.casefold(), word.text)
            if other != word.text:
                self._problems.add(
                    word.place,
                    f'"{word.text}" and "{other}" in {where} differ only by case; rename one',
                )
            inner = (*names, word.text)
            try:
                found[word.text] = self.record(shape.item, value, word.place, inner)
            except Spoilt:
                found[word.text] = _lost(shape.item, word.place, inner)
        return found

    def _listed(
        self, shape: keys.Listed, node: Node, where: str, names: tuple[str, ...]
    ) -> list[Section]:
        if not isinstance(node, Items) or not node.items:
            example = ", ".join(f"{key.name}: .." for key in shape.item.keys if key.required)
            raise self._wrong(node, where, f"write a list such as [{{{example}}}]")
        return [self.record(shape.item, item, item.place, names) for item in node.items]

    def _names(self, shape: keys.Names, node: Node, where: str) -> tuple[str, ...]:
        if shape.bare and isinstance(node, Word) and node.text == shape.bare:
            return ()
        if shape.single and isinstance(node, Word):
            return (self._name(node, where),)
        if not isinstance(node, Items) or not node.items:
            one = "a name or " if shape.single else ""
            raise self._wrong(node, where, f"write {one}a list of names such as [a, b]")
        found = [self._name(item, where) for item in node.items]
        for index, name in enumerate(found):
            if name in found[:index]:
                raise self._wrong(node.items[index], where, "it is listed already; remove it")
            if shape.words and name not in shape.words:
                hint = instead(name, shape.words, "words")
                raise self._wrong(node.items[index], where, hint)
        return tuple(found)

    def _values(self, shape: keys.Values, node: Node, where: str) -> tuple[Word, ...]:
        exact = shape.length is not None
        write = "write [least, greatest]" if exact else "write a list such as [a, b]"
        if not isinstance(node, Items) or not node.items:
            raise self._wrong(node, where, write)
        if exact and len(node.items) != shape.length:
            raise self._spoilt(node.place, f"{where} has {len(node.items)} values; {write}")
        return tuple(self._word(item, where, "write plain values") for item in node.items)

    def _scalar(self, shape: keys.Shape, node: Node, where: str) -> object:
        if isinstance(shape, keys.Name):
            return self._name(node, where)
        word = self._word(node, where, f"write {_asked(shape)}")
        try:
            return _read(shape, word.text)
        except NotAValue as error:
            raise self._wrong(word, where, str(error)) from None

    def _name(self, node: Node, where: str) -> str:
        word = self._word(node, where, "write a name")
        if not word.name:
            raise self._wrong(word, where, "it is not text; write a name in quotes")
        return word.text

    def _word(self, node: Node, where: str, write: str) -> Word:
        if not isinstance(node, Word):
            raise self._wrong(node, where, write)
        if node.null:
            raise self._spoilt(node.place, f"{where} is empty; {write} (in quotes if it is a word)")
        return node

    def _wrong(self, node: Node, where: str, write: str) -> Spoilt:
        return self._spoilt(node.place, f"{where} {_seen(node)}; {write}")

    def _spoilt(self, place: Place, what: str) -> Spoilt:
        self._problems.add(place, what)
        return Spoilt(what)


def _seen(node: Node) -> str:
    match node:
        case Word():
            return "is empty" if node.null else f'cannot be "{node.text}"'
        case Items():
            return "is a list" if node.items else "is an empty list"
        case Entries():
            return "is a mapping" if node.entries else "is an empty mapping"


def _lost(shape: keys.Record, at: Place, names: tuple[str, ...]) -> Section:
    """A record of which nothing is known, and whose absence was reported."""
    spoilt = frozenset(key.name for key in shape.keys)
    given = {
        key.name: _lost(key.shape, at, names)
        for key in shape.keys
        if isinstance(key.shape, keys.Record)
    }
    return Section(at, shape.label.format(*names), given, spoilt=spoilt)


def _asked(shape: keys.Shape) -> str:
    match shape:
        case keys.Choice():
            return " or ".join(shape.words)
        case keys.Flag():
            return "true or false"
        case keys.ColumnType():
            return "a type such as text"
        case keys.Text():
            return "text"
        case _:
            return "a number"


def _read(shape: keys.Shape, text: str) -> object:
    """``text`` as the scalar that ``shape`` asks for."""
    match shape:
        case keys.Flag():
            return flag(text)
        case keys.Whole():
            count = whole(text)
            if shape.low <= count <= shape.high:
                return count
            raise NotAValue(f"write a whole number from {shape.low} to {shape.high}")
        case keys.Number():
            value = number(text)
            if _within(shape, value):
                return value
            raise NotAValue(_bounds(shape))
        case keys.ColumnType():
            kind_of(text)
        case keys.Choice() if text not in shape.words:
            raise NotAValue(instead(text, shape.words, "words"))
        case keys.Text():
            _fits(shape, text)
        case _:
            pass
    return text


def _fits(shape: keys.Text, text: str) -> None:
    if not text.strip():
        raise NotAValue("write some text")
    if shape.pattern and not re.fullmatch(shape.pattern, text):
        raise NotAValue(f"write it like {shape.such_as}")


def _within(shape: keys.Number, value: Fraction) -> bool:
    low = shape.low < value if shape.open_low else shape.low <= value
    high = value < shape.high if shape.open_high else value <= shape.high
    return low and high


def _bounds(shape: keys.Number) -> str:
    low = f"above {shape.low}" if shape.open_low else f"from {shape.low}"
    high = f"below {shape.high}" if shape.open_high else f"at most {shape.high}"
    return f"write a number {low} and {high}"
