"""The memory of ``dpsql serve``, and how it is divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.model import Limits, Policy

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip
USUAL_REST = 10**9
"""The memory beside the engine, if the policy does not say."""
LEAST_REST = 512 * 10**6
"""With less memory than this beside the engine, no large answer would be possible."""
MOST_WORKERS = 4
WORKER = 250 * 10**6
"""The memory of a process that answers catalog queries.

It needs a quarter of this at start. Drivers read their types by statements for which the engine
allocates 120 MB, most of which it never touches.
"""


@dataclass(frozen=True, slots=True)
class Shares:
    """Bytes for each part of ``dpsql serve``; together they are ``endpoint.memory``.

    The interpreter and the packages that every process loads, about 200 MB, are not counted.
    """

    engine: int
    """For all engines that hold data: ``limits.memory`` of each policy."""
    catalog: int
    """For all processes that answer catalog queries."""
    postprocessing: int
    """For all post-processing at one time."""
    pool: int
    """For caches, held answers, prepared statements, and messages in and out."""

    @property
    def workers(self) -> int:
        """The number of processes that may answer catalog queries at one time."""
        return min(MOST_WORKERS, max(1, self.catalog // WORKER))

    @property
    def catalog_worker(self) -> int:
        """The bytes for one of these processes."""
        return self.catalog // self.workers

    @property
    def budget(self) -> int:
        """The bytes of all parts together."""
        return self.engine + self.catalog + self.postprocessing + self.pool


def bytes_of(size: str) -> int:
    """A size as policies and DuckDB write it, in bytes.

    >>> bytes_of("1.5GB"), bytes_of("2 KiB")
    (1500000000, 2048)
    """
    unit = next(unit for unit in sorted(UNITS, key=len, reverse=True) if size.endswith(unit))
    return int(Fraction(size.removesuffix(unit).strip()) * UNITS[unit])


def shares(memory: str | None, *engines: str) -> Shares:
    """Divide the ``memory`` beside the engines: half for the catalog, a quarter for each other.

    Without ``memory`` the rest is 1 GB. Raises ``ValueError`` if the rest is less than 512 MB.
    """
    engine = sum(map(bytes_of, engines))
    rest = USUAL_REST if memory is None else bytes_of(memory) - engine
    if rest < LEAST_REST:
        raise ValueError(
            f"endpoint.memory is {memory}, and limits.memory takes {' and '.join(engines)} of it; "
            f"at least {megabytes(LEAST_REST)} must be left: write at least {megabytes(engine + LEAST_REST)}, or less "
            "as limits.memory"
        )
    catalog, postprocessing = rest // 2, rest // 4
    return Shares(engine, catalog, postprocessing, rest - catalog - postprocessing)


def megabytes(size: int) -> str:
    """A size in megabytes, rounded up.

    >>> megabytes(1_256_000_001)
    '1257MB'
    """
    return f"{-(-size // 10**6)}MB"


def shares_of(policies: Sequence[Policy]) -> Shares:
    """The shares of one ``dpsql serve`` of these policies, by the first one's ``endpoint.memory``.

    Each policy has an engine of its own, so the limits of their engines are added up.
    """
    limits: list[Limits] = [policy.limits for policy in policies]
    try:
        return shares(policies[0].front.bounds.memory, *(limit.memory for limit in limits))
    except ValueError as error:
        raise PolicyError(f"{policies[0].path}: {error}") from None
