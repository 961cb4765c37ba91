"""Takes operands back out of the pieces that are written so far for the catalog's engine."""

from __future__ import annotations

from dpsql.serve.catalog.words import NO_NAMES
from dpsql.serve.pgwire.errors import SYNTAX, WireError


def take_operand(out: list[str]) -> str:
    """Remove the primary expression that was written last, and return its text."""
    if not out:
        raise WireError(SYNTAX, "syntax error at or near a cast")
    start = len(out) - 1
    while out[start] in (")", "]"):
        start = _back_over(out, start)
        if start > 0 and _is_name(out[start - 1]) and out[start] in ("(", "["):
            start -= 1
            break
        if out[start] == "(" or start == 0:
            break
        start -= 1
    while start > 1 and out[start - 1] == ".":
        start -= 2
    taken = " ".join(out[start:])
    del out[start:]
    return taken


def _back_over(out: list[str], at: int) -> int:
    depth = 0
    while at >= 0:
        depth += (out[at] in (")", "]")) - (out[at] in ("(", "["))
        if depth == 0:
            return at
        at -= 1
    raise WireError(SYNTAX, "syntax error at or near a cast")


def _is_name(text: str) -> bool:
    return (text[:1].isalpha() or text[:1] in '_"') and text.lower() not in NO_NAMES - {"array"}


def last_name(operand: str) -> str:
    """The name of the column with which an operand ends."""
    return operand.rpartition(". ")[2].strip('"')
