"""What an operator watches, in Prometheus' text form. Labels name accounts, never people or SQL."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from dpsql.diagnostics.refusal import Refused
from dpsql.ledger.balance import Balance

SECONDS = (0.002, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0)
"""Upper ends of the classes into which times of answers are counted."""


@dataclass(slots=True)
class Outcome:
    """How a statement that raised nothing ended."""

    recalled: bool = False


class Counters:
    """How many statements ended how, and how long they took. Safe for threads."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self._lock = threading.Lock()
        self._ends: Counter[str] = Counter()
        self._times: Counter[float] = Counter()
        self._seconds = 0.0

    @contextmanager
    def timed(self) -> Iterator[Outcome]:
        """Count the statement that is answered inside, and how long it took."""
        outcome, start, how = Outcome(), time.perf_counter(), "failed"
        try:
            yield outcome
            how = "recalled" if outcome.recalled else "answered"
        except Refused:
            how = "refused"
            raise
        finally:
            self.ended(how, time.perf_counter() - start)

    def ended(self, how: str, seconds: float) -> None:
        """A statement was ``answered``, ``recalled``, ``refused`` or ``failed``."""
        with self._lock:
            self._ends[how] += 1
            self._seconds += seconds
            for end in SECONDS:
                self._times[end] += seconds <= end

    def lines(self) -> Iterator[str]:
        """The counters as Prometheus reads them."""
        with self._lock:
            ends, times, seconds = dict(self._ends), dict(self._times), self._seconds
        total = sum(ends.values())
        yield from _family("dpsql_statements_total", "counter", "Statements, by how they ended.")
        for how in ("answered", "recalled", "refused", "failed"):
            yield _sample("dpsql_statements_total", {"end": how}, ends.get(how, 0))
        yield from _family("dpsql_seconds", "histogram", "How long statements took.")
        for end in SECONDS:
            yield _sample("dpsql_seconds_bucket", {"le": repr(end)}, times.get(end, 0))
        yield _sample("dpsql_seconds_bucket", {"le": "+Inf"}, total)
        yield _sample("dpsql_seconds_sum", {}, seconds)
        yield _sample("dpsql_seconds_count", {}, total)


_GAUGES: tuple[tuple[str, str, Callable[[Balance], tuple[Fraction, Fraction]]], ...] = (
    ("limit", "What an account may spend.", lambda b: b.total),
    ("spent", "The guarantee of all that was asked so far.", lambda b: b.guarantee),
    ("left", "The most that one more query may cost.", lambda b: b.left),
)


def exposition(balances: Iterable[Balance], counters: Counters | None = None) -> str:
    """Accounts and counters as one page."""
    unique: Sequence[Balance] = list({b.account.id: b for b in balances}.values())
    lines: list[str] = []
    for name, about, pair in _GAUGES:
        for i, quantity in enumerate(("epsilon", "delta")):
            family = f"dpsql_account_{quantity}_{name}"
            lines += _family(family, "gauge", f"{about[:-1]}, in {quantity}.")
            lines += [_sample(family, _labels(b), float(pair(b)[i])) for b in unique]
    if counters is not None:
        lines += counters.lines()
    return "\n".join(lines) + "\n"


def _labels(balance: Balance) -> dict[str, str]:
    account = balance.account
    named = {"role": account.role, "session": account.session, "table": account.table}
    return {"holder": account.holder, **{k: v for k, v in named.items() if v}}


def _family(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value:.12g}" if inside else f"{name} {value:.12g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
