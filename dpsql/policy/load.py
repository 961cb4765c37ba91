"""Loads a policy file as a ``Policy``, or reports all its problems."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from dpsql.diagnostics.quote import place
from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy import keys
from dpsql.policy.accounts import accounts_of, table_accounts
from dpsql.policy.books import server_of, time_zone_of
from dpsql.policy.document import Entries, compose, text_of
from dpsql.policy.listing import Listing, listing_of
from dpsql.policy.model import (
    Bounds,
    DataSource,
    Front,
    Latency,
    LedgerKeeping,
    Limits,
    Policy,
    View,
)
from dpsql.policy.problems import Place, Problems
from dpsql.policy.reader import Reader, Spoilt
from dpsql.policy.section import Section
from dpsql.policy.shares import shares
from dpsql.policy.tables import build
from dpsql.policy.version import answers_key, version_of


def load(path: Path | str) -> Policy:
    """Read and check a policy file; raises a ``PolicyError`` with all problems and their places."""
    name, file = place(path), Path(path).absolute()
    return parse(text_of(file, name), file, name)


def parse(text: str, file: Path, name: str) -> Policy:
    """The policy in ``text``, as if read from ``file``; messages name it ``name``."""
    problems = Problems(name)
    tree = compose(text, name, problems)
    if isinstance(tree, Entries) and not any(
        keys.POLICY.key(word.text) for word, _ in tree.entries
    ):
        known = ", ".join(key.name for key in keys.POLICY.keys if key.required)
        what = f"this is not a policy: it has none of {known}; `dpsql init` drafts one"
        raise PolicyError(f"{problems.told(tree.place)}: {what}")
    try:
        root = Reader(problems).record(keys.POLICY, tree, Place(), ())
    except Spoilt:
        raise PolicyError(*problems.lines) from None
    policy = _policy(root, file, problems)
    if len(problems):
        raise PolicyError(*problems.lines)
    policy = replace(policy, warnings=problems.warnings)
    return replace(policy, version=version_of(policy), answers_key=answers_key(policy))


def _policy(root: Section, file: Path, problems: Problems) -> Policy:
    listing = listing_of(root, problems)
    units, tables = build(root, listing)
    dataset, roles = accounts_of(root, listing)
    for name, account in table_accounts(root, dataset, listing).items():
        tables[name] = replace(tables[name], account=account)
    source = root.sub("source", "source")
    ledger = root.sub("ledger", "ledger")
    limits = _limits(root.sub("limits", "limits"), root)
    _check_memory(root.sub("endpoint", "endpoint"), limits, problems)
    return Policy(
        path=file,
        source=DataSource(
            engine=source.get("engine", str) or "duckdb",
            path=_beside(file, source.get("path", str) or ""),
        ),
        data_version=root.get("data_version", str) or "",
        units=units,
        tables=tables,
        dataset=dataset,
        roles=roles,
        ledger=_ledger(ledger, file),
        version="",
        answers_key="",
        ledger_server=server_of(ledger, problems),
        ledger_keeping=_keeping(ledger, file, problems),
        time_zone=time_zone_of(root, problems),
        limits=limits,
        latency=_latency(root),
        front=_front(root, file),
        stale="refuse" if root.get("stale", str) == "refuse" else "warn",
        views={name: View(name, word.text) for name, word in (listing.views or {}).items()},
        places=_places(listing),
    )


def _keeping(ledger: Section, file: Path, problems: Problems) -> LedgerKeeping:
    text = ledger.get("head", str)
    head = None if text is None else _beside(file, text)
    if head == _ledger(ledger, file):
        problems.add(
            ledger.at("head"),
            "the ledger itself cannot be the head of the ledger; name another file",
        )
    return LedgerKeeping(must_exist=ledger.get("must_exist", bool) or False, head=head)


def _ledger(ledger: Section, file: Path) -> Path:
    return _beside(file, ledger.get("path", str) or f"{file.stem}.ledger.db")


def _places(listing: Listing) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    for name, table in listing.tables.items():
        found[name,] = listing.problems.told(table.place)
        for column, part in table.sections("columns").items():
            found[name, column] = listing.problems.told(part.place)
    for name, word in (listing.views or {}).items():
        found[name,] = listing.problems.told(word.place)
    return found


def _latency(root: Section) -> Latency | None:
    text = root.get("latency", str) or "off"
    found = re.fullmatch(r"(quantum|fixed)\((\d+)(ms|s)\)", text)
    if found is None or not int(found[2]):
        return None
    return Latency(int(found[2]) / (1000 if found[3] == "ms" else 1), found[1] == "fixed")


def _limits(section: Section, root: Section) -> Limits:
    usual, latency = Limits(), _latency(root)
    timeout: float = section.get("timeout_seconds", int) or usual.timeout_seconds
    if latency is not None and latency.fixed:
        timeout = min(timeout, latency.seconds)
    return Limits(
        max_cells=section.get("max_cells", int) or usual.max_cells,
        memory=section.get("memory", str) or usual.memory,
        threads=section.get("threads", int) or usual.threads,
        timeout_seconds=timeout,
        strict_timing=root.get("strict_timing", str) == "on",
    )


def _front(root: Section, file: Path) -> Front:
    return Front(
        users=_beside(file, root.get("users", str) or f"{file.stem}.users"),
        preview="empty" if root.get("preview", str) == "empty" else "refuse",
        cleartext=root.get("cleartext", bool) or False,
        bounds=_bounds(root.sub("endpoint", "endpoint")),
        database=root.get("database", str) or file.stem,
    )


def _bounds(section: Section) -> Bounds:
    usual = Bounds()
    return Bounds(
        connections=section.get("connections", int) or usual.connections,
        startup_seconds=section.get("startup_seconds", int) or usual.startup_seconds,
        send_seconds=section.get("send_seconds", int) or usual.send_seconds,
        idle_seconds=section.get("idle_seconds", int),
        message_bytes=section.get("message_bytes", int) or usual.message_bytes,
        memory=section.get("memory", str),
    )


def _check_memory(section: Section, limits: Limits, problems: Problems) -> None:
    try:
        shares(section.get("memory", str), limits.memory)
    except ValueError as error:
        problems.add(section.at("memory"), str(error))


def _beside(file: Path, path: str) -> Path:
    """``path`` relative to the folder of the policy file."""
    return Path(os.path.normpath(file.parent / path))
