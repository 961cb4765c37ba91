"""At an epsilon of ten million an answer is what plain DuckDB says, unless a note says what was cut.

The same text runs on DuckDB over the same rows, in which numbers beyond their ranges are the nearer
ends, NaN the upper one. Rows are compared by their labels, the columns that are called g and h;
numbers within what fixed-point sums round off. An answer may lack groups that few units are in, and
may have public groups without rows.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import yaml

from tests.adversary.model import Case, Finding, Step, Transcript, finding
from tests.adversary.place import DATA, write

NAME = "oracle"
"""Begins the names of worlds that this judge looks at."""
FIRST = Step("set", "SET dpsql.dialect = 'duckdb'")
"""The one setting under which answers are compared."""
CLOSE, ADDED = 1e-4, 0.02
"""How far numbers may be apart, as a part of them, and by noise."""
LABELS = ("g", "h")


class Oracle:
    """Asks DuckDB what the answer is."""

    name = NAME

    def judge(self, case: Case) -> Finding | None:
        """The first answer that is another one."""
        world = case.left.world
        if not world.name.startswith(NAME) or case.left.opened:
            return None
        with tempfile.TemporaryDirectory(prefix="adversary-") as place:
            write(world, Path(place))
            with duckdb.connect(str(Path(place) / DATA)) as engine:
                engine.execute("SET TimeZone = 'UTC'")
                _cut(engine, yaml.safe_load(world.policy))
                for number, transcript in enumerate(case.left.transcripts):
                    if transcript.step.act == "set" and transcript.step != FIRST:
                        break
                    problem = _compare(engine, transcript)
                    if problem:
                        return finding(self.name, case, number, "DuckDB says otherwise", problem)
        return None


def _cut(engine: duckdb.DuckDBPyConnection, policy: Mapping[str, Any]) -> None:
    """Put the nearer end in the place of each number beyond its range."""
    for table, declared in policy["tables"].items():
        for name, column in declared.get("columns", {}).items():
            low, high = column.get("range", (None, None))
            if isinstance(low, int | float) and isinstance(high, int | float):
                value = f"TRY_CAST({name} AS {column['type']})"
                engine.execute(
                    f"UPDATE {table} SET {name} = CASE WHEN {value} < {low} THEN {low}"
                    f" WHEN {value} > {high} THEN {high} ELSE {value} END"
                    f" WHERE {name} NOT BETWEEN {low} AND {high}"
                )


def _compare(engine: duckdb.DuckDBPyConnection, transcript: Transcript) -> list[str]:
    step = transcript.step
    if step.act != "ask" or transcript.error is not None:
        return []
    try:
        asked = engine.sql(step.text, params=list(step.parameters) or None)
        found = asked.to_arrow_table()
    except duckdb.Error:
        return []  # what DuckDB cannot do, or what fails on a row, is NULL in dpsql
    names = found.column_names
    expected = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    if len(transcript.columns) != len(names):
        return [f"columns {[c.name for c in transcript.columns]} and {names}"]
    at = [i for i, name in enumerate(names) if name in LABELS]
    answered, wanted = _by(transcript.rows, at), _by(expected, at)
    notes = " ".join(transcript.notes)
    if "not shown" in notes and not at:
        return []  # computed of some groups only, and says so
    if len(answered) != len(transcript.rows):
        return ["a label is there twice"]
    for key, row in answered.items():
        if key not in wanted:
            counted = any(isinstance(v, int) and v for i, v in enumerate(row) if i not in at)
            if "all public groups" not in notes or counted:
                return [f"only dpsql has {row}"]
        elif not all(map(close, row, wanted[key])):
            return [f"dpsql says {row}", f"DuckDB says {wanted[key]}"]
    return []


def _by(rows: Sequence[Sequence[Any]], at: Sequence[int]) -> Mapping[Any, Sequence[Any]]:
    return {tuple(repr(_plain(row[i])) for i in at): row for row in rows}


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal | int | float) and not isinstance(value, bool):
        return round(float(value), 6) + 0.0
    if isinstance(value, datetime):
        return datetime.combine(value.date(), value.time())
    return value


def close(one: Any, other: Any) -> bool:
    """Whether two values are the same but for rounding; NULL of no rows is any number."""
    if other is None or one is None:
        return True
    one, other = _plain(one), _plain(other)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=ADDED)
    return bool(one == other)
