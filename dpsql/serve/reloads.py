"""Policies are read again one at a time, in a thread of its own.

Whoever changes a policy sends a signal afterwards. Requests that come while policies are read are one
request for a further reading when that has ended: it begins after the last request, so that what was
written before that is in force in the end. A reading waits for no statement, no connection waits for a reading, and
one that hangs keeps neither the endpoint nor its end waiting.
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
"""Seconds that the end of the endpoint waits for a reading."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one policy."""

    endpoint: ServiceEndpoint
    database: str
    version: str
    """Of the policy that is in force now."""
    error: Exception | None = None
    problems: tuple[str, ...] = ()
    """What is wrong, each with its place; none where it was taken up."""


def read_again(endpoints: Sequence[ServiceEndpoint]) -> list[Outcome]:
    """Read each policy and its users; what is wrong with one keeps no other from being read."""
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
    """The thread that reads policies again."""

    def __init__(self, work: Callable[[], Sequence[Outcome]]) -> None:
        """``work`` reads them once, and says what became of each."""
        self._work, self._asked = work, SimpleQueue[bool]()
        self._thread = threading.Thread(target=self._run, name="dpsql-reload", daemon=True)
        self._ended = dict[Result, float]()

    def request(self) -> None:
        """Read them soon. It returns at once, and may be called in a signal handler."""
        self._asked.put(True)

    def start(self) -> None:
        """Begin; what was requested before is done now."""
        GAUGES.add("dpsql_reload_time_seconds", lambda: {(r,): t for r, t in self._ended.items()})
        self._thread.start()

    def close(self) -> None:
        """Begin no other reading, and wait for the one under way, but not for long."""
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
        """All requests that have come are one; False when one of them was to end."""
        while True:
            try:
                if not self._asked.get_nowait():
                    return False
            except Empty:
                return True
