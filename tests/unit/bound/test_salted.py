"""Draws within a unit: different groups are different arguments, and no two have the same place."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import replace

import duckdb
import pytest
from support.corpus import SHOP
from support.datasets import in_memory
from support.measured import Exact, exact, flat, forced, opened, plan_of, request

from dpsql.bound import GroupCaps, WeightsAndGroups
from dpsql.bound.copies import copy_of
from dpsql.engines.duckdb.terms import Scope, term
from dpsql.engines.duckdb.write import write_rows
from dpsql.ir.statements import Draw, Name
from dpsql.policy.prepared_copies import RANK
from dpsql.price import price
from dpsql.price.priced import PricedMeasurement

SALT = ", $salt)"
ONE = r"hash\([^()]*, (\$salt|\d+)\)"


def _different(arguments: str) -> tuple[int, int]:
    """How many combinations of values and NULLs there are, and how many a hash without NULLs tells."""
    every = " CROSS JOIN ".join(
        f"(VALUES (NULL), (1), (2)) AS {n}({n})" for n in ("u0", "k0", "k1", "v0")
    )
    found = duckdb.sql(f"SELECT count(*), count(DISTINCT concat_ws('|', {arguments})) FROM {every}")
    total, told = found.fetchall()[0]
    return total, told


def test_a_hash_that_skips_null_tells_all_groups_apart() -> None:
    text = term(Draw(tuple(map(Name, ("u0", "k0", "k1", "v0")))), Scope())
    arguments = text.removeprefix("hash(").removesuffix(SALT)
    assert _different(arguments) == (81, 81)
    untagged = re.sub(r"\w+ IS NULL, ", "", arguments)
    assert _different(untagged)[1] < 81, "so it is seen where the tags are left out"


WAYS = {
    "groups": (
        "SELECT placed, channel, COUNT(*), SUM(amount) FROM orders GROUP BY placed, channel",
        GroupCaps(groups=2, limit=True, per_group=3),
    ),
    "all groups at once": (
        "SELECT placed, channel, COUNT(*), SUM(amount) FROM orders GROUP BY placed, channel",
        GroupCaps(groups=50, limit=True, per_group=1),
    ),
    "bins": (
        "SELECT placed, MEDIAN(amount) FROM orders GROUP BY placed",
        GroupCaps(groups=2, limit=True, per_group=3),
    ),
    "values": (
        "SELECT channel, COUNT(DISTINCT placed) FROM orders GROUP BY channel",
        WeightsAndGroups(rows=2, groups=1, limit=True),
    ),
    "pairs of values": (
        "SELECT channel, COUNT(DISTINCT (placed, amount)) FILTER (WHERE amount > 10) FROM orders GROUP BY 1",
        WeightsAndGroups(rows=2, groups=1, limit=True),
    ),
}  # fmt: skip


@functools.cache
def _stored(order: str) -> duckdb.DuckDBPyConnection:
    """The dirty data, with rows in this order."""
    connection = in_memory("dirty")
    for table in ("orders", "visits"):
        connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM {table} ORDER BY {order}")
    return connection


def _part(name: str, change: Callable[[str], str]) -> PricedMeasurement:
    sql, bounding = WAYS[name]
    plan = plan_of(sql, SHOP)
    (share, *_) = price._shares(plan, request(3, 1))
    part = forced(plan.measurements[0], bounding, share)
    assert "place <= " in part.sql
    return replace(part, sql=change(part.sql))


def _plain(found: Exact) -> dict[object, list[object]]:
    """Bins are in no particular order."""
    return {
        key: [sorted(map(repr, v)) if isinstance(v, list) else v for v in values]
        for key, values in found.items()
    }


def _follows_storage(part: PricedMeasurement) -> bool:
    """Whether the order in which rows are stored decides about integers."""
    here, there = (exact(_stored(o), [part])[0] for o in ("rowid", "rowid DESC"))
    return _plain(here) != _plain(there)


def _alike(sql: str) -> str:
    """The statement with a hash that is the same for all groups."""
    changed = re.sub(ONE, "0", sql)
    assert changed != sql
    return changed


@pytest.mark.parametrize("name", WAYS)
def test_where_all_hashes_are_the_same_the_order_is_total(name: str) -> None:
    assert not _follows_storage(_part(name, _alike))


@pytest.mark.parametrize("name", [name for name in WAYS if name != "bins"])
def test_an_order_by_the_hash_alone_would_be_noticed(name: str) -> None:
    """Bins have places by their group, as ``dense_rank`` gives them: equal hashes keep them all."""

    def untied(sql: str) -> str:
        return re.sub(r"(ORDER BY (?:v0 IS NULL, )?0)(?:, [kv]\d)+", r"\1", _alike(sql))

    assert _follows_storage(_part(name, untied))


def _ranks(sql: str, order: str) -> list[str]:
    return sorted(map(repr, _stored(order).execute(sql).fetchall()))


def test_ranks_of_a_copy_follow_from_the_rows_of_a_unit_alone() -> None:
    policy = opened(SHOP).policy
    text = flat(write_rows(copy_of(policy.tables["orders"], 7)))
    sql = re.sub(r"hash\((.*), 7\) AS h", "0 AS h", text)
    assert f'"{RANK}"' in sql
    assert "0 AS h" in sql
    assert _ranks(sql, "rowid") == _ranks(sql, "rowid DESC")
    untied = re.sub(r"ORDER BY h, .*?\)", "ORDER BY h)", sql, count=1)
    untied = re.sub(r"ORDER BY h\).*?AS INTEGER\)", "ORDER BY h) AS INTEGER)", untied)
    assert _ranks(untied, "rowid") != _ranks(untied, "rowid DESC"), "so it would be noticed"
