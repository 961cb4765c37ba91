"""A served policy under many clients: overspending while it reloads, and kills at any moment."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
for place in (TESTS, TESTS / "support"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
