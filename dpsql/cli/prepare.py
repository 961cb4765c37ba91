"""``dpsql prepare``: writes copies of private tables, which bounded queries read in one scan."""

from __future__ import annotations

import argparse
import sys

from dpsql.cli import terminal
from dpsql.cli.exits import ANSWERED, Usage
from dpsql.engines.duckdb import copies
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.policy.against_source import compare
from dpsql.policy.load import load
from dpsql.policy.model import Policy


def run(chosen: argparse.Namespace) -> int:
    """Write the copies, or remove them. The output is for the owner only: it depends on rows."""
    policy = load(chosen.policy)
    if chosen.remove:
        found = copies.remove(policy)
        terminal.say("removed" if found else "there were no prepared copies", sys.stderr)
        return ANSWERED
    engine = DuckDB(policy.source.path, policy.limits)
    try:
        policy = compare(policy, engine.describe())
    finally:
        engine.close()
    written = copies.prepare(policy, _chosen(policy, chosen.table))
    made = terminal.empty_table(("table", "rows", "units", "beyond max_rows_per_unit"), (1, 2, 3))
    for copy in written:
        counts = (copy.rows, copy.units, copy.beyond)
        made.add_row(terminal.plain(copy.table), *("" if n is None else f"{n:,}" for n in counts))
    terminal.show(made)
    terminal.say(
        f"{copies.place(policy).name} holds private rows: keep it as you keep the database."
        " A running server reads it when it is started again.",
        sys.stderr,
    )
    return ANSWERED


def _chosen(policy: Policy, names: list[str] | None) -> list[str]:
    """The named tables; all private tables if none is named."""
    private = [t.name for t in policy.tables.values() if not t.public]
    for name in names or ():
        if name not in private:
            raise Usage(f'"{name}" is no private table; there are {", ".join(private)}')
    return list(dict.fromkeys(names or private))
