"""Clients in other languages: programs that print one line of JSON for each of their checks."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sides import CHECKS, CLIENTS, Side

TOOLS = Path(__file__).parents[3] / "build" / "clients"
"""Where tests/support/clients.sh puts what it fetches."""
JARS = (TOOLS / "postgresql.jar", Path("/usr/share/java/postgresql.jar"))


def jar() -> Path | None:
    """The JDBC driver."""
    return next((path for path in JARS if path.is_file()), None)


def modules() -> Path | None:
    """The packages of node-postgres."""
    found = TOOLS / "node_modules"
    return found if shutil.which("node") and (found / "pg-cursor").is_dir() else None


def _node(side: Side) -> Sequence[str]:
    return ["node", str(CLIENTS / "node_postgres.js")]


def _java(side: Side) -> Sequence[str]:
    return [
        "java",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        str(jar()),
        str(CLIENTS / "Jdbc.java"),
    ]


def names(file: str) -> list[str]:
    """The checks of a program, read from its text."""
    return re.findall(
        r'^\s*(?:await )?check\(\s*"([^"]+)"', (CLIENTS / file).read_text(), re.MULTILINE
    )


@functools.cache
def _outcomes(command: Callable[[Side], Sequence[str]], side: Side) -> dict[str, Any]:
    try:
        done = subprocess.run(
            command(side), capture_output=True, text=True, check=False, timeout=280,
            env={**os.environ, **side.environment, "PGVIEWER": side.viewer, "NODE_PATH": str(TOOLS / "node_modules"), "TZ": "UTC"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as hung:
        seen = re.findall(rb'"check":("[^"]+")', hung.stdout or b"")
        raise AssertionError(f"hung after {seen[-1:]} at port {side.port}") from hung
    assert done.returncode == 0, done.stderr
    return {line["check"]: line["saw"] for line in map(json.loads, done.stdout.splitlines())}


def _register(client: str, file: str, command: Callable[[Side], Sequence[str]]) -> None:
    for name in names(file):
        CHECKS[client, name] = lambda side, name=name: _outcomes(command, side)[name]


def python(name: str) -> Path | None:
    """The interpreter of an environment that ``clients.sh`` made."""
    found = TOOLS / name / "bin" / "python"
    return found if found.is_file() else None


def package(name: str) -> Path | None:
    """A package of node's."""
    found = TOOLS / "node_modules" / name
    return found if shutil.which("node") and found.is_dir() else None


def _script(file: str, environment: str = "") -> Callable[[Side], Sequence[str]]:
    program = str(python(environment)) if environment else "node"
    return lambda _: [program, str(CLIENTS / "scripts" / file)]


_register("pgcli", "scripts/pgcli_4.py", _script("pgcli_4.py", "pgcli"))
_register("Django", "scripts/django_5.py", _script("django_5.py", "django"))
_register("ibis", "scripts/ibis_10.py", _script("ibis_10.py", "ibis"))
_register("pgAdmin 4", "scripts/pgadmin_4.py", _script("pgadmin_4.py", "pgadmin"))
_register("Sequelize", "scripts/sequelize.js", _script("sequelize.js"))
_register("drizzle-kit", "scripts/drizzle_kit.js", _script("drizzle_kit.js"))
_register("node-postgres", "node_postgres.js", _node)
_register("JDBC", "Jdbc.java", _java)
