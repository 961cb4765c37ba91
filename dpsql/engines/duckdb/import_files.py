"""Imports files of a person's own (CSV, JSON, Parquet, folders of them) into one DuckDB file.

dpsql reads a DuckDB file only. Views over files would not do: once a database is open it reaches no
other file (``lockdown``), and the declarations of a policy are verified for one state of one file.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dpsql.diagnostics.quote import quote
from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.engines.duckdb.constants import quote_name, text

_WHOLE = "sample_size = -1"
READERS: Mapping[str, tuple[str, str]] = {
    ".csv": ("read_csv", _WHOLE),
    ".tsv": ("read_csv", _WHOLE),
    ".json": ("read_json", _WHOLE),
    ".jsonl": ("read_json", f"{_WHOLE}, format = 'newline_delimited'"),
    ".ndjson": ("read_json", f"{_WHOLE}, format = 'newline_delimited'"),
    ".parquet": ("read_parquet", ""),
    ".pq": ("read_parquet", ""),
}
"""The function that reads a file, and its options, by the file's suffix.

Types are found from all rows, so that no later row fails.
"""
_PACKED = (".gz", ".zst")
"""Suffixes of files that are unpacked while they are read."""
_PARTS = frozenset({"", "part", "parts", "data", "chunk", "file", "export"})
"""Names of parts that say nothing about what is in them; the folder's name does."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """A table that is made of files of one kind."""

    name: str
    suffix: str
    files: tuple[Path, ...]


def suffix_of(path: Path) -> str:
    """The suffix that says how a file is read; "" if dpsql does not read it.

    >>> suffix_of(Path("rides.2024.CSV.gz")), suffix_of(Path("notes.md")), suffix_of(Path("a.pq.gz"))
    ('.csv', '', '')
    """
    suffixes = [s.lower() for s in path.suffixes[-2:]]
    packed = bool(suffixes) and suffixes[-1] in _PACKED
    found = suffixes[-2:-1] if packed else suffixes[-1:]
    known = found[0] if found and found[0] in READERS else ""
    return "" if packed and READERS.get(known, ("",))[0] == "read_parquet" else known


def plan_tables(paths: Iterable[Path]) -> tuple[list[FileTable], list[Path]]:
    """The tables of these files and folders, and the files in folders that are not read.

    A file is a table of its name. In a folder, files of one kind whose names differ in digits only
    (``rides-2024-01.csv``, ``rides-2024-02.csv``) are one table, and so are all files below a folder
    inside it.
    """
    found: list[FileTable] = []
    unread: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(FileTable(_stem(path), suffix_of(path), (path,)))
            continue
        within = sorted(p for p in path.iterdir() if not p.name.startswith("."))
        files = [p for p in within if p.is_file()]
        found += _grouped(path, [p for p in files if suffix_of(p)])
        unread += [p for p in files if not suffix_of(p)]
        for folder in (p for p in within if p.is_dir()):
            parts = sorted(p for p in folder.rglob("*") if p.is_file() and suffix_of(p))
            found += [
                FileTable(folder.name, suffix, tuple(p for p in parts if suffix_of(p) == suffix))
                for suffix in sorted({suffix_of(p) for p in parts})
            ]
    return found, unread


def _grouped(folder: Path, files: Sequence[Path]) -> Iterator[FileTable]:
    """The tables of the files that are in a folder itself."""
    groups: dict[tuple[str, str], list[Path]] = {}
    for path in files:
        groups.setdefault((re.sub(r"\d+", "0", _stem(path)), suffix_of(path)), []).append(path)
    for (_, suffix), parts in groups.items():
        if len(parts) == 1:
            yield FileTable(_stem(parts[0]), suffix, tuple(parts))
            continue
        words = re.sub(r"\d+", "", _stem(parts[0])).strip("-_. ")
        words = re.sub(r"[-_. ]{2,}", "_", words)
        name = folder.absolute().name if words.lower() in _PARTS else words
        yield FileTable(name, suffix, tuple(parts))


def _stem(path: Path) -> str:
    """The name of a file without the suffixes that say how it is read."""
    name = path.stem if path.suffix.lower() in _PACKED else path.name
    return Path(name).stem


def import_files(tables: Sequence[FileTable], database: Path) -> None:
    """Make a DuckDB file with these tables, in place of an older one; all of them or none.

    A time with a zone becomes an instant, and a time without one stays a local time.
    """
    folder = Path(tempfile.mkdtemp(prefix=f".{database.name}.", dir=database.parent))
    new = folder / "new"
    try:
        with duckdb.connect(str(new)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for table in tables:
                connection.execute(f"CREATE TABLE {quote_name(table.name)} AS FROM {_call(table)}")
        new.replace(database)
    except duckdb.Error as error:
        kind = str(error).partition("\n")[0]  # further lines quote rows
        raise SourceMismatch(f"the files could not be read: {quote(kind, 200)}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _call(table: FileTable) -> str:
    reader, options = READERS[table.suffix]
    listed = ", ".join(text(str(path)) for path in table.files)
    said = [f"[{listed}]", "union_by_name = true", *([options] if options else [])]
    return f"{reader}({', '.join(said)})"
