"""``dpsql init``: drafts a policy for existing data, with comments where the owner must decide.

A second run drafts again, and merges the new draft with what the owner has edited. For that, the
draft is kept beside the policy as it was made.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dpsql.cli.ask import ask_epsilon, ask_public, ask_rows, ask_unit, describe_unit
from dpsql.cli.exits import ANSWERED, Usage
from dpsql.diagnostics.quote import place, quote
from dpsql.engines.duckdb import import_files, inspect
from dpsql.policy.document import text_of
from dpsql.policy.draft import IMPORTED, READ, Decisions, Suggestions, draft
from dpsql.policy.guess import GuessedUnit, guess_unit, possible_units, unit_columns, unled_tables
from dpsql.policy.merge import Merged, merge
from dpsql.policy.model import DataSource
from dpsql.policy.source import SourceDescription, policy_type

_SHOWN = 5
"""The most lines of a new draft that are quoted."""


def run(chosen: argparse.Namespace) -> int:
    """Describe the data, write or update the draft, say what to do next."""
    output: Path = chosen.output
    if chosen.ask and not sys.stdin.isatty():
        raise Usage("--ask asks at a terminal, and standard input is none; leave it out")
    before = _before(output, read=chosen.suggest_bounds)
    again = before is not None and IMPORTED in before[1]
    database = _database(chosen.data, output, again=again)
    source = DataSource(
        "duckdb", Path(os.path.relpath(database.absolute(), output.absolute().parent))
    )
    try:
        text, facts = _draft(chosen, database, source)
    except BaseException:
        if before is None and database not in chosen.data:
            database.unlink()  # so that the next try finds its place free
        raise
    whom = "nobody yet" if facts.unit is None else describe_unit(facts.unit)
    said = f"Wrote {output}: a draft from names and types.\nProtects: {whom}\n"
    if before is not None:
        text_of_mine, base = before
        merged = merge(base.splitlines(), text_of_mine.splitlines(), text.splitlines())
        said = _updated(output, text_of_mine, merged)
        output.write_text("".join(f"{line}\n" for line in merged.lines), encoding="utf-8")
    else:
        output.write_text(text, encoding="utf-8")
    kept_draft(output).write_text(text, encoding="utf-8")
    sys.stdout.write(said)
    sys.stdout.writelines(_left_out(facts.description))
    if chosen.suggest_bounds:
        sys.stdout.writelines(_revealed(text))
    sys.stdout.write(f"Look for FILL IN, then run: dpsql check {output}\n")
    return ANSWERED


def kept_draft(output: Path) -> Path:
    """The file that keeps the draft of a policy as it was made."""
    return output.with_name(f"{output.name}.draft")


def _before(output: Path, *, read: bool) -> tuple[str, str] | None:
    """The policy that is there and the draft that it was made from; None if there is none yet."""
    if not output.exists():
        return None
    kept = kept_draft(output)
    if not kept.is_file():
        raise Usage(
            f"{output} is there already, and not {kept.name}, the draft that it was made from;"
            " name another file with -o"
        )
    base = text_of(kept, place(kept))
    if READ in base and not read:
        raise Usage(f"{output} was drafted with --suggest-bounds: give it again")
    return text_of(output, place(output)), base


def _updated(output: Path, mine: str, merged: Merged) -> str:
    """What an update did, with the lines of the new draft that were not taken."""
    if list(merged.lines) == mine.splitlines():
        said = f"{output} is up to date; what you wrote stays.\n"
    else:
        said = f"Updated {output}; what you wrote stays. If it is served, run: dpsql refresh {output}\n"
    for line in merged.overruled[:_SHOWN]:
        said += f"Not taken, as you edited its place: {quote(line.strip(), 2 * 60)}\n"
    more = len(merged.overruled) - _SHOWN
    return said + (
        f"Not taken either: {more} more lines of {kept_draft(output)}\n" if more > 0 else ""
    )


def _left_out(description: SourceDescription) -> Iterator[str]:
    for table, there in description.tables.items():
        for column, held in there.columns.items():
            if policy_type(held) is None:
                yield f"Left out: {table}.{column} is {quote(held)}, which dpsql does not read.\n"


def _revealed(text: str) -> Iterator[str]:
    """What a draft reveals of the rows, since ``--suggest-bounds`` read them."""
    lines = [line for line in text.splitlines() if READ in line]
    yield "Read from the data, and private:\n"
    for word, said in (
        ("range: [", "range(s): that values lie near the ends, which are rounded outwards"),
        ("max_rows_per_unit:", "number(s) of rows: about how many somebody has"),
        ("values_from:", "table(s) of values: that a column has no other values"),
        (
            "values: [",
            f"list(s) of values: that {inspect.FEWEST_UNITS} units or more have each of them",
        ),
    ):
        if count := sum(word in line for line in lines):
            yield f"  {count} {said}\n"
    yield "Replace them by what is public knowledge before anyone is given access.\n"


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a draft was made from."""

    description: SourceDescription
    unit: GuessedUnit | None


def _draft(chosen: argparse.Namespace, database: Path, source: DataSource) -> tuple[str, _Facts]:
    """The text of the draft. With ``--ask``, the owner answers questions first."""
    description, repeated = inspect.describe(database), frozenset[tuple[str, str]]()
    if chosen.suggest_bounds:
        repeated = inspect.find_repeated_columns(database, description)
        description = inspect.with_seen_keys(database, description, repeated)
    unit = guess_unit(description, repeated)
    if chosen.ask:
        unit = ask_unit(possible_units(description, repeated))
    found = _read(database, description, repeated, unit) if chosen.suggest_bounds else None
    decisions, imported = None, database not in chosen.data

    def text(decided: Decisions | None, place: DataSource) -> str:
        return draft(description, place, found, decisions=decided, imported=imported)

    if chosen.ask and unit is not None:
        rows = ask_rows(description, unit, found)
        decisions = Decisions(unit, rows, ask_public(description, unit))
        absolute = replace(source, path=database.absolute())
        decisions = ask_epsilon(decisions, lambda decided: text(decided, absolute))
    return text(decisions, source), _Facts(description, unit)


def _read(
    database: Path, description: SourceDescription, repeated: frozenset[tuple[str, str]],
    unit: GuessedUnit | None,
) -> Suggestions:  # fmt: skip
    """Suggestions read from rows: ranges, values, and the most rows of one unit."""
    held = unit_columns(description, unit) if unit else {}
    return Suggestions(
        inspect.bounds(database, description), repeated, inspect.most_rows(database, held),
        inspect.find_values(database, description, held),
        inspect.find_value_sources(
            database, description, unled_tables(description, unit) if unit else ()
        ),
    )  # fmt: skip


def _database(data: list[Path], output: Path, *, again: bool) -> Path:
    """The DuckDB file that the policy will name: the one given, or a new one beside the policy."""
    for path in data:
        if not path.exists():
            raise Usage(f"{path}: there is no such file")
    if len(data) == 1 and data[0].is_file() and not import_files.suffix_of(data[0]):
        return data[0]
    if any(path.is_file() and not import_files.suffix_of(path) for path in data):
        raise Usage("give one DuckDB file, or files and folders of CSV, JSON and Parquet, not both")
    tables, unread = import_files.plan_tables(data)
    if not tables:
        raise Usage(f"{data[0]}: there is no CSV, JSON or Parquet file in it")
    names = [table.name.lower() for table in tables]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Usage(
            f'two files have the same name "{quote(twice)}", and each becomes a table of its name'
        )
    database = output.with_suffix(".duckdb")
    if database.exists() and not again:
        raise Usage(f"{database} is there already; name another policy file with -o")
    import_files.import_files(tables, database)
    files = sum(len(table.files) for table in tables)
    sys.stdout.write(
        f"Imported {files} file{'' if files == 1 else 's'} into {database}, which is what dpsql reads.\n"
        "After a change of the data run this command again, and then dpsql refresh.\n"
    )
    for path in unread:
        sys.stdout.write(f"Not read: {quote(str(path), 180)} is no CSV, JSON or Parquet file.\n")
    return database
