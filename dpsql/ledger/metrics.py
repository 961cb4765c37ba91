"""Metrics for operators, in Prometheus' text form. Labels name accounts, never people or SQL."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from dpsql.diagnostics.operation.gauges import Metric, head, sample
from dpsql.diagnostics.refusal import Refused
from dpsql.ledger.balance import Balance
from dpsql.ledger.store import Size

SECONDS = (0.002, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0)
"""Upper ends of the buckets into which times are counted."""
_ENDS = ("answered", "recalled", "refused", "failed")
_OWN: Mapping[str, tuple[str, ...]] = {"holder": (), "role": (), "session": (), "table": ()}
"""Labels of accounts; an account has those for which it has a name in the policy."""


def _account(quantity: str, name: str, about: str) -> Metric:
    family = f"dpsql_account_{quantity}_{name}"
    return Metric(family, "gauge", f"{about}, in {quantity}.", _OWN)


_QUANTITIES: tuple[tuple[str, str, Callable[[Balance], tuple[Fraction, Fraction]]], ...] = (
    ("limit", "Limit of an account", lambda b: b.total),
    ("spent", "Guarantee of all charges to an account so far", lambda b: b.guarantee),
    ("left", "Most that one more query may cost an account", lambda b: b.left),
)
STATEMENTS = Metric(
    "dpsql_statements_total", "counter", "Statements, by how they ended.", {"end": _ENDS}
)
ANSWER_SECONDS = Metric("dpsql_seconds", "histogram", "Duration of statements.")
CHARGE_SECONDS = Metric(
    "dpsql_charge_seconds", "histogram", "Duration of writing a charge into the ledger."
)
BUILD = Metric("dpsql_build_info", "gauge", "1, with the version of dpsql.", {"version": ()})
POLICY = Metric(
    "dpsql_policy_info", "gauge", "1, with the version of the policy that is in force.",
    {"database": (), "version": ()},
)  # fmt: skip
STALE = Metric(
    "dpsql_data_stale", "gauge", "1 if the data changed while `data_version` did not, else 0.",
    {"database": ()},
)  # fmt: skip
READABLE = Metric("dpsql_ledger_readable", "gauge", "1 if the ledger could be read, else 0.")
RECORDS = Metric("dpsql_ledger_records", "gauge", "Records in the ledger.")
BYTES = Metric("dpsql_ledger_bytes", "gauge", "Size of the ledger on the disk.")
METRICS: Mapping[str, Metric] = {
    m.name: m
    for m in (
        *(
            _account(quantity, name, about)
            for name, about, _ in _QUANTITIES
            for quantity in ("epsilon", "delta")
        ),
        STATEMENTS, ANSWER_SECONDS, CHARGE_SECONDS, BUILD, POLICY, STALE, READABLE, RECORDS, BYTES,
    )
}  # fmt: skip
"""All metrics of a policy and its ledger.

Labels without listed values hold names of the policy.
"""


class Histogram:
    """Counts durations in buckets. Safe for threads."""

    def __init__(self, metric: Metric) -> None:
        """An empty histogram."""
        self._metric, self._lock = metric, threading.Lock()
        self._times: Counter[float] = Counter()
        self._count, self._seconds = 0, 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the duration of the ``with`` block, however it ends."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(time.perf_counter() - start)

    def add(self, seconds: float) -> None:
        """Count one more duration."""
        with self._lock:
            self._count += 1
            self._seconds += seconds
            for end in SECONDS:
                self._times[end] += seconds <= end

    def lines(self) -> Iterator[str]:
        """The histogram in Prometheus' text form."""
        with self._lock:
            times, count, seconds = dict(self._times), self._count, self._seconds
        name = self._metric.name
        yield from head(self._metric)
        for end in SECONDS:
            yield sample(f"{name}_bucket", {"le": repr(end)}, times.get(end, 0))
        yield sample(f"{name}_bucket", {"le": "+Inf"}, count)
        yield sample(f"{name}_sum", {}, seconds)
        yield sample(f"{name}_count", {}, count)


CHARGES = Histogram(CHARGE_SECONDS)
"""The histogram for all ledgers of this process."""


@dataclass(slots=True)
class Outcome:
    """How a statement that raised nothing ended."""

    recalled: bool = False


class Counters:
    """Counts statements by how they ended, and their durations. Safe for threads."""

    def __init__(self) -> None:
        """Counters at zero."""
        self._lock = threading.Lock()
        self._ends, self._times = Counter[str](), Histogram(ANSWER_SECONDS)

    @contextmanager
    def timed(self) -> Iterator[Outcome]:
        """Count the statement that is answered in the ``with`` block, and its duration."""
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
        """Count a statement that was ``answered``, ``recalled``, ``refused`` or ``failed``."""
        with self._lock:
            self._ends[how] += 1
        self._times.add(seconds)

    def lines(self) -> Iterator[str]:
        """The counters in Prometheus' text form."""
        with self._lock:
            ends = dict(self._ends)
        yield from head(STATEMENTS)
        for how in _ENDS:
            yield sample(STATEMENTS.name, {"end": how}, ends.get(how, 0))
        yield from self._times.lines()


def of_accounts(balances: Iterable[Balance]) -> Iterator[str]:
    """The limit, the spending and the rest of each account, in Prometheus' text form."""
    unique: Sequence[Balance] = list({b.account.id: b for b in balances}.values())
    for name, about, pair in _QUANTITIES:
        for i, quantity in enumerate(("epsilon", "delta")):
            metric = _account(quantity, name, about)
            yield from head(metric)
            yield from (sample(metric.name, _labels(b), float(pair(b)[i])) for b in unique)


def of_ledger(size: Size | None) -> Iterator[str]:
    """The size of a ledger, in Prometheus' text form; ``size`` is None if it cannot be read."""
    yield from single(READABLE, 0 if size is None else 1)
    if size is not None:
        yield from single(RECORDS, size.records)
        yield from single(BYTES, size.bytes)


def single(metric: Metric, value: float, **labels: str) -> list[str]:
    """A metric with one sample, in Prometheus' text form."""
    return [*head(metric), sample(metric.name, labels, value)]


def _labels(balance: Balance) -> dict[str, str]:
    account = balance.account
    named = {"role": account.role, "session": account.session, "table": account.table}
    return {"holder": account.holder, **{k: v for k, v in named.items() if v}}
