"""What a query becomes: measurements, bounding, noise, cost and generated SQL, in golden files."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from datadriven import Case, check
from support.shop import ANALYST, PURE, priced

from dpsql.engines.duckdb.statements import list_statements
from dpsql.price.request import Request
from dpsql.price.show import show

FILES = sorted((Path(__file__).parents[2] / "fixtures" / "rewrites").glob("*.test"))
REQUESTS: dict[str, Request] = {
    "analyst": ANALYST,
    "pure": PURE,
    "gaussian": replace(ANALYST, delta=Fraction(1, 10**6), mechanism="gaussian"),
    "wide": replace(ANALYST, delta=Fraction(1, 10**6), groups=50),
}


def printed(case: Case) -> str:
    """The plan, if what the directive claims of it is true."""
    options = case.options
    plan = priced(
        case.text,
        policy=f"policies/{options.get('policy', 'shop')}.yaml",
        request=REQUESTS[options.get("request", "analyst")],
    )
    for part in plan.parts:
        bounded = options.get("bounded", part.bounding.name).replace("_", " ")
        assert part.bounding.name == bounded, f"{case}: bounded by {part.bounding.name}"
        groups = "public" if part.selection is None else "thresholded"
        assert options.get("groups", groups) == groups, f"{case}: groups are {groups}"
    return show(plan, list_statements)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plans_are_as_written(path: Path, rewrite: bool) -> None:
    check(path, printed, rewrite=rewrite)
