"""The policy's settings for the ledger: the server that keeps it, and the time zone of windows."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from dpsql.policy.model import LedgerServer
from dpsql.policy.problems import Problems
from dpsql.policy.section import Section

_PASSWORD = re.compile(r"(?i)\bpassword\s*=|^[a-z]+://[^/@]*:[^/@]*@|[?&]password=")


def server_of(section: Section, problems: Problems) -> LedgerServer | None:
    """The server that keeps the ledger; None if a file keeps it."""
    dsn = section.get("dsn", str)
    wants = section.get("store", str) == "postgres"
    if wants and dsn is None and "dsn" not in section.spoilt:
        problems.add(
            section.at("store"),
            "the ledger is kept by postgres, which needs `dsn: host=.. dbname=.. user=..`",
        )
    for key in ("dsn", "schema") if not wants and "store" not in section.spoilt else ("path",):
        if key in section.given:
            kept = "postgres" if wants else "sqlite"
            problems.add(
                section.at(key),
                f"{key} of the ledger means nothing to {kept}; remove it, or write another store",
            )
    if dsn is not None and _PASSWORD.search(dsn):
        problems.add(
            section.at("dsn"),
            "the dsn of the ledger holds a password; remove it, and put it into a password file "
            "(PGPASSFILE) or the environment (PGPASSWORD)",
        )
    return LedgerServer(dsn, section.get("schema", str) or "dpsql") if wants and dsn else None


def time_zone_of(root: Section, problems: Problems) -> str:
    """The name of a time zone that this machine knows."""
    name = root.get("time_zone", str) or "UTC"
    try:
        return "UTC" if name == "UTC" else ZoneInfo(name).key
    except (KeyError, ValueError, OSError):
        problems.add(
            root.at("time_zone"),
            f'time_zone cannot be "{name}"; write a name such as UTC or Europe/Vienna',
        )
        return "UTC"
