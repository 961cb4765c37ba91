"""Whoever claims something says under which assumptions and why: in every package, as in ``privacy``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.structure import ROOT, modules

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PARTS = ("Assumes:", "Argument:")
DUE: frozenset[str] = frozenset(
    (
        "bound/bins.py",
        "bound/bounding.py:narrowed",
        "bound/bounding.py:touched",
        "bound/buckets.py",
        "bound/copies.py:copy_of",
        "bound/distinct_values.py",
        "bound/grid.py",
        "bound/group_caps.py",
        "bound/norm_clip.py",
        "bound/weights_and_groups.py",
        "declarations/left_out.py",
        "declarations/requirements.py",
        "engines/catalog/limits.py:limit_growth",
        "engines/duckdb/allowlist/__init__.py",
        "engines/duckdb/copies.py:read",
        "engines/duckdb/engine.py:Constants",
        "engines/duckdb/engine.py:_private",
        "engines/duckdb/guard/__init__.py",
        "engines/duckdb/guard/__init__.py:admit",
        "engines/duckdb/guard/casts.py",
        "engines/duckdb/guard/identifiers.py",
        "engines/duckdb/lockdown.py",
        "engines/duckdb/terms.py:_tagged",
        "engines/facts_file.py",
        "engines/incident.py:failed",
        "engines/public_groups.py",
        "pipeline.py:_note",
        "pipeline.py:admit",
        "pipeline.py:admit_sources",
        "plan/build.py:_below",
        "plan/cells.py",
        "plan/centred.py",
        "plan/contents.py",
        "plan/covered.py",
        "plan/declared.py",
        "plan/empty_groups.py",
        "plan/group_means.py:over_rows",
        "plan/interval_functions.py",
        "plan/lift.py",
        "plan/listings.py",
        "plan/listings.py:_attach",
        "plan/steady.py",
        "price/clauses.py",
        "price/halves.py",
        "price/price.py:_cost",
        "price/price.py:_selection",
        "price/priced.py:alone",
        "price/search.py",
        "release/dry_run.py:dry_run",
        "release/finish.py:finish",
        "release/interval_calls.py",
        "release/lookups.py",
        "release/noise.py:_noised",
        "release/noise.py:released",
        "release/nonnegative.py",
        "release/postprocess.py",
        "reuse/cached.py",
        "reuse/canonical.py",
        "reuse/consistent.py:hierarchies",
        "reuse/match.py",
        "reuse/measured.py",
        "reuse/measured.py:_cost",
        "reuse/measured.py:_placed",
        "reuse/merge.py:merge",
        "reuse/pieces.py:from_finer",
        "reuse/refined.py",
        "reuse/refined.py:pair_halves",
        "reuse/refined.py:refined_together",
        "reuse/single_flight.py",
        "reuse/summed.py",
        "rewrite/late_unit_join.py",
    )
)  # fmt: skip
"""Claims that lack one of them still, by module and name. None is added."""


def _claims() -> Iterator[tuple[str, str]]:
    for path, module in modules(ROOT).items():
        for node in ast.walk(module):
            text = ast.get_docstring(node) if isinstance(node, _DOCUMENTED) else None
            if text is not None and "Claim:" in text:
                yield f"{path}:{getattr(node, 'name', '')}".rstrip(":"), text


CLAIMS = dict(_claims())


def test_the_claims_are_found() -> None:
    assert len(CLAIMS) > 150
    assert "sql/bind/privacy.py:join_privacy" in CLAIMS


def test_each_claim_is_complete() -> None:
    lacking = {name for name, text in CLAIMS.items() if any(part not in text for part in PARTS)}
    assert lacking <= DUE
