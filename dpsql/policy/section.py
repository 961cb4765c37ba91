"""One record of a policy file, as written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from dpsql.policy import key_shapes
from dpsql.policy.document import Word
from dpsql.policy.problems import Place

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """A record as written; it contains only values of the right shape.

    ``spoilt`` are the keys that were written but cannot be used, or that are required but missing.
    They were reported already, and nothing should be concluded from their absence.
    """

    place: Place
    label: str
    given: Mapping[str, object] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    spoilt: frozenset[str] = frozenset()

    def get(self, key: str, kind: type[T]) -> T | None:
        """The value of ``key``, if it was given with the right shape; else None."""
        value = self.given.get(key)
        assert value is None or isinstance(value, kind)
        return value

    def sections(self, key: str) -> dict[str, Section]:
        """The named records under ``key``."""
        return dict(self.get(key, dict) or {})

    def texts(self, key: str) -> dict[str, Word]:
        """The named texts under ``key``."""
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
        """The place of the value of ``key``, or else of the record."""
        return self.places.get(key, self.place)

    def sub(self, key: str, label: str) -> Section:
        """The record under ``key``; an empty one if it was not given."""
        return self.get(key, Section) or Section(self.place, label)


def lost(shape: key_shapes.Record, at: Place, names: tuple[str, ...]) -> Section:
    """A record of which nothing is known; its absence was reported."""
    spoilt = frozenset(key.name for key in shape.keys)
    given = {
        key.name: lost(key.shape, at, names)
        for key in shape.keys
        if isinstance(key.shape, key_shapes.Record)
    }
    return Section(at, shape.label.format(*names), given, spoilt=spoilt)
