"""All planted faults."""

from __future__ import annotations

from collections.abc import Mapping

from tests.adversary_faults import (
    catalog,
    faces,
    ledger,
    noise,
    planner,
    post_processor,
    resources,
    second_check,
    vectors,
)
from tests.adversary_faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *planner.FAULTS, *second_check.FAULTS, *catalog.FAULTS, *post_processor.FAULTS, *faces.FAULTS, *ledger.FAULTS,
    *resources.FAULTS, *noise.FAULTS, *vectors.FAULTS,
)  # fmt: skip
BY_NAME: Mapping[str, Fault] = {fault.name: fault for fault in FAULTS}
