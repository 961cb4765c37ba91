"""``dpsql init``: drafts a policy for existing data, with comments where the owner must decide."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from dpsql.cli.exits import ANSWERED, Usage
from dpsql.diagnostics.quote import quote
from dpsql.engines.duckdb import inspect
from dpsql.policy.draft import Suggestions, draft
from dpsql.policy.guess import guess_unit, unit_columns
from dpsql.policy.model import DataSource
from dpsql.policy.source import SourceDescription, policy_type


def run(chosen: argparse.Namespace) -> int:
    """Describe the data, write the draft, say what to do next. No existing file is overwritten."""
    output: Path = chosen.output
    if output.exists():
        raise Usage(f"{output} is there already; name another file with -o")
    database = _database(chosen.data, output)
    description = inspect.describe(database)
    found = _read(database, description) if chosen.suggest_bounds else None
    source = DataSource(
        "duckdb", Path(os.path.relpath(database.absolute(), output.absolute().parent))
    )
    output.write_text(draft(description, source, found), encoding="utf-8")
    sys.stdout.write(f"Wrote {output}: a draft from names and types.\n")
    for table, there in description.tables.items():
        for column, held in there.columns.items():
            if policy_type(held) is None:
                sys.stdout.write(
                    f"Left out: {table}.{column} is {quote(held)}, which dpsql does not read.\n"
                )
    if found:
        sys.stdout.write(
            "Its ranges were read from the data and reveal its extremes: replace them by what is\n"
            "public knowledge before anyone is given access.\n"
        )
    sys.stdout.write(f"Look for FILL IN, then run: dpsql check {output}\n")
    return ANSWERED


def _read(database: Path, description: SourceDescription) -> Suggestions:
    """Suggestions read from rows: ranges, keys that repeat, and the most rows of one unit."""
    repeated = inspect.find_repeated_columns(database, description)
    unit = guess_unit(description, repeated)
    held = unit_columns(description, unit) if unit else {}
    ranges = inspect.bounds(database, description)
    return Suggestions(ranges, repeated, inspect.most_rows(database, held))


def _database(data: list[Path], output: Path) -> Path:
    """The DuckDB file that the policy will name: the one given, or a new one beside the policy."""
    for path in data:
        if not path.is_file():
            raise Usage(f"{path}: there is no such file")
    tabular = [path for path in data if path.suffix.lower() in inspect.READERS]
    if not tabular and len(data) == 1:
        return data[0]
    if len(tabular) < len(data):
        raise Usage("give one DuckDB file, or Parquet and CSV files, not both")
    names = [path.stem.lower() for path in data]
    if len(set(names)) < len(names):
        raise Usage("two files have the same name, and each becomes a table of its name")
    database = output.with_suffix(".duckdb")
    if database.exists():
        raise Usage(f"{database} is there already; name another policy file with -o")
    inspect.import_files(data, database)
    sys.stdout.write(
        f"Imported {len(data)} file{'' if len(data) == 1 else 's'} into {database}, which is what dpsql reads.\n"
        "After a change of the data run dpsql init with another -o, put the new .duckdb file in the place\n"
        "of this one, and change data_version in the policy.\n"
    )
    return database
