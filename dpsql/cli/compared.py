"""The comparison of a policy with its data, for the owner's commands ``check`` and ``refresh``."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from dpsql.cli.terminal import Progress
from dpsql.diagnostics.refusal import DataBreaksPolicy, SourceMismatch
from dpsql.engines.duckdb import copies
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.facts_file import FactsFile
from dpsql.engines.findings import find_broken_declarations, not_answered
from dpsql.engines.verify import verify
from dpsql.policy.against_source import compare
from dpsql.policy.model import Policy
from dpsql.policy.prepared_copies import PreparedCopies


@dataclass(frozen=True, slots=True)
class ComparedData:
    """A policy whose data keeps its declarations."""

    policy: Policy
    shelf: PreparedCopies
    copied: tuple[str, ...]
    """The private tables of which there are prepared copies, whether these are read or not."""
    unprepared: tuple[str, ...]
    """The reasons why prepared copies are not read."""
    missing: tuple[str, ...]
    """Sentences on the rows that are in no answer."""
    content: str
    """The digest of the data."""


def compare_data(policy: Policy) -> ComparedData:
    """Compare the data with the policy's declarations, and store the outcome for ``serve``.

    Raises ``SourceMismatch`` with each declaration that the data breaks, and numbers of rows.
    """
    engine = DuckDB(policy.source.path, policy.limits, copies.place(policy))
    try:
        source = engine.describe()
        policy = compare(policy, source)
        shelf, unprepared = copies.read(policy, engine.prepared)
        stored = FactsFile(policy.source.path, engine.state)
        content = stored.content()
        try:
            verify(policy, source, engine, shelf, stored, Progress(sys.stderr))
        except DataBreaksPolicy:
            raise SourceMismatch(*find_broken_declarations(policy, source, engine)) from None
        missing = not_answered(policy, engine)
        copied = copies.prepared_tables(policy, engine.prepared)
    finally:
        engine.close()
    return ComparedData(policy, shelf, copied, unprepared, missing, content)
