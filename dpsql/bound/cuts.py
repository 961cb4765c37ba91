"""What a strategy may leave out of an answer. Readers are told of it whether or not it happens.

Claim: which cuts a strategy names depends on its limits alone, and never on a row.
Assumes: limits follow from the policy, the statement, and bounds that were released.
Argument: a cut holds limits of its strategy, and nothing else.

Each strategy names its cuts. ``price.notes`` writes them as sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class LighterRows:
    """If a unit has more than ``most`` rows, all of its rows weigh less."""

    most: int | Fraction


@dataclass(frozen=True, slots=True)
class SmallerSums:
    """A unit adds to a sum at most what ``most`` rows of the largest value do."""

    most: int | Fraction


@dataclass(frozen=True, slots=True)
class FewerRows:
    """Of a unit at most ``most`` rows count; ``in_group``: in each group."""

    most: int
    in_group: bool = False


@dataclass(frozen=True, slots=True)
class FewerGroups:
    """A unit counts in at most ``most`` groups."""

    most: int


@dataclass(frozen=True, slots=True)
class SmallerCounts:
    """Rows of a unit weigh less if the Euclidean norm of its counts is above ``most``."""

    most: Fraction


@dataclass(frozen=True, slots=True)
class ShorterVectors:
    """Units whose vectors over all groups are longer than a limit count as the limit.

    The limits are powers of norms, as in ``bound.vector_clip``; None: no unit can exceed it.
    """

    norm: int
    units: Fraction | None
    rows: Fraction
    worth: Fraction


PlainCut = LighterRows | SmallerSums | FewerRows | FewerGroups | SmallerCounts
"""The cuts that have one note each."""
Cut = PlainCut | ShorterVectors
