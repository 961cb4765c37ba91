"""Syntax tree to typed relations: every name resolved, every value typed, sqlglot left behind."""

from __future__ import annotations

from dpsql.sql.bind.bind import Bound, bind

__all__ = ["Bound", "bind"]
