"""dbt with its PostgreSQL adapter, from an environment of its own: debug, and a run of one model."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from sides import Side, checks

check = checks("dbt")
_PROJECT = "name: shop\nversion: '1'\nprofile: shop\nmodel-paths: [models]\n"
_MODEL = "select channel, count(*) as n from orders group by channel"


def program() -> Path | None:
    """Where tests/support/clients.sh puts it."""
    found = Path(__file__).parents[3] / "build" / "clients" / "dbt" / "bin" / "dbt"
    return found if found.is_file() else None


def _dbt(side: Side, *arguments: str) -> list[str]:
    """Its lines, without times and colours."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "models").mkdir()
        (home / "dbt_project.yml").write_text(_PROJECT)
        (home / "models" / "channels.sql").write_text(_MODEL)
        (home / "profiles.yml").write_text(
            "shop:\n  target: it\n  outputs:\n    it: {type: postgres, schema: public, threads: 1,"
            f" host: {side.host}, port: {side.port}, user: {side.role}, dbname: {side.database},"
            f" password: {side.password}, sslmode: disable}}\n"
        )
        done = subprocess.run(
            [str(program()), "--no-use-colors", *arguments, "--project-dir", place, "--profiles-dir", place],
            capture_output=True, text=True, check=False, timeout=120, cwd=place,
            env={"DO_NOT_TRACK": "1", "DBT_SEND_ANONYMOUS_USAGE_STATS": "0", "HOME": place},
        )  # fmt: skip
    return [re.sub(r"^[\d:. ]+", "", line).strip() for line in done.stdout.splitlines()]


@check
def debug(side: Side) -> Any:
    wanted = ("Connection test", "All checks passed", "profiles.yml file [", "host:", "database:")
    return [line for line in _dbt(side, "debug") if line.startswith(wanted)]


@check
def a_compiled_model(side: Side) -> Any:
    """A preview of an inline model: it is a query."""
    lines = _dbt(
        side,
        "show",
        "--inline",
        "select country, population from countries order by 1",
        "--limit",
        "3",
    )
    return [line for line in lines if line.startswith("|")]


@check
def a_run_makes_a_table(side: Side) -> Any:
    """Nothing is made in either: the role may only read."""
    lines = _dbt(side, "run")
    return [
        line
        for line in lines
        if line.startswith("Done.") or "permission denied" in line or "not allowed" in line
    ][-1:]
