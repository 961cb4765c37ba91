"""Nothing that a client writes makes dpsql fail by its own fault.

A statement is answered, or refused with a code that says what is wrong with it. A failure of the
engine, a stop by the second check and an exception without a code are defects, whatever they tell.
A policy is opened, or refused in words of dpsql. An exception of Python itself is a defect.
"""

from __future__ import annotations

import builtins
import re

from tests.adversary.model import Case, Failure, Finding, finding

REFUSED = re.compile(r"DP[1-6]\d\d|DP902|DP904|DP905|\d[0-9A-Z]{4}")
"""Codes of refusals, of the ledger, of time and of memory; SQLSTATEs of faces that have no others."""
DEFECT = "XX000"
ENGINE = re.compile(
    r"\b(Binder|Catalog|Parser|Conversion|Invalid Input|Out of Range|Out of Memory|INTERRUPT|IO|Internal"
    r"|INTERNAL|Not implemented|Constraint|Permission|Invalid) Error\b|Candidate functions|LINE \d+:"
)
"""How the engine begins what it says, which may quote data."""


class Defects:
    """Reads the codes of both runs."""

    name = "defects"

    def judge(self, case: Case) -> Finding | None:
        """The first failure that is nobody's fault but dpsql's."""
        for run in (case.left, case.right):
            if run.opened is not None and _crashed(run.opened):
                meaning = f"dpsql fails with {run.opened.code} when it opens a policy"
                return finding(self.name, case, 0, meaning, [run.opened.words])
            for number, transcript in enumerate(run.transcripts):
                error = transcript.error
                told = (*transcript.notes, *transcript.notices)
                if not all(isinstance(words, str) for words in told):
                    return finding(self.name, case, number, "a note is no text", [repr(told)])
                if error is not None and _own(error):
                    meaning = f"dpsql fails with {error.code}"
                    return finding(self.name, case, number, meaning, [error.words])
                if error is not None and ENGINE.search(error.words):
                    words = "an error is in the words of the engine"
                    return finding(self.name, case, number, words, [error.words])
        return None


def _crashed(failure: Failure) -> bool:
    """Whether opening failed by itself. Refusals of policies have classes of their own, and ledgers codes."""
    return failure.code in (DEFECT, "DP901") or hasattr(builtins, failure.code)


def _own(error: Failure) -> bool:
    return error.code == DEFECT or REFUSED.fullmatch(error.code) is None
