"""Writes a reply in plain Python values and as JSON, with the same words for every face."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, assert_never

import pyarrow as pa

from dpsql.privacy.cost import Cost
from dpsql.service.reply import Remaining, Reply


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with numbers appended so that no two are equal.

    >>> distinct(["n", "n", "n_2"])
    ('n', 'n_3', 'n_2')
    """
    taken, found = set(names), list[str]()
    for name in names:
        chosen, count = name, 1
        while chosen in found or (count > 1 and chosen in taken):
            count += 1
            chosen = f"{name}_{count}"
        found.append(chosen)
    return tuple(found)


def with_distinct_names(reply: Reply) -> pa.Table:
    """The table of the reply, with column names that are made distinct."""
    return reply.table.rename_columns(list(distinct([c.name for c in reply.columns])))


def python_rows(reply: Reply) -> list[tuple[Any, ...]]:
    """The rows as Python values."""
    return list(zip(*(column.to_pylist() for column in reply.table.columns), strict=True))


def intervals(reply: Reply) -> dict[str, list[tuple[float | None, float | None]]]:
    """The 95 % interval of every row's noise, for each noised column."""
    names = distinct([c.name for c in reply.columns])
    return {
        names[position]: list(zip(low.to_pylist(), high.to_pylist(), strict=True))
        for position, (low, high) in sorted(reply.intervals.items())
    }


def cost(paid: Cost) -> dict[str, float]:
    """The cost of an answer as (epsilon, delta), and in rho."""
    return {"epsilon": float(paid.epsilon), "delta": float(paid.delta), "rho": float(paid.rho)}


def describe_remaining(accounts: Iterable[Remaining]) -> dict[str, Any]:
    """Each account's total and remaining budget, by kind of account; accounts of tables by name.

    If a service account has taken another role, its own accounts are charged as well. They are
    listed under ``service_account``.
    """
    told: dict[str, Any] = {"tables": {}}
    for r in accounts:
        place = told.setdefault("service_account", {}) if r.service else told
        match r.holder:
            case "table":
                told["tables"][r.table] = _left(r)
            case "dataset" | "role" | "session":
                place[r.holder] = _left(r)
            case _:
                assert_never(r.holder)
    return told


def _left(r: Remaining) -> dict[str, Any]:
    return {
        "account": r.account,
        "epsilon": float(r.left_epsilon),
        "delta": float(r.left_delta),
        "rho": optional(r.left_rho),
        "total": {"epsilon": float(r.epsilon), "delta": float(r.delta), "rho": optional(r.rho)},
        "renews": None if r.renews is None else r.renews.isoformat(),
    }


def optional(number: Fraction | None) -> float | None:
    """The number as a float; None if there is none."""
    return None if number is None else float(number)


def to_json(reply: Reply) -> str:
    """The reply as one JSON object.

    ``notes`` are there only if there are any. Dates are in ISO form. NaN and infinities are null.
    """
    return "".join(json_pieces(reply))


def json_pieces(reply: Reply, at_once: int = 10_000) -> Iterator[str]:
    """The text of ``to_json`` in pieces of at most ``at_once`` rows."""
    columns = [{"name": c.name, "type": c.type} for c in reply.columns]
    yield f'{{"columns": {_json(columns)}, "rows": ['
    yield from _listed_json(reply.table.columns, reply.table.num_rows, at_once)
    yield '], "intervals": {'
    names, comma = distinct([c.name for c in reply.columns]), ""
    for position, ends in sorted(reply.intervals.items()):
        yield f"{comma}{_json(names[position])}: ["
        yield from _listed_json(ends, len(ends[0]), at_once)
        yield "]"
        comma = ", "
    rest: dict[str, Any] = {
        "cost": cost(reply.cost),
        "remaining": describe_remaining(reply.remaining),
        "recalled": reply.recalled,
    }
    if reply.notes:
        rest["notes"] = list(reply.notes)
    yield f"}}, {_json(rest)[1:]}"


def _listed_json(
    columns: Sequence[pa.Array | pa.ChunkedArray], count: int, at_once: int
) -> Iterator[str]:
    """The rows as JSON lists with commas between them, ``at_once`` rows at a time."""
    for start in range(0, count, at_once):
        values = [column.slice(start, at_once).to_pylist() for column in columns]
        found = zip(*values, strict=True) if values else [()] * min(at_once, count - start)
        text = _json([[_value(value) for value in row] for row in found])
        yield (", " if start else "") + text[1:-1]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_value(v) for v in value]
    if isinstance(value, Decimal):  # it has so few digits that its double is written the same
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


def write_list(value: Any) -> str:
    """A list in PostgreSQL's text form, for outputs that have no lists.

    >>> write_list([1, None, 0.5])
    '{1,NULL,0.5}'
    """
    words = ("NULL" if v is None else _word(v) for v in value)
    return "{" + ",".join(words) + "}"


def _word(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text and text.upper() != "NULL" and not set(text) & set('{}",\\ \t\n'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
