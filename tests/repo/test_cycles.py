"""Modules that import one another, for types too: few, and never more than two."""

from __future__ import annotations

from benchmarks.structure import ROOT, cycles, imports, modules

MOST = 6
"""The number becomes smaller, never larger."""


def test_cycles_of_imports_are_few_and_small() -> None:
    found = cycles(imports(modules(ROOT)))
    assert len(found) <= MOST, found
    assert [group for group in found if len(group) > 2] == []


def test_a_cycle_is_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert cycles(edges) == [["b", "c"]]
