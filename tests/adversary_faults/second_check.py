"""Faults of the second check, with what it must stop: functions that fail, identifiers, windows."""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

FAULTS = (
    Fault(
        "a window counts rows of everybody",
        "second check",
        (
            Edit(
                "checks/unit_windows.py",
                "if not groups_by_unit(relation.privacy, window.partition):",
                "if window is None:",
            ),
            Edit(
                "engines/duckdb/guard/terms.py",
                '        if private and (not self.parts or len(covered) < self.parts):\n            raise Unsafe("a window',
                '        if private and not self.parts and keys:\n            raise Unsafe("a window',
            ),
        ),
        "A value of each row is computed from all people's rows, so one person moves all of them.",
        "windows across units (DESIGN, 1)",
    ),
    Fault(
        "stored values are cast as they are",
        "second check",
        (
            Edit(
                "engines/duckdb/relations.py",
                '    return f"TRY_CAST({text} AS {engine_type(kind)})" if kind is not Kind.NULL else text',
                '    return f"CAST({text} AS {engine_type(kind)})" if kind is not Kind.NULL else text',
            ),
            Edit(
                "engines/duckdb/guard/casts.py",
                "    if (child.kind, target.kind) in SURE:",
                "    if child.kind == STORED or (child.kind, target.kind) in SURE:",
            ),
        ),
        "Whether a query fails tells whether somebody has a value that does not fit its type.",
        "stop 24: statements that fail for chosen rows",
    ),
    Fault(
        "a text is a condition",
        "second check",
        (
            Edit(
                "sql/bind/aggregate_calls.py",
                "    check_kinds(node, name, CONDITIONS, args)\n",
                "",
            ),
            Edit(
                "engines/duckdb/guard/terms.py",
                '        if kind not in (TRUTH, NULL, "boolean"):',
                '        if kind not in (TRUTH, TEXT, NULL, "boolean"):',
            ),
        ),
        "A query fails for rows that the asker chooses: any row is read, one bit for each query.",
        "stop 24: COUNT_IF of a text",
    ),
    Fault(
        "whole numbers overflow",
        "second check",
        (
            Edit(
                "engines/duckdb/functions/arithmetic.py",
                """            return f"TRY({f' {symbol} '.join(_whole(texts, args))})\"""",
                """            return f"({f' {symbol} '.join(_whole(texts, args))})\"""",
            ),
            Edit(
                "engines/duckdb/guard/sizes.py",
                "    if whole and not tried and not _fits(low, high, bits):",
                "    if whole and not tried and bits < 0:",
            ),
        ),
        "A query fails for rows that the asker chooses: any value is read, one bit for each query.",
        "total expressions (DESIGN, rule 4)",
    ),
    Fault(
        "identifiers name groups",
        "second check",
        (
            Edit(
                "checks/identifiers.py",
                "            named = [c for c in columns(key) if c.identifier]",
                "            named = [c for c in columns(key) if c.identifier and c.number < 0]",
            ),
            Edit(
                "engines/duckdb/guard/statement.py",
                "    if rows.hides and not all(_shown(key, rows) for key in keys):",
                "    if rows.hides and not keys:",
            ),
        ),
        "Values that the owner marked as naming people are shown wherever many share them.",
        "stop 10: identifiers as keys passed the second check",
    ),
)
