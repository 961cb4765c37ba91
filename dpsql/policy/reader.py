"""Reads the tree of a policy file according to the list of keys."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dpsql.policy import key_shapes
from dpsql.policy.document import Entries, Items, Node, Word
from dpsql.policy.fit import describe_shape, fit
from dpsql.policy.problems import Place, Problems, instead, nearest
from dpsql.policy.scalars import NotAValue
from dpsql.policy.section import Section, lost

T = TypeVar("T")


class Spoilt(Exception):
    """The value was reported and cannot be used."""


class Reader:
    """Reads nodes according to shapes; reports nodes that do not fit, and goes on."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def record(
        self, shape: key_shapes.Record, node: Node, at: Place, names: tuple[str, ...]
    ) -> Section:
        """``node`` as a record of that shape; ``names`` are the names of the records around it."""
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
                self._problems.add(at, f"{label} lacks `{key.name}: ..` ({key.about})")
            if key.name in spoilt and isinstance(key.shape, key_shapes.Record):
                given[key.name] = lost(key.shape, at, names)
        return Section(at, label, given, places, frozenset(spoilt))

    def _unknown(self, shape: key_shapes.Record, word: Word, label: str) -> set[str]:
        names = [key.name for key in shape.keys]
        hint = instead(word.text, names, "keys here")
        self._problems.add(word.place, f'unknown key "{word.text}" in {label}; {hint}')
        return {guess} if (guess := nearest(word.text, names)) else set()

    def _value(
        self, shape: key_shapes.Shape, node: Node, key: Word, label: str, names: tuple[str, ...]
    ) -> object:
        where = f'"{key.text}" in {label}'
        match shape:
            case key_shapes.Record():
                return self.record(shape, node, key.place, names)
            case key_shapes.Named():
                return self._named(shape, node, where, names)
            case key_shapes.Listed():
                return self._listed(shape, node, where, names)
            case key_shapes.Names():
                return self._names(shape, node, where)
            case key_shapes.Values():
                return self._values(shape, node, where)
            case _:
                return self._scalar(shape, node, where)

    def _named(
        self, shape: key_shapes.Named, node: Node, where: str, names: tuple[str, ...]
    ) -> dict[str, Section | Word]:
        if not isinstance(node, Entries) or not node.entries:
            raise self._wrong(node, where, f"write {shape.word} by name")
        found: dict[str, Section | Word] = {}
        folded: dict[str, str] = {}
        for word, value in node.entries:
            other = folded.setdefault(word.text.casefold(), word.text)
            if other != word.text:
                self._problems.add(
                    word.place,
                    f'"{word.text}" and "{other}" in {where} differ only by case; rename one',
                )
            inner = (*names, word.text)
            if isinstance(shape.item, key_shapes.Text):
                found[word.text] = replace(word, text="")
                with contextlib.suppress(Spoilt):
                    found[word.text] = self._word(value, f'"{word.text}" in {where}', "write text")
                continue
            try:
                found[word.text] = self.record(shape.item, value, word.place, inner)
            except Spoilt:
                found[word.text] = lost(shape.item, word.place, inner)
        return found

    def _listed(
        self, shape: key_shapes.Listed, node: Node, where: str, names: tuple[str, ...]
    ) -> list[Section]:
        if not isinstance(node, Items) or not node.items:
            example = ", ".join(f"{key.name}: .." for key in shape.item.keys if key.required)
            raise self._wrong(node, where, f"write a list such as [{{{example}}}]")
        return self._every(node, lambda item: self.record(shape.item, item, item.place, names))

    def _every(self, items: Items, read: Callable[[Node], T]) -> list[T]:
        """All items, read; if any cannot be read, it is reported, and the whole list is spoilt."""
        found = []
        for item in items.items:
            with contextlib.suppress(Spoilt):
                found.append(read(item))
        if len(found) < len(items.items):
            raise Spoilt
        return found

    def _names(self, shape: key_shapes.Names, node: Node, where: str) -> tuple[str, ...]:
        if shape.bare and isinstance(node, Word) and node.text == shape.bare:
            return ()
        if shape.single and isinstance(node, Word):
            return (self._name(node, where),)
        if not isinstance(node, Items) or not node.items:
            one = "a name or " if shape.single else ""
            raise self._wrong(node, where, f"write {one}a list of names such as [a, b]")
        found: list[str] = []
        return tuple(self._every(node, lambda item: self._listed_name(shape, item, where, found)))

    def _listed_name(
        self, shape: key_shapes.Names, item: Node, where: str, found: list[str]
    ) -> str:
        """A name that is not in ``found`` yet; it is added there."""
        name = self._name(item, where)
        if shape.words and name not in shape.words:
            raise self._wrong(item, where, instead(name, shape.words, "words"))
        if name in found:
            raise self._spoilt(item.place, f'{where} lists "{name}" twice; remove one')
        found.append(name)
        return name

    def _values(self, shape: key_shapes.Values, node: Node, where: str) -> tuple[Word, ...]:
        exact = shape.length is not None
        write = "write [least, greatest]" if exact else "write a list such as [a, b]"
        if not isinstance(node, Items) or not node.items:
            raise self._wrong(node, where, write)
        if exact and len(node.items) != shape.length:
            raise self._spoilt(node.place, f"{where} has {len(node.items)} values; {write}")
        return tuple(self._every(node, lambda item: self._word(item, where, "write plain values")))

    def _scalar(self, shape: key_shapes.Shape, node: Node, where: str) -> object:
        if isinstance(shape, key_shapes.Name):
            return self._name(node, where)
        word = self._word(node, where, f"write {describe_shape(shape)}")
        try:
            return fit(shape, word.text)
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
    if isinstance(node, Word):
        return "is empty" if node.null else f'cannot be "{node.text}"'
    if isinstance(node, Items):
        return "is a list" if node.items else "is an empty list"
    return "is a mapping" if node.entries else "is an empty mapping"
