"""Choices that a seed decides: the same attack again, on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


@dataclass
class Dice:
    """Deterministic choices: the digests of a seed and a running number."""

    seed: str
    thrown: int = 0

    def number(self, below: int) -> int:
        """A whole number from 0."""
        self.thrown += 1
        digest = blake2b(f"{self.seed}/{self.thrown}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") % below

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        return low + self.number(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True so many times in a hundred."""
        return self.number(100) < percent

    def one(self, things: Sequence[T]) -> T:
        """One of these."""
        return things[self.number(len(things))]

    def some(self, things: Sequence[T], most: int) -> list[T]:
        """From one to ``most`` of these, all different by place, in a new order."""
        return self.mixed(things)[: self.between(1, most)]

    def mixed(self, things: Sequence[T]) -> list[T]:
        """All of these in another order."""
        left = list(things)
        return [left.pop(self.number(len(left))) for _ in range(len(left))]
