"""Whoever claims something says under which assumptions and why, and shows a number."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import pytest

import dpsql.privacy


def _documented() -> Iterator[tuple[str, str]]:
    for info in pkgutil.walk_packages(dpsql.privacy.__path__, "dpsql.privacy."):
        module = importlib.import_module(info.name)
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", None) == info.name:
                yield f"{info.name}.{name}", inspect.getdoc(thing) or ""
                members = vars(thing).items() if inspect.isclass(thing) else ()
                for part, member in members:
                    if inspect.isfunction(member):
                        yield f"{info.name}.{name}.{part}", inspect.getdoc(member) or ""


CLAIMS = {name: text for name, text in _documented() if "Claim:" in text}


def test_the_claims_are_found() -> None:
    assert len(CLAIMS) >= 24
    assert "dpsql.privacy.mechanisms.laplace.laplace_for" in CLAIMS


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_complete(name: str) -> None:
    for part in ("Assumes:", "Argument:"):
        assert part in CLAIMS[name], f"{name} claims without {part}"
    assert re.search(r">>>[\s\S]*\n.*\d", CLAIMS[name]), f"{name} shows no number"
