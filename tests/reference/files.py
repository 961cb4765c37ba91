"""The recorded reference: a file for each of the corpus, with a line of JSON for each query."""

from __future__ import annotations

import functools
import gzip
import io
import json
from collections.abc import Iterable
from typing import Any

from support.corpus import CORPUS, Entry
from support.datasets import FIXTURES

FOLDER = FIXTURES / "reference"


def stem(entry: Entry) -> str:
    """The file of the corpus that an entry is in."""
    return entry.name.rpartition("-")[0]


STEMS = tuple(dict.fromkeys(map(stem, CORPUS)))


@functools.cache
def read(name: str) -> dict[str, Any]:
    """The records of a file, by the text of the query: its number may change."""
    path = FOLDER / f"{name}.jsonl.gz"
    text = gzip.decompress(path.read_bytes()).decode() if path.exists() else ""
    return {record["sql"]: record for record in map(json.loads, text.splitlines())}


def write(name: str, records: Iterable[Any]) -> None:
    """Write a file. The same records are the same bytes."""
    FOLDER.mkdir(exist_ok=True)
    lines = (json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.write("".join(lines).encode())
    (FOLDER / f"{name}.jsonl.gz").write_bytes(packed.getvalue())
