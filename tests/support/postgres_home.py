"""Where a PostgreSQL server is; imports nothing, so that the coverage gate can ask too."""

from __future__ import annotations

import shutil
from pathlib import Path

_HOMES = (Path("/usr/lib/postgresql"), Path("/usr/local/pgsql"))


def binaries() -> Path | None:
    """Where this machine has a server, newest first; tests/support/postgres.sh installs one."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    homes = [path.parent for home in _HOMES for path in home.glob("*/bin/initdb")]
    return max(homes, default=None)
