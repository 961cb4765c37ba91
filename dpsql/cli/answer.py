"""An answer as a table for people: values, intervals and cost."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

import pyarrow as pa
from rich.table import Table
from rich.text import Text

from dpsql.cli import terminal
from dpsql.cli.numbers import decimals, group_thousands, interval, symmetric
from dpsql.policy.types import Kind
from dpsql.service import plain
from dpsql.service.reply import Reply


def answer_table(reply: Reply) -> Table:
    """The rows, each noised value with its interval beside it."""
    headers: list[str] = []
    right: list[int] = []
    cells: list[list[Text]] = []
    for position, column in enumerate(reply.columns):
        values = _values(reply.table.column(position))
        if column.kind.numeric:
            right.append(len(headers))
        headers.append(column.name)
        if position not in reply.intervals:
            cells.append(_unnoised(values, column.kind))
            continue
        low, high = (end.to_pylist() for end in reply.intervals[position])
        ends = list(zip(low, high, strict=True))
        places = 0 if column.kind is Kind.INTEGER else decimals(values, ends)
        centred = symmetric(values, ends)
        cells.append([_number(v, places) for v in values])
        headers.append("")
        cells.append(
            [
                terminal.mute_text(interval(v, e, places, centred=centred))
                for v, e in zip(values, ends, strict=True)
            ]
        )
    made = terminal.empty_table(headers, right)
    for row in zip(*cells, strict=True):
        made.add_row(*row)
    return made


def footer(reply: Reply) -> str:
    """One line: the number of rows, the cost, what remains, and whether the answer was stored."""
    count = reply.table.num_rows
    said = [f"{count:,} row{'' if count == 1 else 's'}"]
    if reply.recalled:
        said.append("a stored answer, free")
    elif reply.cost.epsilon:
        said.append(f"cost {terminal.paid(reply.cost, reply.remaining)}")
    else:
        said.append("free: no private table was read")
    touched = [r for r in reply.remaining if r.holder != "table" or r.table in reply.tables]
    said.append(terminal.tightest(touched))
    if reply.intervals:
        alone = "intervals are of the noise alone"
        said.append(alone if reply.noise_alone else "intervals hold 19 times in 20")
    return " · ".join(said)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; decimals as doubles, as they are shown."""
    decimal = pa.types.is_decimal(column.type)
    found: list[Any] = (column.cast(pa.float64()) if decimal else column).to_pylist()
    return found


def _number(value: float | None, places: int) -> Text:
    return terminal.mute_text("null") if value is None else Text(group_thousands(value, places))


def _unnoised(values: list[Any], kind: Kind) -> list[Text]:
    """Keys and public values. Whole numbers get no separators, since they may be years."""
    if kind is Kind.DOUBLE:
        places = decimals(values, None)
        return [_number(v, places) for v in values]
    days = all(v.time() == time() for v in values if isinstance(v, datetime))
    return [_key(v, days=days) for v in values]


def _key(value: Any, *, days: bool) -> Text:
    if value is None:
        return terminal.mute_text("null")
    if isinstance(value, list):
        short = [float(f"{v:.6g}") if isinstance(v, float) else v for v in value]
        return terminal.plain(plain.write_list(short))
    if isinstance(value, bool):
        return Text(str(value).lower())
    if isinstance(value, datetime) and days:
        return Text(f"{value:%Y-%m-%d}")
    return terminal.plain(str(value))
