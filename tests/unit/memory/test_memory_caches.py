"""What a process remembers is counted in the pool, or is one of the few things that are listed here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.services import real_service

from dpsql.memory.cache import Cache
from dpsql.memory.pool import POOL, USUAL, Use

PACKAGE = Path(__file__).parents[3] / "dpsql"
_KEPT = re.compile(r"lru_cache|OrderedDict|^@cache\b|functools\.cache", re.MULTILINE)
UNCOUNTED = {
    "memory/cache.py": "the counted cache itself",
    "sql/parser.py": "a class of each dialect that there is",
    "sql/bind/views.py": "views of the owner's policy",
    "serve/catalog/catalog.py": "what PostgreSQL's own catalog has",
    "engines/duckdb/syntax_tree.py": "names that the engine has",
    "engines/catalog/worker.py": "a few databases of a process with a limit of its own",
    "engines/catalog/process.py": "the same, as that process is told of them",
    "engines/duckdb/engine.py": "64 short statements of each thread",
    "engines/facts_file.py": "16 digests of databases",
    "engines/duckdb/guard/casts.py": "facts of a few bytes",
    "engines/duckdb/guard/facts.py": "facts of a few bytes",
    "selftest/power.py": "numbers of an audit, which nobody serves",
    "serve/lanes.py": "work that waits, so much of each login",
    "serve/throttle.py": "digests of names and addresses, so many of them",
    "reuse/consistent.py": "laws of noise: numbers that the policy bounds",
    "ledger/filter.py": "sums of numbers that the policy bounds",
    "privacy": "numbers of mechanisms, of bounded epsilon",
}
"""Modules that remember something without counting it, and why that stays small."""


def _modules() -> set[str]:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if _KEPT.search(path.read_text(encoding="utf-8")):
            found.add("privacy" if name.startswith("privacy/") else name)
    return found


def test_what_is_remembered_is_counted_or_listed() -> None:
    assert _modules() == set(UNCOUNTED)


SERVED = (
    "SELECT country, COUNT(*) AS n, AVG(age) AS a FROM customers GROUP BY country",
    "SELECT channel, SUM(amount) AS s FROM orders GROUP BY channel HAVING COUNT(*) > 3 ORDER BY s",
)
USES = (Use.CACHED_PLANS, Use.CACHED_RELEASES, Use.CACHED_CHECKS, Use.CACHED_STATEMENTS)


def _served() -> dict[Use, int]:
    """Bytes that questions add to each cache."""
    before = POOL.bytes_by_use()
    here = real_service("shop", "shop", lambda text: text.replace("epsilon: 20,", "epsilon: 1e6,"))
    try:
        session = here.session("analyst")
        for sql in (*SERVED, *SERVED):
            session.execute(sql)
        after = POOL.bytes_by_use()
    finally:
        here.close()
    return {use: after[use.name.lower()] - before[use.name.lower()] for use in USES}


def test_questions_are_counted_in_every_cache() -> None:
    POOL.limit(0)
    POOL.limit(USUAL)
    grown = _served()
    assert all(grown[use] > 1_000 for use in USES), grown


def test_caches_that_do_not_count_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    POOL.limit(0)
    POOL.limit(USUAL)
    monkeypatch.setattr(Cache, "_count", lambda *_: None)
    assert not any(_served().values())
    monkeypatch.undo()
    for cache in POOL._caches:  # what was remembered meanwhile is counted again
        cache.bytes = sum(entry.size for entry in cache._entries.values())  # type: ignore[attr-defined]
    POOL.cached = sum(cache.bytes for cache in POOL._caches)


def test_without_room_everything_is_answered_and_nothing_is_remembered() -> None:
    POOL.limit(0)
    try:
        assert not any(_served().values())
    finally:
        POOL.limit(USUAL)
