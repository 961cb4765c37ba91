"""dpsql: a SQL proxy that answers with differential privacy.

``dpsql.connect("policy.yaml")`` is a PEP 249 connection. All names of ``dpsql.dbapi`` are available
here; the module is imported when one of them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsql.dbapi import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        dbapi = import_module("dpsql.dbapi")
        if name in dbapi.__all__:
            return getattr(dbapi, name)
    raise AttributeError(f"module 'dpsql' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *import_module("dpsql.dbapi").__all__])
