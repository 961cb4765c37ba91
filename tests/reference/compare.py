"""Two records of a query: what differs, said so that it can be read.

Everything must be the same, but for numbers of an answer that are not whole: in which order an engine
gives its groups decides which draw of the noise each gets, and at epsilon 1e9 that is far behind the
point (``answers.close``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.answers import difference

Json = Any
MOST = 12
"""Differences of a query that are listed."""


def differences(recorded: Json, found: Json) -> list[str]:
    """A line for each place in which two records of a query differ."""
    name = recorded["query"]
    return [f"{name}: {said}" for said in _walk("", recorded, found)]


def dump(recorded: Json, found: Json, folder: Path) -> str:
    """What differs, with both records in files to compare; empty where nothing does."""
    lines = differences(recorded, found)
    if not lines:
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    for word, record in (("recorded", recorded), ("found", found)):
        place = folder / f"{recorded['query']}.{word}.json"
        place.write_text(json.dumps(record, indent=1) + "\n")
    more = f"\n  and {len(lines) - MOST} more" if len(lines) > MOST else ""
    files = folder / f"{recorded['query']}.recorded.json and .found.json"
    return "\n".join(lines[:MOST]) + f"{more}\n  both records: {files}"


def _walk(path: str, recorded: Json, found: Json) -> Iterator[str]:
    if recorded == found:
        return
    if path.endswith("answer"):
        yield from _answers(path, recorded, found)
    elif isinstance(recorded, dict) and isinstance(found, dict):
        for key in [*recorded, *(k for k in found if k not in recorded)]:
            below = f"{path} > {key}" if path else str(key)
            yield from _walk(below, recorded.get(key, "nothing"), found.get(key, "nothing"))
    elif _is_table(recorded) and _is_table(found):
        yield from _tables(path, recorded, found)
    elif _is_list(recorded, found) and len(recorded) == len(found):
        for i, pair in enumerate(zip(recorded, found, strict=True)):
            yield from _walk(f"{path}[{i}]", *pair)
    else:
        yield f"{path}: recorded {json.dumps(recorded)}, now {json.dumps(found)}"


def _is_list(*values: Json) -> bool:
    return all(isinstance(value, list) for value in values)


def _is_table(value: Json) -> bool:
    """Whether these are rows of a key and its integers."""
    return isinstance(value, list) and all(
        isinstance(row, list) and len(row) == 2 and _is_list(*row) for row in value
    )


def _tables(path: str, recorded: Json, found: Json) -> Iterator[str]:
    sides = [{json.dumps(key): values for key, values in rows} for rows in (recorded, found)]
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        was, now = (side.get(key, "no such group") for side in sides)
        if was != now:
            yield f"{path}, group {key}: recorded {json.dumps(was)}, now {json.dumps(now)}"


def _answers(path: str, recorded: Json, found: Json) -> Iterator[str]:
    rows = [[tuple(map(_whole, row)) for row in side] for side in (found, recorded)]
    extra, missing = difference(*rows)
    yield from (
        f"{path}: recorded the row {json.dumps(row)}, which is not there" for row in missing
    )
    yield from (f"{path}: now the row {json.dumps(row)}, which is not recorded" for row in extra)


def _whole(value: Json) -> object:
    return tuple(map(_whole, value)) if isinstance(value, list) else value
