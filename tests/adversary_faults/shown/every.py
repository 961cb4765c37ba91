"""All functions that show faults."""

from __future__ import annotations

from tests.adversary_faults.shown import (
    catalog,
    faces,
    ledger,
    noise,
    planner,
    resources,
    vectors,
)
from tests.adversary_faults.shown.showing import SHOWS

__all__ = ["SHOWS", "catalog", "faces", "ledger", "noise", "planner", "resources", "vectors"]
