"""Methods of a session that do the whole of a statement, or a part of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Executes(Protocol):
    """What carries out statements."""

    def execution(self) -> AbstractContextManager[None]:
        """The execution of one statement; inside another one it is part of that."""
        ...


S = TypeVar("S", bound=Executes)


def one_execution(work: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """The method under one deadline, with all that it calls."""

    @wraps(work)
    def done(session: S, /, *args: P.args, **named: P.kwargs) -> T:
        with session.execution():
            return work(session, *args, **named)

    return done
