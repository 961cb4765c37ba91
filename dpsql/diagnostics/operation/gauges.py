"""Metrics of the whole process, each read when the metrics page is requested.

A module registers once how its metric is read: ``GAUGES.add("dpsql_lane_busy", read)``. ``read``
returns a number, or a mapping from the values of the labels, in their order, to numbers:
``{("light",): 2, ("workers",): 8}``. It may be called from any thread, at each request. It must be
quick, must not wait, and must only count.

Claim: everything shown is public: counts, sizes and times, never of one statement or one person's
    rows. The page has a bounded length.
Assumes: a ``read`` only counts, as stated above.
Argument: a name that is not in ``METRICS`` is rejected, and a sample with label values that are not
    listed there is left out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from dpsql.diagnostics.operation.events import COUNTS, EVENTS

Labels = tuple[str, ...]
Read = Callable[[], float | Mapping[Labels, float]]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number, or numbers by labels, each of which has listed values."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    about: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_FACES = ("postgres", "http")
_LANES = ("data", "catalog", "light", "proofs")
_HELD = (
    "answers", "prepared", "portals", "sessions", "received", "unsent", "reading", "http",
)  # fmt: skip
_CACHES = (
    "cached_answers", "cached_catalog", "cached_descriptions", "cached_routes", "cached_statements",
    "cached_plans", "cached_releases", "cached_checks", "cached_counts",
)  # fmt: skip
METRICS: Mapping[str, Metric] = {
    m.name: m
    for m in (
        Metric("dpsql_events_total", "counter", "Events of the operator's log.",
               {"event": tuple(EVENTS)}),
        Metric("dpsql_start_time_seconds", "gauge", "When the endpoint began to listen, since 1970."),
        Metric("dpsql_reload_time_seconds", "gauge", "When policies were last read again, since 1970.",
               {"result": ("ok", "failed")}),
        Metric("dpsql_connections", "gauge", "Clients that are connected.", {"face": _FACES}),
        Metric("dpsql_sessions", "gauge", "Clients that have logged in over the PostgreSQL protocol."),
        Metric("dpsql_newcomers", "gauge", "Clients that have not logged in yet, on both faces."),
        Metric("dpsql_displaced_total", "counter", "Connections that were closed before a log-in, to make room for others."),
        Metric("dpsql_lane_busy", "gauge", "Threads of a lane that work.",
               {"lane": _LANES}),
        Metric("dpsql_lane_waiting", "gauge", "Jobs that wait for a thread of a lane.", {"lane": _LANES}),
        Metric("dpsql_lane_oldest_seconds", "gauge", "How long the oldest waiting job of a lane has waited.",
               {"lane": _LANES}),
        Metric("dpsql_statements_stopped_total", "counter", "Statements that were stopped, by cause.",
               {"cause": ("cancel", "timeout", "disconnect", "terminate", "shutdown")}),
        Metric("dpsql_memory_budget_bytes", "gauge",
               "How the policy shares out the memory of the process tree.",
               {"share": ("engine", "catalog", "postprocessing", "pool")}),
        Metric("dpsql_memory_resident_bytes", "gauge", "Resident memory of this process (Linux)."),
        Metric("dpsql_memory_tree_bytes", "gauge",
               "Memory of this process and its workers, shared pages counted once (Linux)."),
        Metric("dpsql_memory_pool_bytes", "gauge", "Memory that the pool holds, by what it is for.",
               {"use": (*_HELD, *_CACHES)}),
        Metric("dpsql_cache_hits_total", "counter", "Lookups in a cache that found something.",
               {"cache": _CACHES}),
        Metric("dpsql_cache_misses_total", "counter", "Lookups in a cache that found nothing.",
               {"cache": _CACHES}),
        Metric("dpsql_catalog_workers", "gauge", "Processes that answer catalog queries.",
               {"state": ("idle", "busy")}),
        Metric("dpsql_catalog_waiting", "gauge", "Catalog queries that wait for a process."),
        Metric("dpsql_catalog_killed_total", "counter", "Processes for catalog queries that were killed, or died."),
        Metric("dpsql_catalog_bytes", "gauge", "Memory of the processes for catalog queries."),
        Metric("dpsql_ready", "gauge", "1 if the part worked at the last readiness check, else 0.",
               {"what": ("ledger", "engine", "catalog", "lanes")}),
    )
}  # fmt: skip
"""All metrics of the process. The list in the README is generated from this mapping."""


class Gauges:
    """The functions that read the metrics of a process. Safe for threads."""

    def __init__(self) -> None:
        """No metric is registered yet."""
        self._lock, self._reads = threading.Lock(), dict[str, Read]()

    def add(self, name: str, read: Read) -> None:
        """Register ``read`` for the metric of this name, which must be in ``METRICS``."""
        if name not in METRICS:
            raise KeyError(f"{name} is not in METRICS")
        with self._lock:
            self._reads[name] = read

    def lines(self) -> Iterator[str]:
        """All registered metrics in Prometheus' text format. A metric that fails is left out."""
        with self._lock:
            reads = dict(self._reads)
        for name, metric in METRICS.items():
            if name in reads:
                yield from _family(metric, reads[name])


def _family(metric: Metric, read: Read) -> list[str]:
    try:
        found = read()
        numbers = found if isinstance(found, Mapping) else {(): found}
        samples = [
            sample(metric.name, dict(zip(metric.labels, values, strict=True)), float(number))
            for values, number in numbers.items()
            if _is_listed(metric, values)
        ]
    except Exception:  # noqa: BLE001 (one number that cannot be read hides no other)
        return []
    return [*head(metric), *samples]


def _is_listed(metric: Metric, values: Labels) -> bool:
    return len(values) == len(metric.labels) and all(
        value in known for value, known in zip(values, metric.labels.values(), strict=True)
    )


def head(metric: Metric) -> list[str]:
    """The lines before the samples of a family."""
    return [f"# HELP {metric.name} {metric.about}", f"# TYPE {metric.name} {metric.kind}"]


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """The line of one sample: the metric, its labels and its value."""
    inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value:.16g}" if inside else f"{name} {value:.16g}"


def page(lines: Iterable[str]) -> str:
    """The lines as one text."""
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


GAUGES = Gauges()
"""The metrics of this process."""
GAUGES.add("dpsql_events_total", lambda: {(name,): n for name, n in COUNTS.all().items()})
