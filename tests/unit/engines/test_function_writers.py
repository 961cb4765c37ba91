"""The writer and the catalog name the same functions."""

from __future__ import annotations

from dpsql.catalog.aggregates import AGGREGATES
from dpsql.catalog.functions import FUNCTIONS
from dpsql.engines.duckdb.aggregates import OTHER_FORMS
from dpsql.engines.duckdb.functions import WRITERS


def test_each_function_is_written_and_no_other() -> None:
    assert set(WRITERS) == set(FUNCTIONS)


def test_families_are_those_of_the_catalog() -> None:
    for name, function in FUNCTIONS.items():
        family = function.shape.__module__.rpartition(".")[2]
        module = f"dpsql.engines.duckdb.functions.{family}"
        assert name in __import__(module, fromlist=["WRITERS"]).WRITERS, name


def test_other_forms_are_of_aggregates_and_hold_the_whole_call() -> None:
    assert set(OTHER_FORMS) <= set(AGGREGATES)
    for form in OTHER_FORMS.values():
        assert [form.count(part) for part in ("{distinct}", "{args}", "{where}")] == [1, 1, 1]
