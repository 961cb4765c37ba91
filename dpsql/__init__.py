"""dpsql: a SQL proxy that answers with differential privacy."""

from __future__ import annotations

__version__ = "0.1.0"
