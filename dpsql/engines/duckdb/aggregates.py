"""The forms of calls of aggregates and window functions in DuckDB."""

from __future__ import annotations

from collections.abc import Mapping

_CALL = "{name}({distinct}{args}){where}"
"""A call of a function that DuckDB has under the same name, with DISTINCT, arguments and FILTER."""
OTHER_FORMS: Mapping[str, str] = {
    "geometric_mean": "exp(avg({distinct}ln({args})){where})",
}
"""Aggregates that are written in another form, by name."""


def call_form(function: str) -> str:
    """The form of a call of an aggregate or window function."""
    return OTHER_FORMS.get(function, _CALL)
