"""What may be left out: on a machine of one's own what it has not; in CI nothing that CI installs."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def required() -> bool:
    """Whether this is CI, and `.ci/run` had its PostgreSQL."""
    return os.environ.get("DPSQL_REQUIRE_POSTGRES") == "1"


def leave_out(why: str) -> NoReturn:
    """Skip a test for want of something; in CI it fails, for there it was installed."""
    if required():
        pytest.fail(why)
    pytest.skip(why)
