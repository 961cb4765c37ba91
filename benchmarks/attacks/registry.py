"""All attacks, by name. To add one: a function with a docstring in a module of `scenarios`, decorated here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.attacks.hostile import Hostile

Plot = Callable[[Hostile], None]


@dataclass(frozen=True)
class Attack:
    """What one log-in does, in so many processes."""

    name: str
    about: str
    run: Plot
    processes: int = 1


ATTACKS: dict[str, Attack] = {}


def attack(*, processes: int = 1) -> Callable[[Plot], Plot]:
    """A function is an attack: it is called like it, and its docstring says what it does."""

    def add(run: Plot) -> Plot:
        name = run.__name__.replace("_", "-")
        assert name not in ATTACKS, name
        assert run.__doc__, name
        ATTACKS[name] = Attack(name, run.__doc__.strip().splitlines()[0], run, processes)
        return run

    return add
