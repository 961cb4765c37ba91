"""Comparisons of the data with the policy, with numbers, for the owner's own terminal alone.

Nothing here is called for an analyst, and nothing of it is logged. ``dpsql check`` prints it, and
so does ``dpsql serve`` on an interactive terminal.
"""

from __future__ import annotations

from pathlib import Path

from dpsql.declarations.left_out import left_out
from dpsql.declarations.requirements import requirements
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.policy.against_source import compare
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.policy.source import SourceDescription


def find_broken_declarations(
    policy: Policy, source: SourceDescription, engine: DuckDB
) -> tuple[str, ...]:
    """Each declaration that the data breaks: its place, the numbers, and what to write instead."""
    told = {}
    for needed in requirements(policy, source):
        key = needed.declaration, needed.table, needed.said
        if key not in told and not engine.is_empty(needed.broken):
            said = _with_numbers(needed.said, engine.numbers(needed.counted))
            told[key] = f"{needed.place}: {said}; {needed.instead}"
    return tuple(told.values())


def broken_data(path: Path) -> tuple[str, ...]:
    """The broken declarations of a policy that was refused."""
    policy = load(path)
    engine = DuckDB(policy.source.path, policy.limits)
    try:
        source = engine.describe()
        return find_broken_declarations(compare(policy, source), source, engine)
    finally:
        engine.close()


def not_answered(policy: Policy, engine: DuckDB) -> tuple[str, ...]:
    """Sentences on the rows that answers leave out, with their numbers; none if there are none."""
    counted = [(engine.numbers(item.count), item.said) for item in left_out(policy)]
    return tuple(_with_numbers(said, numbers) for numbers, said in counted if any(numbers))


def _with_numbers(said: str, numbers: tuple[int, ...]) -> str:
    for place, number in enumerate(numbers):  # names of tables may have braces too
        said = said.replace(f"{{{place}}}", f"{number:,}")
    return said
