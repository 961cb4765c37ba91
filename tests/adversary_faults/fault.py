"""What a planted fault is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Area = Literal[
    "planner", "second check", "catalog", "post-processor", "faces", "ledger", "resources", "noise"
]


@dataclass(frozen=True, slots=True)
class Edit:
    """Text of one file of the package that occurs there once, and what stands there instead."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A defect of privacy, correctness, cost or resources that shows at a public face.

    Where a second check catches what the planner does wrong, the edits blind both.
    """

    name: str
    area: Area
    edits: tuple[Edit, ...]
    gain: str
    """What an attacker gains, in one sentence."""
    origin: str = "new"
    """The hole that it repeats, where there was one."""
