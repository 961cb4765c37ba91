"""Prepared copies are read only while the database is the one that they were made of, as the README says.

What is verified of a database says nothing about copies of another one.
"""

from __future__ import annotations

from tests.adversary.model import Case, Finding, finding

COPIES = "dpsql_prepared"
"""What statements and plans call the copies."""


class Replaced:
    """Looks for copies of an earlier database in what is asked about the one that took its place."""

    name = "replaced"

    def judge(self, case: Case) -> Finding | None:
        """The first statement or plan that reads copies of rows that are gone."""
        for run in (case.left, case.right):
            if not run.world.earlier or run.world.earlier == run.world.rows:
                continue
            for number, transcript in enumerate(run.transcripts):
                plans = [transcript.text] if transcript.step.act == "explain" else []
                for text in (*plans, *(one.statement for one in transcript.measured)):
                    if COPIES in text:
                        meaning = "copies of another database are read"
                        return finding(self.name, case, number, meaning, [text])
        return None
