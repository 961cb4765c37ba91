"""How DuckDB writes calls of aggregates and window functions."""

from __future__ import annotations

from collections.abc import Mapping

_CALL = "{name}({distinct}{args}){where}"
"""A function that DuckDB has under its name: its DISTINCT, arguments and FILTER."""
OTHER_FORMS: Mapping[str, str] = {
    "geometric_mean": "exp(avg({distinct}ln({args})){where})",
}
"""Aggregates that are written otherwise, by name."""


def call_form(function: str) -> str:
    """The form of a call of an aggregate or window function."""
    return OTHER_FORMS.get(function, _CALL)
