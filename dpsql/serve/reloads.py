"""Reloads policies one at a time, in a thread of its own.

An owner who has changed a policy sends a signal. Requests that come during a reload count as one
request for a further reload, which begins when the first has ended. It begins after the last
request, so everything that was written before that request comes into force. A reload waits for no
statement, and no connection waits for a reload. A reload that hangs delays neither the endpoint nor
its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from time import monotonic

from dpsql.diagnostics.operation.defects import defect
from dpsql.diagnostics.operation.events import Reloaded, ReloadFailed, Result, record
from dpsql.diagnostics.operation.gauges import GAUGES
from dpsql.diagnostics.refusal import Error, PolicyError
from dpsql.serve.endpoint import ServiceEndpoint

PATIENCE = 2.0
"""Seconds for which the end of the endpoint waits for a reload."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a reload for one policy."""

    endpoint: ServiceEndpoint
    database: str
    version: str
    """The version of the policy that is in force now."""
    error: Exception | None = None
    problems: tuple[str, ...] = ()
    """The problems, each with its place in a file; none if the policy came into force."""


def read_again(endpoints: Sequence[ServiceEndpoint]) -> list[Outcome]:
    """Reload each policy and its users. A problem with one of them does not affect the others."""
    return [_read_again(endpoint) for endpoint in endpoints]


def _read_again(endpoint: ServiceEndpoint) -> Outcome:
    start, problems = monotonic(), tuple[str, ...]()
    error: Exception | None = None
    try:
        endpoint.reload()
    except PolicyError as wrong:
        error, problems = wrong, wrong.problems
    except (Error, OSError) as wrong:
        error, problems = wrong, (str(wrong),)
    except Exception as wrong:  # noqa: BLE001 (the other policies are still to be read)
        error, problems = wrong, (f"a defect in dpsql (incident {defect(wrong)})",)
    policy = endpoint.snapshot.service.policy
    outcome = Outcome(endpoint, policy.front.database, policy.version, error, problems)
    if error is None:
        record(Reloaded(outcome.database, outcome.version, monotonic() - start))
    for problem in problems:
        record(ReloadFailed(outcome.database, outcome.version, problem))
    return outcome


class Reloads:
    """The thread that reloads policies."""

    def __init__(self, work: Callable[[], Sequence[Outcome]]) -> None:
        """``work`` reloads all policies once, and returns the outcome of each."""
        self._work, self._asked = work, SimpleQueue[bool]()
        self._thread = threading.Thread(target=self._run, name="dpsql-reload", daemon=True)
        self._ended = dict[Result, float]()

    def request(self) -> None:
        """Ask for a reload soon. Returns at once, and may be called in a signal handler."""
        self._asked.put(True)

    def start(self) -> None:
        """Start the thread. Requests that came before are carried out now."""
        GAUGES.add("dpsql_reload_time_seconds", lambda: {(r,): t for r, t in self._ended.items()})
        self._thread.start()

    def close(self) -> None:
        """Begin no other reload, and wait a short time for the one that runs."""
        self._asked.put(False)
        if self._thread.is_alive():
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        while self._asked.get() and self._rest_goes_on():
            result: Result = "failed"
            try:
                if not any(outcome.problems for outcome in self._work()):
                    result = "ok"
            except Exception as error:  # noqa: BLE001 (the next request must find the thread there)
                defect(error)
            self._ended[result] = datetime.now(UTC).timestamp()

    def _rest_goes_on(self) -> bool:
        """Take all requests that have come as one. Returns False if one of them was to end."""
        while True:
            try:
                if not self._asked.get_nowait():
                    return False
            except Empty:
                return True
