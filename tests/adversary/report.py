"""A finding as text: a policy, a database and statements that anybody can try."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import groupby

from tests.adversary.model import Finding
from tests.adversary.seeds import Seed

RELATIONS = {
    "without": "the second database lacks all rows of",
    "order": "the second database has the same rows in another order",
    "strays": "the second database lacks rows that belong to nobody",
    "same": "both databases are the same",
}


def report(finding: Finding, seed: Seed) -> str:
    """What is wrong, and how it is seen."""
    world = seed.world
    lines = [
        f"== {finding.judge}: {finding.meaning}",
        f"-- seen through {finding.face}; {RELATIONS[seed.relation]} {', '.join(seed.owners)}",
        "-- policy.yaml", world.policy.rstrip(), "-- data.duckdb", *(f"{s};" for s in world.ddl),
    ]  # fmt: skip
    for (table, owner), rows in groupby(world.rows, key=lambda row: (row.table, row.owner)):
        values = ", ".join(f"({', '.join(row.cells)})" for row in rows)
        lines.append(f"INSERT INTO {table} VALUES {values};  -- {owner or 'nobody'}")
    lines += [f"{statement};" for statement in world.views]
    lines += ["-- dpsql prepare"] if world.prepared else []
    if world.earlier:
        lines.append(
            "-- before, a database of the same size and times was prepared; it had these rows:"
        )
        lines += [
            f"-- {r.table}: ({', '.join(r.cells)})  -- {r.owner or 'nobody'}" for r in world.earlier
        ]
    lines += [f"-- another reading of {view} finds {found}" for view, found in world.readings]
    lines.append("-- asked")
    for number, step in enumerate(seed.steps):
        mark = "  <-- here" if number == finding.step else ""
        parameters = f"  -- {list(step.parameters)}" if step.parameters else ""
        lines.append(f"{step.act}: {step.text}{parameters}{mark}")
    lines.append("-- seen")
    return "\n".join([*lines, *finding.details]) + "\n"


@dataclass(frozen=True)
class Voice:
    """How findings are told: as reports, or as lines of JSON that come at once."""

    lines: bool = False
    first: bool = False
    """Whether the first finding is enough, which is then not made smaller."""

    def say(self, text: str) -> None:
        """What goes on, for whoever watches."""
        sys.stderr.write(f"{text[:300]}\n")

    def found(self, finding: Finding) -> None:
        """A finding as it was made."""
        asked = finding.steps[finding.step].text if finding.steps else ""
        said = {
            "finding": finding.meaning, "judge": finding.judge, "face": finding.face,
            "world": finding.world.name, "relation": finding.relation, "asked": asked[:400],
            "details": [detail[:400] for detail in finding.details[:3]],
        }  # fmt: skip
        if self.lines:
            self._write(json.dumps(said))

    def report(self, text: str) -> None:
        """A finding made small, as text."""
        if not self.lines:
            self._write(text)

    def _write(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
