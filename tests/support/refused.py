"""Every statement of the repository that is refused, with what it is refused under.

Corpora: fixtures/refusals, fixtures/hostile, the near misses and the productions of the grammar, the queries
of benchmarks/coverage that are recorded as refused, and the statements in the code of unit tests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import sqlglot
from datadriven import read
from samples import TABLES, codes, simplest

from benchmarks.coverage.corpus import CORPORA
from support.hostile import HOSTILE

ROOT = Path(__file__).parents[2]
UNIT_TESTS = ("unit/checks", "unit/sql")
"""Folders whose statements are asked of the shop, unless they are about another policy or a part of a text."""
_STATEMENT = re.compile(r"\s*(SELECT|WITH)\s", re.IGNORECASE)


@dataclass(frozen=True)
class Asked:
    """A statement, where it stands, and under which policy, request and settings it is asked."""

    corpus: str
    place: str
    text: str
    dialect: str = "postgres"
    policy: str = "policies/shop.yaml"
    request: str = "analyst"
    parameters: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.corpus}: {self.place}"


@cache
def asked() -> tuple[Asked, ...]:
    """All statements that may be refused, each once."""
    seen: dict[tuple[str, str, str], Asked] = {}
    for source in (_golden, _hostile, _near_misses, _grammar, _coverage, _unit_tests):
        for one in source():
            seen.setdefault((one.text, one.policy, one.dialect), one)
    return tuple(seen.values())


def _golden() -> Iterator[Asked]:
    for path in sorted((ROOT / "fixtures" / "refusals").glob("*.test")):
        for case in read(path):
            given = case.options
            yield Asked(
                "refusals", f"{path.stem}:{case.line}", case.text,
                given.get("dialect", "postgres"), given.get("policy", "policies/shop.yaml"),
                given.get("request", "analyst"),
                tuple(int(p) for p in given.get("parameters", "").split(",") if p),
            )  # fmt: skip


def _hostile() -> Iterator[Asked]:
    for one in HOSTILE:
        yield Asked("hostile", one.name, one.sql)


def _near_misses() -> Iterator[Asked]:
    for table in TABLES:
        for rule, text in simplest("near_misses.lark", table, "near_miss"):
            if codes(rule):
                yield Asked("near misses", f"{rule.alias} of {table}", text)


def _grammar() -> Iterator[Asked]:
    for table in TABLES:
        for rule, text in simplest("dialect.lark", table):
            yield Asked("grammar", f"{rule.origin.name} of {table}", text)


def _coverage() -> Iterator[Asked]:
    """Those of the recorded outcomes: each corpus has a policy of its own."""
    recorded = (ROOT / "fixtures" / "coverage" / "outcomes.txt").read_text().splitlines()
    refused = {tuple(line.split(" | ")[:2]) for line in recorded if " | refused " in line}
    for corpus in CORPORA:
        policy = f"../benchmarks/coverage/{corpus.name}/policy.yaml"
        for query in corpus.queries:
            if (corpus.name, query.name) in refused:
                yield Asked("coverage", f"{corpus.name} {query.name}", query.sql, policy=policy)


def _unit_tests() -> Iterator[Asked]:
    for folder in UNIT_TESTS:
        for path in sorted((ROOT / "tests" / folder).rglob("test_*.py")):
            tree = ast.parse(path.read_text())
            joined = [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr | ast.BinOp)]
            parts = {id(part) for node in joined for part in ast.walk(node)}
            for node in ast.walk(tree):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and id(node) not in parts and _whole(text):
                    yield Asked("unit tests", f"{path.stem}:{node.lineno}", text)


def _whole(text: str) -> bool:
    """Whether a text is a statement by itself, about tables of the shop."""
    if not _STATEMENT.match(text) or "{" in text or "%s" in text:
        return False
    try:
        tree = sqlglot.parse_one(text, read="postgres")
    except sqlglot.errors.SqlglotError:
        return False
    own = {cte.alias for cte in tree.find_all(sqlglot.exp.CTE)}
    named = {table.name for table in tree.find_all(sqlglot.exp.Table)} - own
    return named <= {"customers", "orders", "visits", "countries"} and "$" not in text
