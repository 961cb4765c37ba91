"""Make what was found smaller: no copies, fewer steps, units, rows and lines of the policy, shorter SQL."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.adversary.model import Finding, Row, Step
from tests.adversary.seeds import Seed

T = TypeVar("T")
Still = Callable[[Seed], Finding | None]
"""Whether an attack still finds the same."""
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\s+|<>|<=|>=|::|=>|.", re.DOTALL)
_DIGITS = re.compile(r"[\d.e+-]+")


def alike(one: Finding, other: Finding | None) -> bool:
    """Whether two findings say the same, numbers aside."""
    if other is None or one.judge != other.judge:
        return False
    return _DIGITS.sub("", one.meaning)[:60] == _DIGITS.sub("", other.meaning)[:60]


def shrink(seed: Seed, found: Finding, still: Still, seconds: float = 120.0) -> Seed:
    """The smallest attack that is reached in so many seconds and still finds the same."""
    end = time.monotonic() + seconds

    def holds(smaller: Seed) -> bool:
        return time.monotonic() < end and alike(found, still(smaller))

    plain = replace(seed, world=replace(seed.world, prepared=False))
    seed = plain if seed.world.prepared and holds(plain) else seed
    seed = _steps(seed, found, holds)
    seed = _rows(seed, holds)
    seed = _policy(seed, holds)
    return _statements(seed, holds)


Holds = Callable[[Seed], bool]


def _steps(seed: Seed, found: Finding, holds: Holds) -> Seed:
    short = replace(seed, steps=seed.steps[: found.step + 1])
    seed = short if holds(short) else seed
    last = seed.steps[-1:]

    def with_steps(steps: Sequence[Step]) -> Seed:
        return replace(seed, steps=(*steps, *last))

    return with_steps(_fewer(seed.steps[:-1], lambda kept: holds(with_steps(kept))))


def _rows(seed: Seed, holds: Holds) -> Seed:
    def with_rows(rows: Sequence[Row]) -> Seed:
        return replace(seed, world=replace(seed.world, rows=tuple(rows)))

    def of(owners: Sequence[str | None]) -> Seed:
        return with_rows(
            [r for r in seed.world.rows if r.owner in owners or r.owner in seed.owners]
        )

    others = [None, *(o for o in seed.world.owners if o not in seed.owners)]
    seed = of(_fewer(others, lambda kept: holds(of(kept))))
    seed = with_rows(_fewer(seed.world.rows, lambda kept: holds(with_rows(kept))))
    return _earlier(seed, holds)


def _earlier(seed: Seed, holds: Holds) -> Seed:
    def with_rows(rows: Sequence[Row]) -> Seed:
        return replace(seed, world=replace(seed.world, earlier=tuple(rows)))

    return with_rows(_fewer(seed.world.earlier, lambda kept: holds(with_rows(kept))))


def _policy(seed: Seed, holds: Holds) -> Seed:
    def with_lines(lines: Sequence[str]) -> Seed:
        return replace(seed, world=replace(seed.world, policy="\n".join(lines) + "\n"))

    lines = seed.world.policy.splitlines()
    for line in lines[::-1]:
        fewer = [other for other in lines if other is not line]
        if holds(with_lines(fewer)):
            lines = fewer
    return with_lines(lines)


def _statements(seed: Seed, holds: Holds) -> Seed:
    for number in range(len(seed.steps)):
        seed = _statement(seed, number, holds)
    return seed


def _statement(seed: Seed, number: int, holds: Holds) -> Seed:
    def with_text(tokens: Sequence[str]) -> Seed:
        changed = replace(seed.steps[number], text="".join(tokens))
        return replace(seed, steps=(*seed.steps[:number], changed, *seed.steps[number + 1 :]))

    tokens = _TOKEN.findall(seed.steps[number].text)
    return with_text(_fewer(tokens, lambda kept: holds(with_text(kept))))


def _fewer(things: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> list[T]:
    """Leave out halves, then quarters, down to single things, as long as it holds."""
    kept, size = list(things), max(1, len(things) // 2)
    while kept:
        at, smaller = 0, False
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            if holds(fewer):
                kept, smaller = fewer, True
            else:
                at += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return kept
