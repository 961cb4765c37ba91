"""Which function shows which fault."""

from __future__ import annotations

from collections.abc import Callable

Shows = Callable[[], bool]
SHOWS: dict[str, Shows] = {}
"""Each says whether the fault is seen, in a process that uses the package as it is found."""


def shows(*names: str) -> Callable[[Shows], Shows]:
    """This function shows these faults."""

    def note(function: Shows) -> Shows:
        for name in names:
            known = SHOWS.get(name, function)  # a module may be read under two names
            assert known.__qualname__ == function.__qualname__, name
            SHOWS[name] = function
        return function

    return note
