"""DuckDB's own postgres scanner, from an environment of its own: it attaches the endpoint as a database."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from sides import Side, checks, shape

check = checks("DuckDB")
_PROGRAM = """
import glob, json, os, sys
import duckdb, duckdb_extension_postgres_scanner as scanner
places = os.path.join(os.path.dirname(scanner.__file__), "**", "*.duckdb_extension")
connection = duckdb.connect()
connection.execute("LOAD '" + glob.glob(places, recursive=True)[0] + "'")
connection.execute("ATTACH '" + sys.argv[1].replace("'", "''") + "' AS pg (TYPE postgres, READ_ONLY)")
found = []
for sql in sys.argv[2:]:
    try:
        found.append(connection.execute(sql).fetchall())
    except duckdb.Error as error:
        found.append("refused" if "ERROR:" in str(error) else "FAILED " + str(error))
print(json.dumps(found))
"""


def program() -> Path | None:
    """The interpreter that tests/support/clients.sh makes for it."""
    place = Path(__file__).parents[3] / "build" / "clients" / "duckdb"
    installed = list(place.glob("lib/python3*/site-packages/duckdb_extension_postgres_scanner"))
    return place / "bin" / "python" if installed else None


def _read(side: Side, *statements: str) -> list[Any]:
    done = subprocess.run(
        [str(program()), "-c", _PROGRAM, f"{side.dsn} sslmode=disable", *statements],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode:
        return [f"FAILED {done.stderr}"]
    found: list[Any] = json.loads(done.stdout)
    return found


@check
def tables_with_their_columns(side: Side) -> Any:
    return _read(side, "SHOW ALL TABLES", "DESCRIBE pg.orders", "DESCRIBE pg.public.countries")


@check
def rows_of_public_tables(side: Side) -> Any:
    return _read(
        side, "SELECT * FROM pg.countries ORDER BY country",
        "SELECT country FROM pg.countries WHERE continent = 'europe' AND population > 50 ORDER BY 1",
        "SELECT continent, sum(population)::BIGINT FROM pg.countries GROUP BY 1 ORDER BY 1",
        "SELECT count(*) FROM pg.countries",
    )  # fmt: skip


@check
def a_question_in_its_own_words(side: Side) -> Any:
    sql = "SELECT channel, count(*) AS n, avg(amount) AS mean FROM orders GROUP BY 1 ORDER BY 1"
    return [
        rows if isinstance(rows, str) else shape(rows, 1)
        for rows in _read(
            side,
            f"SELECT * FROM postgres_query('pg', '{sql}')",
            "SELECT c.continent, o.n FROM postgres_query('pg', 'SELECT country, count(*) AS n FROM"
            " customers GROUP BY 1') AS o JOIN pg.countries AS c USING (country) WHERE country IN ('de', 'us') ORDER BY 1",
        )
    ]  # fmt: skip


@check
def rows_of_people(side: Side) -> Any:
    """Its own aggregates read every row first; postgres_query sends them."""
    return [
        rows if isinstance(rows, str) else "rows"
        for rows in _read(
            side, "SELECT * FROM pg.customers LIMIT 1", "SELECT count(*) FROM pg.orders",
            "SELECT * FROM postgres_query('pg', 'SELECT email FROM customers')",
        )
    ]  # fmt: skip
