"""One short word for everything a policy means."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from pathlib import Path

from dpsql.policy.model import Policy
from dpsql.policy.types import Kind

_NOT_MEANING = frozenset(
    {
        "password",
        "description",
        "limits",
        "latency",
        "warnings",
        "version",
        "places",
        "ledger_server",
        "access",
        "front",
    }
)


def version_of(policy: Policy) -> str:
    """A hex digest that changes exactly when the meaning of the policy does.

    Left out are passwords, descriptions, limits on work, what concerns only the endpoint, and
    places of files. Neither the layout
    of the file nor the order of its keys matters.
    """
    return digest(policy)


def digest(value: object) -> str:
    """A hex digest of parts of a policy, that differs where their meanings do."""
    text = json.dumps(_canonical(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _canonical(value: object) -> object:
    """``value`` as JSON in which different meanings differ: each scalar carries its type."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            name: _canonical(part)
            for name, part in fields.items()
            if name not in _NOT_MEANING and not isinstance(part, Path)
        }
    match value:
        case Mapping():
            return {f"={name}": _canonical(part) for name, part in value.items()}
        case tuple() | list():
            return [_canonical(part) for part in value]
        case frozenset():
            return sorted(map(str, value))
        case Kind():
            return value.value
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
        case date():
            return value.isoformat()
        case _:
            assert value is None or isinstance(value, bool | int | str)
            return value
