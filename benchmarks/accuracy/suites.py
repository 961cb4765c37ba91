"""A suite: a policy, questions about its data, and the digests of data and true answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
NAMES = ("known", "other")
Kind = Literal["count", "sum", "avg", "median", "distinct", "found"]


@dataclass(frozen=True)
class Question:
    """One aggregate by some keys.

    ``unit`` is the column of the unit's key. ``range`` is what the policy says of ``value``. The keys of
    kind ``found`` are private: it asks how many of them an answer has.
    """

    id: str
    about: str
    kind: Kind
    tables: str
    unit: str
    keys: tuple[str, ...]
    value: str | None = None
    range: tuple[float, float] | None = None
    where: str | None = None

    @property
    def sql(self) -> str:
        """The statement that an analyst writes."""
        asked = {
            "count": "COUNT(*)", "sum": f"SUM({self.value})", "avg": f"AVG({self.value})",
            "median": f"MEDIAN({self.value})", "distinct": f"COUNT(DISTINCT {self.unit})",
            "found": f"COUNT(DISTINCT {self.unit})",
        }  # fmt: skip
        grouped = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        where = f" WHERE {self.where}" if self.where else ""
        shown = ", ".join([*self.keys, f"{asked[self.kind]} AS v"])
        return f"SELECT {shown} FROM {self.tables}{where}{grouped}"

    @property
    def rows(self) -> str:
        """The rows that count in it: unit, value and keys."""
        conditions = [f"({self.where})"] if self.where else []
        conditions += [f"{self.value} IS NOT NULL"] if self.value else []
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        shown = [f"{self.unit} AS u", f"({self.value or 1})::DOUBLE AS x", *self.keys]
        return f"SELECT {', '.join(shown)} FROM {self.tables}{where}"


@dataclass(frozen=True)
class Suite:
    """A policy without source, accounts and roles, and questions.

    ``data`` has a digest of each table, ``truth`` one of each question's true answers.
    """

    name: str
    about: str
    policy: str
    questions: tuple[Question, ...]
    data: Mapping[str, str]
    truth: Mapping[str, Mapping[str, Any]]

    @property
    def digest(self) -> str:
        """Of everything that an answer depends on but for the code."""
        told = [self.policy, [[q.id, q.sql, q.range] for q in self.questions], dict(self.data)]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def path(name: str) -> Path:
    """Where a suite is written down."""
    return HERE / f"{name}.json"


def load(name: str) -> Suite:
    """The suite as it is written down."""
    return parse(name, path(name).read_text())


def parse(name: str, text: str) -> Suite:
    """The suite that a text of JSON describes."""
    told = json.loads(text)
    questions = [
        Question(
            **{**q, "keys": tuple(q["keys"]), "range": tuple(q["range"]) if "range" in q else None}
        )
        for q in told["questions"]
    ]
    return Suite(
        name, told["about"], "\n".join(told["policy"]) + "\n", tuple(questions),
        told.get("data", {}), told.get("truth", {}),
    )  # fmt: skip


def freeze(name: str, data: Mapping[str, str], truth: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a suite with the digests of its data and its true answers, a line each."""
    told = json.loads(path(name).read_text())
    parts = [
        f' "about": {json.dumps(told["about"])}',
        _listed("policy", [json.dumps(line) for line in told["policy"]], "[]"),
        _listed("questions", [json.dumps(q) for q in told["questions"]], "[]"),
        _listed("data", [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items()], "{}"),
        _listed("truth", [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in truth.items()], "{}"),
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _listed(name: str, lines: Sequence[str], brackets: str) -> str:
    return f' "{name}": {brackets[0]}\n' + ",\n".join(f"  {x}" for x in lines) + f"\n {brackets[1]}"
