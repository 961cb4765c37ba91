"""What is measured of an attack, and what of it is too much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

MB = 1_000_000


@dataclass(frozen=True)
class Bounds:
    """What must hold while an attack goes on, and after it."""

    memory: int
    """Bytes of the whole process tree: the budget and 300 MB."""
    recovered: float = 1.2
    """Memory a minute later, as a multiple of what it was when the server had warmed up."""
    select_p99: float = 0.25
    query: float = 2.0
    """Seconds of a fresh small query, a log-in, a health check: each one."""
    overrun: float = 1.0
    """Seconds for which something runs after its deadline."""
    shutdown: float = 10.0
    idle_shutdown: float = 2.0


@dataclass
class Samples:
    """Seconds of one kind of request of the other client, and what went wrong."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def part(self, share: float) -> float:
        """A quantile: of 100 samples, the 0.99 one is exceeded by one. Not a number without samples."""
        ordered = sorted(self.seconds)
        if not ordered:
            return math.nan
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    @property
    def most(self) -> float:
        """The longest."""
        return max(self.seconds, default=math.nan)


@dataclass
class Measurement:
    """One attack: what the server took, and what the other client saw of it."""

    name: str
    base: int
    """Bytes of the server after its warm-up."""
    before: int = 0
    peak: int = 0
    after: int = 0
    """Bytes when it had recovered, or a minute later."""
    waited: float = 0.0
    """Seconds until then."""
    peak_parts: list[int] = field(default_factory=list)
    """Bytes of each process at the peak, that of the first process first."""
    after_parts: list[int] = field(default_factory=list)
    select: Samples = field(default_factory=Samples)
    fresh: Samples = field(default_factory=Samples)
    query: Samples = field(default_factory=Samples)
    health: Samples = field(default_factory=Samples)
    http: Samples = field(default_factory=Samples)
    statements: int = 0
    longest: float = 0.0
    overrun: float = 0.0
    """Seconds beyond its deadline of the attack's slowest statement."""
    slowest: str = ""
    busy: float = 0.0
    """Seconds beyond the last deadline for which the server still worked."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """How the attack's statements ended."""
    ended: str = ""
    """Why the server was gone, if it was."""
    ledger: float = 0.0
    """Seconds for which a charged question may wait for a ledger that does not answer."""

    def keeps_memory(self, bounds: Bounds) -> bool:
        """Whether memory was not given back."""
        return self.after > bounds.recovered * self.base

    def breaches(self, bounds: Bounds) -> list[str]:
        """Each bound that does not hold, in words."""
        found = [f"the server is gone: {self.ended}"] if self.ended else []
        if self.peak > bounds.memory:
            found.append(f"memory {self.peak / MB:.0f} MB of {bounds.memory / MB:.0f} MB")
        if not self.ended and self.keeps_memory(bounds):
            found.append(
                f"memory {self.after / MB:.0f} MB {self.waited:.0f} s later; it began with {self.base / MB:.0f} MB"
            )
        if not self.select.part(0.99) <= bounds.select_p99:
            found.append(f"SELECT 1 p99 {1000 * self.select.part(0.99):.0f} ms")
        for about, samples, more in self._others():
            if not samples.most <= bounds.query + more:
                found.append(f"{about} {samples.most:.1f} s")
            found.extend(f"{about}: {error}" for error in dict.fromkeys(samples.errors))
        found.extend(f"SELECT 1: {error}" for error in dict.fromkeys(self.select.errors))
        return found + self._late(bounds)

    def _others(self) -> Sequence[tuple[str, Samples, float]]:
        return (
            ("a log-in", self.fresh, 0.0), ("a small query", self.query, self.ledger),
            ("a health check", self.health, 0.0), ("a small query over HTTP", self.http, self.ledger),
        )  # fmt: skip

    def _late(self, bounds: Bounds) -> list[str]:
        found = []
        if self.overrun > bounds.overrun:
            found.append(f"{self.overrun:.1f} s after its deadline ended: {self.slowest}")
        if self.busy > bounds.overrun:
            found.append(f"the server worked for {self.busy:.1f} s after the last deadline")
        return found

    def line(self, bounds: Bounds) -> str:
        """One line of the table."""
        verdict = "; ".join(self.breaches(bounds)) or "holds"
        return (
            f"{self.name:28} {self.peak / MB:8.0f} {self.after / MB:8.0f} {self.waited:5.0f}"
            f" {1000 * self.select.part(0.5):7.1f} {1000 * self.select.part(0.99):7.0f} {1000 * self.select.most:7.0f}"
            f" {len(self.select.seconds):5} {self.fresh.most:6.2f} {self.query.most:6.2f} {self.http.most:6.2f}"
            f" {max(self.overrun, self.busy):6.1f}  {verdict}"
        )


HEAD = (
    f"{'attack':28} {'peak MB':>8} {'after MB':>8} {'s':>5} {'p50 ms':>7} {'p99 ms':>7} {'max ms':>7}"
    f" {'n':>5} {'log-in':>6} {'query':>6} {'HTTP':>6} {'over s':>6}  verdict"
)


@dataclass(frozen=True)
class Ending:
    """How long the server took to end."""

    name: str
    seconds: float
    most: float
    status: int | None
    """Its exit status; None: it had to be killed."""

    def breaches(self) -> list[str]:
        """What does not hold."""
        found = [] if self.seconds <= self.most else [f"{self.seconds:.1f} s of {self.most:g} s"]
        if self.status is None:
            found.append("it had to be killed")
        elif self.status != 0:
            found.append(f"exit status {self.status}")
        return found

    def line(self) -> str:
        """One line of the table."""
        verdict = "; ".join(self.breaches()) or "holds"
        return f"{'SIGTERM: ' + self.name:60} {self.seconds:6.2f} s  {verdict}"
