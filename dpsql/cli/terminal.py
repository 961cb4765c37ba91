"""Output for people: tables, messages, numbers and accounts."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpsql.ledger.shortage import less, more
from dpsql.privacy.cost import Cost
from dpsql.service.reply import Remaining

MUTED = "dim"
_UNLIMITED = 100_000


def show(table: Table, file: TextIO | None = None) -> None:
    """Print a table. In a file it has no width limit, no colours and no spaces at ends of lines."""
    file = file or sys.stdout
    if file.isatty():
        _console(file).print(table)
        return
    text = io.StringIO()
    Console(file=text, width=_UNLIMITED, highlight=False, color_system=None).print(table)
    file.writelines(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


COMPARING = "comparing the data with the policy: {} of {}, table {}"


class Progress:
    """Shows on a terminal how far a long command is, at most once a second."""

    def __init__(self, file: TextIO, text: str = COMPARING) -> None:
        """Nothing is shown in the first second, nor if ``file`` is not a terminal."""
        self._file, self._text, self._said = file, text, time.monotonic()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Called before each step, with the number of steps that are done, of all, and its name."""
        now = time.monotonic()
        if self._file.isatty() and now - self._said >= 1:
            self._said = now
            say(self._text.format(done, total, what), self._file)


def say(line: str, file: TextIO) -> None:
    """Print a muted line, which a narrow terminal does not cut."""
    _console(file).print(mute_text(line), soft_wrap=True)


def _console(file: TextIO) -> Console:
    return Console(file=file, highlight=False, markup=False, emoji=False)


def empty_table(headers: Sequence[str], right: Sequence[int] = ()) -> Table:
    """An empty table; the columns at the positions ``right`` hold numbers."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for position, header in enumerate(headers):
        made.add_column(
            plain(header), justify="right" if position in right else "left", overflow="fold"
        )
    return made


def plain(text: str) -> Text:
    """Text without control characters, since names and values come from policies and data."""
    return Text("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def mute_text(text: str) -> Text:
    """Text in a muted style."""
    return Text(text, style=MUTED)


def accounts(remaining: Sequence[Remaining]) -> Table:
    """A table of what accounts have left."""
    headers = ("account", "epsilon left", "", "delta left", "", "rho left", "", "renews")
    made = empty_table(headers, (1, 3, 5))
    for r in remaining:
        made.add_row(
            plain(r.account),
            less(r.left_epsilon),
            mute_text(f"of {less(r.epsilon)}"),
            less(r.left_delta),
            mute_text(f"of {less(r.delta)}"),
            "" if r.left_rho is None else less(r.left_rho),
            mute_text("" if r.rho is None else f"of {less(r.rho)}"),
            "never" if r.renews is None else f"{r.renews:%Y-%m-%d}",
        )
    return made


def tightest(remaining: Sequence[Remaining]) -> str:
    """The account with the least left, in words."""
    in_rho = [
        (r.left_rho, r.rho, r.account)
        for r in remaining
        if r.in_rho and r.left_rho is not None and r.rho is not None
    ]
    if in_rho:
        left, total, account = min(in_rho)
        return f"rho {less(left)} of {less(total)} left in {account}"
    least = min(remaining, key=lambda r: (r.left_epsilon, r.epsilon))
    return f"epsilon {less(least.left_epsilon)} of {less(least.epsilon)} left in {least.account}"


def paid(cost: Cost, remaining: Sequence[Remaining]) -> str:
    """The cost of an answer in words; in a session that is priced in rho, that comes first."""
    label = f"epsilon {more(cost.epsilon)}"
    if cost.delta:
        label += f" and delta {more(cost.delta)}"
    return f"rho {more(cost.rho)} ({label})" if any(r.in_rho for r in remaining) else label


def spent(epsilon: Fraction, delta: Fraction) -> str:
    """A cost in words."""
    return f"epsilon {less(epsilon)}" + (f" and delta {less(delta)}" if delta else "")
