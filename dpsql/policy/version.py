"""Two digests of a policy: of its whole meaning, and of the meaning of its stored answers."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import date
from fractions import Fraction

from dpsql.policy import model as m
from dpsql.policy.types import Kind


class Part(enum.Enum):
    """What a field of the policy affects."""

    ANSWERS = "what a measurement is: its rows, bounds, statement, or the claim about its noise"
    TERMS = "who may ask what, and spend how much: noted in the ledger with each query"
    WORK = "places, words for people, limits on work, and what concerns only the endpoint"


_ANSWERS, _TERMS, _WORK = Part.ANSWERS, Part.TERMS, Part.WORK
FIELDS: Mapping[type, Mapping[str, Part]] = {
    m.Policy: {
        "path": _WORK,
        "source": _ANSWERS,
        "data_version": _ANSWERS,
        "units": _ANSWERS,
        "tables": _ANSWERS,
        "dataset": _TERMS,
        "roles": _TERMS,
        "ledger": _WORK,
        "version": _WORK,
        "answers_key": _WORK,
        "ledger_server": _WORK,
        "ledger_keeping": _WORK,
        "time_zone": _TERMS,
        "limits": _WORK,
        "latency": _WORK,
        "front": _WORK,
        "views": _TERMS,  # a measurement is named by the query that the view stands for
        "stale": _WORK,
        "warnings": _WORK,
        "places": _WORK,
    },
    m.DataSource: {"engine": _ANSWERS, "path": _WORK},
    m.Unit: {"name": _ANSWERS, "table": _ANSWERS, "key": _ANSWERS, "group_size": _ANSWERS},
    m.Table: {
        "name": _ANSWERS,
        "columns": _ANSWERS,
        "unit": _ANSWERS,
        "key": _ANSWERS,
        "foreign_keys": _ANSWERS,
        "max_rows_per_unit": _ANSWERS,
        "max_rows_per_group": _ANSWERS,
        "path": _ANSWERS,
        "unit_columns": _ANSWERS,
        "description": _WORK,
        "account": _TERMS,
        "fan_outs": _WORK,  # not in the policy; its effect on a measurement is in that one's key
        "content": _WORK,  # not in the policy; measurements that read the table have it in their key
        "computed": _WORK,  # not in the policy; its effect on bounds is in a measurement's key
    },
    m.Column: {
        "name": _ANSWERS,
        "declared": _ANSWERS,
        "kind": _ANSWERS,
        "nullable": _ANSWERS,
        "identifier": _ANSWERS,
        "range": _ANSWERS,
        "values": _ANSWERS,
        "values_from": _ANSWERS,
        "extremes": _ANSWERS,
        "max_length": _ANSWERS,
        "description": _WORK,
        "held_as_read": _WORK,  # not in the policy; it only omits a cast without effect
    },
    m.ForeignKey: {
        "columns": _ANSWERS,
        "references": _ANSWERS,
        "key": _ANSWERS,
        "same_unit": _ANSWERS,
    },
    m.View: {"name": _TERMS, "sql": _TERMS},
    m.Allowance: {"epsilon": _TERMS, "delta": _TERMS, "composition": _TERMS, "per": _TERMS},
    m.QueryLimit: {"epsilon": _TERMS, "delta": _TERMS},
    m.QueryShare: {"share": _TERMS, "delta": _TERMS},
    m.Role: {
        "name": _TERMS,
        "allowance": _TERMS,
        "session": _TERMS,
        "query": _TERMS,
        "password": _WORK,
        "max_groups_per_unit": _TERMS,  # if it bounds a measurement, it is in that one's key
        "search": _TERMS,  # what it finds is in the key of a measurement
        "mechanisms": _TERMS,
        "tables": _TERMS,
        "access": _WORK,
        "owner": _TERMS,
    },
    m.Access: {
        "may_become": _WORK,
        "connections": _WORK,
        "idle_seconds": _WORK,
        "statement_seconds": _WORK,
        "message_bytes": _WORK,
    },
    m.Latency: {"seconds": _WORK, "fixed": _WORK},
    m.Bounds: {
        "connections": _WORK,
        "startup_seconds": _WORK,
        "send_seconds": _WORK,
        "idle_seconds": _WORK,
        "message_bytes": _WORK,
        "memory": _WORK,
    },
    m.Front: {
        "users": _WORK,
        "preview": _WORK,
        "cleartext": _WORK,
        "bounds": _WORK,
        "database": _WORK,
    },
    m.LedgerServer: {"dsn": _WORK, "schema": _WORK},
    m.LedgerKeeping: {"must_exist": _WORK, "head": _WORK},
    m.Limits: {
        "max_cells": _WORK,
        "memory": _WORK,
        "threads": _WORK,
        "timeout_seconds": _WORK,
        "strict_timing": _WORK,
    },
}
"""Every field of the policy. A class or a field that is not listed here raises ``KeyError``."""


def version_of(policy: m.Policy) -> str:
    """A hex digest that changes exactly when the meaning of the policy does.

    It leaves out passwords, descriptions, limits on work, settings of the endpoint, and places of
    files. The layout of the file and the order of its keys do not matter.
    """
    return digest(policy)


def answers_key(policy: m.Policy) -> str:
    """A hex digest that changes exactly when answers stored under the policy mean something else.

    Claim: under policies with equal digests, measurements with equal canonical text and equal
        bounding have the same exact numbers, and each stored release of them has the noise that its
        ledger entry states.
    Assumes: ``FIELDS`` marks everything that determines statements and sensitivities;
        ``reuse.pieces`` puts what a role adds to a measurement (its limit on groups) into the
        measurement's own key.
    Argument: the fields left out determine who may ask and who pays. A stored release was charged
        when it was made; returning it again is post-processing, and costs no unit anything. Who may
        ask is decided before anything is looked up.
    """
    return _hashed(_canonical(policy, frozenset({Part.ANSWERS})))


def digest(value: object) -> str:
    """A hex digest of parts of a policy, which differs if their meanings differ."""
    return _hashed(_canonical(value, frozenset({Part.ANSWERS, Part.TERMS})))


def _hashed(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _canonical(value: object, parts: frozenset[Part]) -> object:
    """``value`` as JSON, in which values with different meanings differ."""
    match value:
        case Mapping():
            return {f"={name}": _canonical(part, parts) for name, part in value.items()}
        case tuple() | list():
            return [_canonical(part, parts) for part in value]
        case frozenset():
            return sorted(map(str, value))
        case Kind():
            return value.value
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
        case date():
            return value.isoformat()
        case None | bool() | int() | str():
            return value
        case _:
            return {name: _canonical(part, parts) for name, part in _fields(value, parts)}


def _fields(value: object, parts: frozenset[Part]) -> Iterator[tuple[str, object]]:
    """The fields of a part of a policy that affect ``parts``; each field must be listed."""
    listed = FIELDS[type(value)]
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        if listed[field.name] in parts:
            yield field.name, getattr(value, field.name)
