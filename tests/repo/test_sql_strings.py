"""Statements are trees: what plans, bounds, prices and releases holds no text in SQL.

The ledger has statements of its own store, the self-test and the command line ask as a client does, and the
SQL front end, checks and refusals quote the analyst's language. They are not counted.
"""

from __future__ import annotations

from benchmarks.structure import ROOT, modules, sql_strings

FOLDERS = (
    "bound/", "catalog/", "declarations/", "ir/", "plan/", "price/", "release/", "reuse/", "rewrite/",
    "pipeline.py", "selftest/copies.py", "selftest/probes.py", "service/service.py",
)  # fmt: skip
DUE = {
    "catalog/functions/comparison.py": 5, "catalog/aggregates/quantile.py": 4, "catalog/functions/time.py": 2,
    "ir/privacy_clause.py": 2, "plan/missing_groups.py": 2, "plan/interval_functions.py": 1, "plan/lift.py": 1,
    "price/price.py": 1,
}  # fmt: skip
"""Strings in the analyst's language, by module: examples of functions, and what refusals suggest.

No number becomes larger.
"""


def test_no_text_in_sql_is_added_outside_the_engines() -> None:
    found = {path: n for path, n in sql_strings(modules(ROOT)).items() if path.startswith(FOLDERS)}
    assert {path: n for path, n in found.items() if n > DUE.get(path, 0)} == {}
