"""Whoever claims something says under which assumptions and why: in every package, as in ``privacy``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.structure import ROOT, modules

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PARTS = ("Assumes:", "Argument:")


def _claims() -> Iterator[tuple[str, str]]:
    for path, module in modules(ROOT).items():
        for node in ast.walk(module):
            text = ast.get_docstring(node) if isinstance(node, _DOCUMENTED) else None
            if text is not None and "Claim:" in text:
                yield f"{path}:{getattr(node, 'name', '')}".rstrip(":"), text


CLAIMS = dict(_claims())


def test_the_claims_are_found() -> None:
    assert len(CLAIMS) > 150
    assert "sql/bind/privacy.py:join_privacy" in CLAIMS


def test_each_claim_is_complete() -> None:
    lacking = {name for name, text in CLAIMS.items() if any(part not in text for part in PARTS)}
    assert lacking == set()
