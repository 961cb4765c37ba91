"""Where clients see something else than with PostgreSQL, and why. Everything else is equal.

What dpsql says there is kept in ``fixtures/wire/differences.json``; ``--rewrite`` renews it.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path

_WHOLE = (
    "whole numbers are 64 bits and fractions double precision, for noise has no type of its own"
)
_CONSTANT = "constants are computed by another engine: some have another type, or no error"
_SIZES = "how large a table is, is private"
_FEW = "one policy is one database; there are no templates, text searches or settings of a server"
_KEYS = "keys are the policy's word; PostgreSQL's information schema shows them to owners only"

DIFFERENCES: dict[tuple[str, str], str] = {
    ("asyncpg", "parameters beside integers"): _WHOLE,
    ("DuckDB", "rows of people"): "rows of a private table are not shown",
    ("psycopg 3", "sums and averages of integers"): _WHOLE,
    ("psycopg 3", "public tables"): _WHOLE,
    ("psycopg 3", "columns of the information schema"): "texts of the information schema are text",
    ("psycopg 3", "groups that hold nobody"): "whether a public group is empty is private",
    ("psycopg 3", "sums of no rows"): "whether anyone has a value is private: a sum is a number",
    ("psycopg 3", "rows of people"): "rows of a private table are not shown",
    ("psycopg 3", "EXPLAIN ANALYZE SELECT 1"): "EXPLAIN runs nothing, and tells costs in epsilon",
    ("psycopg 3", "SELECT 1e400::float8"): _CONSTANT,
    ("psycopg 3", "SELECT sqrt(-1)"): _CONSTANT,
    ("psycopg 3", "SELECT 1.50::numeric(10,2)"): _CONSTANT,
    ("psycopg 3", "SELECT length('abc')"): _CONSTANT,
    ("psycopg 3", "SELECT 7.0 / 2"): _CONSTANT,
    ("psycopg 3", "SELECT pg_typeof(1)"): _CONSTANT,
    ("psycopg 3", "SELECT 1 UNION SELECT 'a'"): _CONSTANT,
    ("psycopg 3", "SELECT sum(country) FROM countries"): "a refusal says what SUM takes (42804)",
    ("Django", "inspectdb"): "rows of a private table are not shown",
    ("drizzle-kit", "primary keys"): _KEYS,
    ("Sequelize", "primary keys"): _KEYS,
    ("psql", r"\dt+"): _SIZES,
    ("psql", r"\dF"): _FEW,
    ("psql", r"\l"): _FEW,
    ("psql", r"\dconfig work_mem"): _FEW,
    ("psql", r"\d pg_class"): "constraints of PostgreSQL's own tables are told as indexes",
    ("psql", r"SELECT 1 AS one, 'a' AS b, count(*) FROM orders \gdesc"): _WHOLE,
}

_KEPT = Path(__file__).parents[2] / "fixtures" / "wire" / "differences.json"
_PSQL = "psql (PostgreSQL) 15"
"""Whose tables are kept: other versions draw the same rows with other columns."""


def kept() -> dict[str, dict[str, str]]:
    """What dpsql says, by client and check."""
    found: dict[str, dict[str, str]] = json.loads(_KEPT.read_text(encoding="utf-8"))
    return found


def keep(client: str, name: str, said: str) -> None:
    """Write down what dpsql says now."""
    found = kept() if _KEPT.exists() else {}
    found.setdefault(client, {})[name] = said
    _KEPT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def is_kept(client: str, name: str) -> bool:
    """Whether what dpsql says is written down, of a client that draws rows as the one here does."""
    return name in kept().get(client, {}) and (client != "psql" or _is_same_psql())


@functools.cache
def _is_same_psql() -> bool:
    told = subprocess.run(["psql", "--version"], capture_output=True, text=True, check=False)
    return bool(re.match(re.escape(_PSQL) + r"\b", told.stdout))
