"""One endpoint for all tests that only read from it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from endpoint import Endpoint, endpoint

collect_ignore = ["superset", "cube", "clients/scripts"]
"""What BI tools and clients read, in environments of their own."""


@pytest.fixture(scope="session")
def shop() -> Iterator[Endpoint]:
    """The shop's endpoint, with and without TLS."""
    with endpoint(tls=True) as found:
        yield found
