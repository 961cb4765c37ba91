"""Services and their sessions. Faces reach the pipeline only through a session.

A service is one open policy, with its engine and its ledger. A session asks for one role.
"""

from __future__ import annotations

from dpsql.service.reply import Remaining, Reply
from dpsql.service.service import Service
from dpsql.service.session import Session

__all__ = ["Remaining", "Reply", "Service", "Session"]
