"""Ask a suite's questions through the Python interface of one copy of dpsql: a process of its own.

``runs`` starts it with that copy first on the path, and gives it a job in JSON on standard input. Each
round is a new policy version with a new ledger, so that no bound, key or answer of another round is
known. What a question is told becomes a line of JSON in the job's file at once.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import dpsql
from benchmarks.accuracy.cells import written


def told(cursor: dpsql.Cursor, question: str, sql: str) -> dict[str, Any]:
    """One answer: key, value and both ends of the interval of each row."""
    try:
        cursor.execute(f"SET dpsql.session = '{question}'")
        cursor.execute(sql)
    except dpsql.Error as problem:
        return {"refused": str(problem).splitlines()[0]}
    rows = cursor.fetchall()
    ends = cursor.intervals.get("v") or [(None, None)] * len(rows)
    shown = [
        [written(row[:-1]), None if row[-1] is None else float(row[-1]), *(pair or (None, None))]
        for row, pair in zip(rows, ends, strict=True)
    ]
    return {"rows": shown, "cost": cursor.cost, "notes": list(getattr(cursor, "notes", ()))}


def ask(job: Mapping[str, Any]) -> None:
    """All rounds; a question takes part in those that it has not been asked in."""
    with Path(job["file"]).open("a") as file:
        for round_ in range(job["draws"]):
            due = {
                q: sql for q, sql in job["questions"].items() if job["asked"].get(q, 0) <= round_
            }
            if not due:
                continue
            place = Path(mkdtemp(prefix="accuracy-"))
            try:
                policy = place / "policy.yaml"
                policy.write_text(f'data_version: "{place.name}"\n{job["policy"]}')
                with dpsql.connect(policy) as connection:
                    cursor = connection.cursor()
                    for setting in ("fresh = on", *job["settings"]):
                        cursor.execute(f"SET dpsql.{setting}")
                    for question, sql in due.items():
                        line = {"id": question, **told(cursor, question, sql)}
                        file.write(json.dumps(line) + "\n")
                        file.flush()
            finally:
                shutil.rmtree(place)


def main() -> int:
    """Status 3, and a line on standard error, where this copy cannot open the policy."""
    job = json.load(sys.stdin)
    assert Path(dpsql.__file__).is_relative_to(job["tree"]), "another dpsql is first on the path"
    try:
        ask(job)
    except dpsql.Error as problem:
        print(str(problem).splitlines()[0], file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
