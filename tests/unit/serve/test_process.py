"""What the process of `dpsql serve` is set to, and how it is ended."""

from __future__ import annotations

import builtins
import faulthandler
import os
import resource
import sys
from typing import Any

import pytest

from dpsql.serve import process


def test_threads_have_their_turn_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop waits for each thread that plans as long as it may keep the interpreter."""
    told: list[float] = []
    monkeypatch.setattr(sys, "setswitchinterval", told.append)
    process.share_time()
    assert told == [process.SWITCH_SECONDS]
    assert process.SWITCH_SECONDS <= 0.001, "a fifth of what Python begins with"


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "allowed"),
    [
        (256, 4_096, 3_000, 3_000), (256, 1_000, 3_000, 1_000), (4_096, 4_096, 3_000, 3_000),
        (256, resource.RLIM_INFINITY, 3_000, 3_000),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 3_000, 3_000),
    ],
)  # fmt: skip
def test_as_many_files_as_the_system_permits(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: int, allowed: int
) -> None:
    said: list[Any] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: said.append(limits))
    assert process.allow_files(wanted) == allowed
    raised = soft != resource.RLIM_INFINITY and soft < allowed
    assert said == ([(allowed, hard)] if raised else [])


def test_a_limit_that_cannot_be_raised_is_borne(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4_096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert process.allow_files(3_000) == 256
    load = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "resource":
            raise ImportError
        return load(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert process.allow_files(3_000) == 3_000


def test_the_end_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(
        faulthandler, "dump_traceback_later", lambda *a, **k: said.append((a, k["exit"]))
    )
    process.end_within(9.5)
    monkeypatch.setattr(os, "_exit", said.append)
    monkeypatch.setattr("logging.shutdown", lambda: said.append("logged"))
    process.leave(0)
    assert said == [((9.5,), True), "logged", 0]
