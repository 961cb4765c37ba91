"""Refusals as text, with carets under the place."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsql.diagnostics.refusal import Refusal, Refused


def refusal_text(refused: Refused) -> str:
    """All refusals of a statement, as text for people."""
    return "\n\n".join(_one(refusal, refused.text) for refusal in refused.refusals)


def _one(refusal: Refusal, text: str) -> str:
    lines = [f"{refusal.code}: {refusal.headline}"]
    if refusal.span is not None and text:
        lines += _caret(refusal, text)
    lines += _labelled("why:", refusal.why)
    if refusal.instead:
        lines += _labelled("instead:", refusal.instead)
    return "\n".join(lines)


def _caret(refusal: Refusal, text: str) -> list[str]:
    span = refusal.span
    assert span is not None
    line, column = span.line_and_column(text)
    whole = "".join(c if c.isprintable() else " " for c in text.split("\n")[line - 1])
    width = max(1, min(span.end - span.start, len(whole) - column + 1, _WIDEST))
    cut = max(0, column - 1 + min(width, _WIDEST) - _WIDEST)
    shown = ("..." + whole[cut + 3 :] if cut else whole)[: _WIDEST + 20]
    gutter = " " * len(str(line))
    return [
        f"  at line {line}, column {column}",
        f"  {gutter} |",
        f"  {line} | {shown}".rstrip(),
        f"  {gutter} | {' ' * (column - 1 - cut)}{'^' * width}",
    ]


_WIDEST = 120
"""The widest part of a line that is shown; of longer lines, a part around the place."""


def _wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(paragraph, 86, break_long_words=False, break_on_hyphens=False) or [""]


def is_sql(text: str) -> bool:
    """Whether a suggestion is a statement to paste: its line breaks must not change."""
    return text.lstrip("( \n").upper().startswith(("SELECT ", "SELECT\n", "WITH ", "SET "))


def _labelled(label: str, text: str) -> list[str]:
    """The label in its column, the text wrapped beside it (its own line breaks are kept)."""
    rows: list[str] = []
    for paragraph in text.split("\n"):
        rows += [paragraph] if is_sql(text) else _wrapped(paragraph)
    head, *rest = rows or [""]
    return [f"  {label:<8} {head}", *(f"  {'':<8} {row}" for row in rest)]
