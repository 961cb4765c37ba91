"""How the memory of `dpsql serve` is shared out."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.policy.shares import LEAST_REST, WORKER, bytes_of, shares, shares_of

FAR = Path(__file__).parents[3] / "fixtures" / "policies" / "far.yaml"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2 * 10**9), ("1.5 MB", 1_500_000), ("3KB", 3_000), ("1TB", 10**12),
        ("2GiB", 2 << 30), ("1MiB", 1 << 20), ("4 KiB", 4096), ("0.5TiB", 1 << 39),
    ],
)  # fmt: skip
def test_sizes_are_read_as_duckdb_reads_them(text: str, size: int) -> None:
    assert bytes_of(text) == size


def test_the_shares_are_the_whole() -> None:
    for memory, engine in (
        ("5GB", "4GB"),
        ("1512MB", "1GB"),
        ("7.777GB", "123.4MiB"),
        (None, "4GB"),
    ):
        found = shares(memory, engine)
        whole = bytes_of(engine) + 10**9 if memory is None else bytes_of(memory)
        assert found.budget == whole
        assert found.engine == bytes_of(engine)
        assert found.workers * found.catalog_worker <= found.catalog
        assert min(found.catalog, found.postprocessing, found.pool) >= LEAST_REST // 4
        assert found.workers == 1 or found.catalog_worker >= WORKER


def test_less_than_the_least_is_refused() -> None:
    assert shares("1512MB", "1GB").pool == 128 * 10**6
    with pytest.raises(ValueError, match=r"write at least 1512MB, or less as limits\.memory"):
        shares("1511.9MB", "1GB")


def _policy(memory: str | None, engine: str) -> Policy:
    policy = load(FAR)
    front = replace(policy.front, bounds=replace(policy.front.bounds, memory=memory))
    return replace(policy, front=front, limits=replace(policy.limits, memory=engine))


def test_engines_of_several_policies_add_up() -> None:
    first, second = _policy("4GB", "2GB"), _policy("64GB", "1GB")
    assert (shares_of([first]).engine, shares_of([first]).budget) == (2 * 10**9, 4 * 10**9)
    both = shares_of([first, second])
    assert (both.engine, both.budget) == (3 * 10**9, 4 * 10**9)
    assert shares_of([_policy(None, "2GB"), second]).budget == 4 * 10**9
    with pytest.raises(PolicyError, match=r"far\.yaml: .* takes 2GB and 1.6GB of it"):
        shares_of([first, _policy(None, "1.6GB")])
