"""All faces say the same: a question that one face has answered is the same on every other.

Both runs ask the same ledger, one after the other. So the second one's answers are the first
one's, at no cost: the same rows, bit by bit, the same types, notes, codes, words and positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tests.adversary.faces.session import is_absent
from tests.adversary.faces.values import form
from tests.adversary.model import Case, Failure, Finding, Transcript, finding

BESIDE = " beside "
"""Between the names of the two faces of a case."""
LEDGER_LINES = re.compile(r"^(recalled: |to pay: |left in |    recalled: )")
"""Lines of a plan that follow from the ledger, which has changed since the first run."""
FREE = {"0", "0.0"}
LIMITS = frozenset({"DP402", "DP901", "DP902", "DP904"})
"""Errors that follow from the ledger or the clock, and not from the statement."""
UNREAD = frozenset({"22P02", "22003", "22007", "22008"})
"""A value that does not read as the type that PostgreSQL's protocol gives its parameter."""


ALSO = re.compile(r"^Also DP\d{3}: .*\n", re.MULTILINE)
"""Further refusals of the same statement, which only some faces tell."""


def said(failure: Failure | None) -> Failure | None:
    """The first refusal of a statement, which all faces tell."""
    return failure and replace(failure, words=ALSO.sub("", failure.words))


def kinds(found: Transcript) -> list[tuple[str, str]]:
    """Names and types of columns. PostgreSQL has no type for NULL alone: there it is a text."""
    return [(c.name, "text" if c.type == "null" else c.type) for c in found.columns]


def plan(text: str) -> str:
    """A plan without what the ledger adds to it."""
    return "\n".join(line for line in text.splitlines() if not LEDGER_LINES.match(line))


def cells(found: Transcript) -> list[tuple[str, ...]]:
    """The rows in the one form of all faces."""
    types = [column.type for column in found.columns]
    return [tuple(form(v, k) for v, k in zip(row, types, strict=True)) for row in found.rows]


def differences(one: Transcript, other: Transcript) -> Iterator[tuple[str, str]]:
    """What two transcripts of a step differ in, and how."""
    if said(one.error) != said(other.error):
        yield "the error", f"{one.error} and {other.error}"
        return
    if kinds(one) != kinds(other):
        yield "columns or types", f"{kinds(one)} and {kinds(other)}"
        return
    if cells(one) != cells(other):
        yield "rows", f"{cells(one)} and {cells(other)}"
    if one.notes != other.notes:
        yield "notes", f"{one.notes} and {other.notes}"
    if plan(one.text) != plan(other.text):
        yield "the plan", f"{plan(one.text)} and {plan(other.text)}"
    if other.cost is not None and (set(other.cost) - FREE):
        yield "the price: it was paid before", f"{one.cost} and {other.cost}"


class Agreement:
    """Holds a face against another one."""

    name = "agreement"

    def judge(self, case: Case) -> Finding | None:
        """The first step at which the two faces differ."""
        if BESIDE not in case.face:
            return None
        pairs = zip(case.left.transcripts, case.right.transcripts, strict=True)
        for number, (one, other) in enumerate(pairs):
            if is_absent(one) or is_absent(other):
                if one.step.act == "set":
                    return None
                continue
            codes = {t.error.code for t in (one, other) if t.error is not None}
            if codes & LIMITS or (one.step.parameters and codes & UNREAD):
                continue
            for what, how in differences(one, other):
                meaning = f"{case.face} differ in {what}"
                return finding(self.name, case, number, meaning, [how[:4000]])
        return None
