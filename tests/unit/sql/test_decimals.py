"""What is computed of decimals is what decimals of SQL give, digit by digit."""

from __future__ import annotations

import random  # noqa: TID251 (which statements are asked)

import pytest
from support.corpus import unlimited
from support.datasets import in_memory
from support.services import service

from dpsql.service import plain

_NUMBERS = ("price", "price", "size", "0.07", "1.1", "3", "0.5")
_KINDS = ("{} + {}", "{} - {}", "COALESCE({}, {})", "GREATEST({}, {})", "LEAST({}, {})", "{} * {}")

_FORMS = ("{}", "FLOOR({})", "CEIL({})", "CAST({} AS bigint)", "ROUND({}, 1)")


def _expression(source: random.Random, depth: int) -> str:
    if depth == 0:
        return source.choice(_NUMBERS)
    parts = [_expression(source, depth - 1) for _ in range(2)]
    kinds = _KINDS if depth == 1 else _KINDS[:-1]  # products of products have too many digits
    return f"({source.choice(kinds).format(*parts)})"


@pytest.mark.parametrize("seed", range(12))
def test_computed_decimals_are_those_of_plain_sql(seed: int) -> None:
    """Compared as values, after rounding up and down, and as whole numbers."""
    source = random.Random(seed)
    values = [_expression(source, 1 + i % 2) for i in range(8)]
    shown = [source.choice(_FORMS).format(value) + f" AS c{i}" for i, value in enumerate(values)]
    sql = f"SELECT {', '.join(shown)} FROM articles ORDER BY article"
    found = plain.rows(service("types", "types", unlimited).session().execute(sql))
    wanted = in_memory("types").execute(sql).fetchall()
    pairs = [
        (a, b)
        for one, other in zip(found, wanted, strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    assert [(float(a), float(b)) for a, b in pairs if float(a) != float(b)] == []
