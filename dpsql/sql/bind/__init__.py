"""Binds a syntax tree to typed relations without sqlglot: resolves names and types values."""

from __future__ import annotations

from dpsql.sql.bind.bind import Bound, bind

__all__ = ["Bound", "bind"]
