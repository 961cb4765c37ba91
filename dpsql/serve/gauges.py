"""The gauges of an endpoint for operators: clients, lanes, memory, caches, catalog processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dpsql.diagnostics.operation import footprint
from dpsql.diagnostics.operation.gauges import GAUGES, Labels
from dpsql.engines.catalog.pool import WORKERS
from dpsql.memory.pool import POOL
from dpsql.policy.model import Policy
from dpsql.policy.shares import shares_of
from dpsql.serve.lanes import LaneState
from dpsql.serve.pgwire.server import Server


def connect(server: Server, policies: Callable[[], Sequence[Policy]]) -> None:
    """Register the gauges of this endpoint. ``policies`` returns the policies that are in force."""
    traffic = server.traffic

    def connections() -> Mapping[Labels, float]:
        found: dict[Labels, float] = {("postgres",): server.connections}
        if server.beside:
            found["http",] = sum(face.connections for face in server.beside)
        return found

    def of_lanes(number: Callable[[LaneState], float]) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {(name,): number(s) for name, s in traffic.gauges().lanes.items()}

    def budget() -> Mapping[Labels, float]:
        shares = shares_of(policies())
        return {
            ("engine",): shares.engine,
            ("catalog",): shares.catalog,
            ("postprocessing",): shares.postprocessing,
            ("pool",): shares.pool,
        }

    GAUGES.add("dpsql_connections", connections)
    GAUGES.add("dpsql_sessions", lambda: server.sessions)
    GAUGES.add("dpsql_newcomers", lambda: traffic.gauges().newcomers)
    GAUGES.add("dpsql_displaced_total", lambda: traffic.gauges().displaced)
    GAUGES.add("dpsql_lane_busy", of_lanes(lambda lane: lane.busy))
    GAUGES.add("dpsql_lane_waiting", of_lanes(lambda lane: lane.waiting))
    GAUGES.add("dpsql_lane_oldest_seconds", of_lanes(lambda lane: lane.oldest_seconds))
    GAUGES.add(
        "dpsql_statements_stopped_total",
        lambda: {(cause,): n for cause, n in traffic.gauges().stopped.items()},
    )
    GAUGES.add("dpsql_memory_budget_bytes", budget)
    _connect_process()


def _connect_process() -> None:
    """Register the gauges of the process, which do not depend on its number of endpoints."""
    GAUGES.add("dpsql_memory_resident_bytes", footprint.resident)
    GAUGES.add("dpsql_memory_tree_bytes", footprint.tree)
    GAUGES.add(
        "dpsql_memory_pool_bytes", lambda: {(use,): n for use, n in POOL.bytes_by_use().items()}
    )
    GAUGES.add("dpsql_cache_hits_total", lambda: _lookups(0))
    GAUGES.add("dpsql_cache_misses_total", lambda: _lookups(1))
    GAUGES.add("dpsql_catalog_waiting", lambda: WORKERS.gauges().waiting)
    GAUGES.add("dpsql_catalog_killed_total", lambda: WORKERS.gauges().killed)
    GAUGES.add("dpsql_catalog_bytes", lambda: WORKERS.gauges().memory)


def _lookups(place: int) -> Mapping[Labels, float]:
    return {(cache,): numbers[place] for cache, numbers in POOL.lookups_by_cache().items()}
