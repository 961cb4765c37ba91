"""psql: its backslash commands, its output, what it completes when Tab is pressed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from typing import Any

from sides import CHECKS, Side

COMMANDS = (
    r"\dt", r"\dt+", r"\d", r"\d orders", r"\d customers", r"\d+ visits", r"\d customers_pkey",
    r"\d nowhere", r"\dt nowhere", r"\dv", r"\di", r"\ds", r"\dm", r"\df", r"\dT", r"\dn", r"\dx",
    r"\dy", r"\dC int4", r"\do", r"\dp orders", r"\ddp", r"\dc", r"\dL", r"\dA", r"\des", r"\dRp",
    r"\dF", r"\dg analyst", r"\du analyst", r"\l", r"\z countries", r"\conninfo", r"\encoding", r"\sf nothing",
    r"\dd", r"\db", r"\dO", r"\dconfig work_mem", r"\d pg_class", r"\dt pg_catalog.pg_cl*",
    r"SELECT 1 AS one, 'a' AS b, count(*) FROM orders \gdesc",
    r"SELECT country, continent FROM countries ORDER BY 1 \gx",
    r"SELECT continent, country, population FROM countries WHERE population > 80 \crosstabview",
    r"\copy (SELECT country, continent FROM countries ORDER BY 1) TO STDOUT CSV HEADER",
    r"SELECT 'x' AS name \gset" + "\n" + r"\echo :name",
    r"\set FETCH_COUNT 4" + "\n" + "SELECT country FROM countries ORDER BY 1;",
    r"SELECT 1/0.0 \; SELECT 2 AS after;",
    "BEGIN; SELECT nothing FROM customers;\nSELECT 1;\nROLLBACK;",
    "SELECT count(*) FROM nowhere;",
    "CREATE TEMP TABLE t (a int);",
    "SHOW search_path; SHOW standard_conforming_strings; SHOW transaction_isolation;",
    "SELECT current_database(), current_schema(), current_user, session_user;",
    "PREPARE a AS SELECT country FROM countries WHERE population > $1 ORDER BY 1; EXECUTE a(100);",
    "SELECT NULL, true, 1.50, DATE '2024-02-29', 'ü';",
    "VALUES (1, 'a'), (2, 'b');",
    "TABLE countries;",
)  # fmt: skip
COMPLETED = (
    r"\d ord", r"\dt cus", "SELECT * FROM vis", "SELECT count(*) FROM countries WHERE cont",
    "SET application_n", r"\d public.cust", "DECLARE c CURSOR FOR SELECT * FROM ord",
)  # fmt: skip
_ARGUMENTS = ("psql", "-X")
_CODES = ("-v", "VERBOSITY=sqlstate")
"""Errors are SQLSTATEs, and nothing else."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x07\r]")


def _run(side: Side, text: str) -> Any:
    done = subprocess.run(
        [*_ARGUMENTS, *_CODES], input=text + "\n", capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, **side.environment, "PGSSLMODE": "disable", "PSQL_PAGER": ""},
    )  # fmt: skip
    notices = re.sub(
        r"(NOTICE|DETAIL|HINT|LINE \d+):.*\n|^ +\^\n", "", done.stderr, flags=re.MULTILINE
    )
    return done.stdout.replace(str(side.port), "PORT"), notices


def _completed(side: Side, text: str) -> Any:
    """What the line is when Tab has been pressed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*_ARGUMENTS, "-q"], stdin=slave, stdout=slave, stderr=slave, close_fds=True,
        env={**os.environ, **side.environment, "TERM": "dumb", "INPUTRC": "/dev/null",
             "PGSSLMODE": "disable", "PSQL_HISTORY": "/dev/null"},
    )  # fmt: skip
    os.close(slave)
    try:
        _until(master, "=> ", 10)
        os.write(master, text.encode() + b"\t")
        shown = _quiet(master)
        return _ESCAPES.sub("", shown).rpartition("=> ")[2].rstrip("\n")
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _until(master: int, wanted: str, seconds: float) -> str:
    found, end = "", time.monotonic() + seconds
    while wanted not in found and time.monotonic() < end:
        if select.select([master], [], [], 0.05)[0]:
            found += os.read(master, 4096).decode(errors="replace")
    return found


def _quiet(master: int) -> str:
    found, last = "", time.monotonic()
    while time.monotonic() - last < 0.4:
        if select.select([master], [], [], 0.05)[0]:
            found += os.read(master, 4096).decode(errors="replace")
            last = time.monotonic()
    return found


def _register() -> None:
    for text in COMMANDS:
        CHECKS["psql", text.replace("\n", " ")] = lambda side, text=text: _run(side, text)
    for text in COMPLETED:
        CHECKS["psql", f"Tab behind {text}"] = lambda side, text=text: _completed(side, text)


_register()
