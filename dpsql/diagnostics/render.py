"""Refusals as text, with a caret under the place."""

from __future__ import annotations

import textwrap

from dpsql.diagnostics.refusal import Refusal, Refused


def refusal_text(refused: Refused) -> str:
    """All refusals of a statement, as a person reads them in a terminal."""
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
    shown = text.splitlines()[line - 1] if text.splitlines() else ""
    width = max(1, min(span.end - span.start, len(shown) - column + 1))
    gutter = " " * len(str(line))
    return [
        f"  at line {line}, column {column}",
        f"  {gutter} |",
        f"  {line} | {shown}",
        f"  {gutter} | {' ' * (column - 1)}{'^' * width}",
    ]


def _labelled(label: str, text: str) -> list[str]:
    """The label in its column, the text wrapped beside it (its own line breaks are kept)."""
    rows: list[str] = []
    for paragraph in text.splitlines():
        rows += textwrap.wrap(paragraph, 86, break_long_words=False) or [""]
    head, *rest = rows or [""]
    return [f"  {label:<8} {head}", *(f"  {'':<8} {row}" for row in rest)]
