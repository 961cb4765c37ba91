"""Strict timing holds for the aggregates whose record says so, and for no other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_every_place import PLACES, is_answered

from dpsql.catalog.aggregates import AGGREGATES


@pytest.mark.parametrize("place", PLACES)
def test_what_no_record_says_of_strict_timing_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLACES[place].format(call="SUM(x)")
    assert is_answered(text, strict=True)
    monkeypatch.setitem(AGGREGATES, "sum", replace(AGGREGATES["sum"], strict_timing=False))
    assert is_answered(text)
    assert not is_answered(text, strict=True)
