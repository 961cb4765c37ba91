"""A new draft and the owner's text: nobody's lines are lost, and the owner's come first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dpsql.policy.merge import Merged, merge

CASES = {
    "nothing changed": ("abc", "abc", "abc", "abc", ""),
    "only the draft": ("abc", "abc", "axc", "axc", ""),
    "only the owner": ("abc", "aXc", "abc", "aXc", ""),
    "the same change": ("abc", "axc", "axc", "axc", ""),
    "apart": ("abc", "Xbc", "aby", "Xby", ""),
    "added after an edit": ("abc", "abX", "abcy", "abXy", ""),
    "added before an edit": ("abc", "Xbc", "yabc", "yXbc", ""),
    "the owner added after a change": ("abc", "abcX", "aby", "abyX", ""),
    "a line that the owner took out": ("abc", "ac", "abc", "ac", ""),
    "a line that the draft lost": ("abc", "abc", "ac", "ac", ""),
    "both changed": ("abc", "aXc", "ayc", "aXc", "y"),
    "taken out and changed": ("abc", "ac", "ayc", "ac", "y"),
    "at the end": ("ab", "abX", "aby", "abXy", ""),
    "into nothing": ("", "X", "y", "Xy", ""),
}


def test_what_becomes_of_each_change() -> None:
    for name, (base, mine, theirs, merged, overruled) in CASES.items():
        found = merge([*base], [*mine], [*theirs])
        assert found == Merged(tuple(merged), tuple(overruled)), name


texts = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(texts, texts)
def test_who_changed_alone_is_taken_whole(base: list[str], other: list[str]) -> None:
    assert merge(base, other, base).lines == tuple(other)
    assert merge(base, base, other).lines == tuple(other)


@given(texts, texts, texts)
def test_no_line_of_the_owner_is_lost_but_those_that_the_draft_took_out(
    base: list[str], mine: list[str], theirs: list[str]
) -> None:
    found = merge(base, mine, theirs).lines
    for line in {*mine} - {*base}:
        assert found.count(line) >= mine.count(line)
