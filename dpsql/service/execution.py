"""A decorator that puts a method of a session, and all that it calls, under one deadline."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Executes(Protocol):
    """An object that carries out statements, such as a session."""

    def execution(self) -> AbstractContextManager[None]:
        """Enter the execution of one statement; a nested one is part of the outer one."""
        ...


S = TypeVar("S", bound=Executes)


def one_execution(work: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Run the method, and all that it calls, as one execution: under one deadline."""

    @wraps(work)
    def done(session: S, /, *args: P.args, **named: P.kwargs) -> T:
        with session.execution():
            return work(session, *args, **named)

    return done
