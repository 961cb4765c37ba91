"""A session: who, under which policy, with which ledger. The only way faces reach the pipeline."""

from __future__ import annotations

from dpsql.service.reply import Remaining, Reply
from dpsql.service.service import Service
from dpsql.service.session import Session

__all__ = ["Remaining", "Reply", "Service", "Session"]
