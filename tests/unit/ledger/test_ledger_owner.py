"""Who made a hold, and whether they are still there."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest

from dpsql.ledger import owner

SOON, LATE = timedelta(seconds=1), timedelta(days=2)


@pytest.fixture
def mine():
    name = owner.enlist()
    yield name
    owner.retire(name)


def changed(name: str, **parts: str) -> str:
    fields = dict(
        zip(("boot", "namespace", "process", "started", "token"), name.split("/"), strict=True)
    )
    return "/".join((fields | parts).values())


def test_an_open_ledger_is_there_until_it_is_closed(mine):
    assert not owner.has_ended(mine, LATE)
    owner.retire(mine)
    assert owner.has_ended(mine, SOON)


def test_ledgers_of_one_process_are_told_apart(mine):
    other = owner.enlist()
    owner.retire(other)
    assert owner.has_ended(other, SOON)
    assert not owner.has_ended(mine, SOON)


def test_a_restart_of_the_machine_ends_every_process(mine):
    assert owner.has_ended(changed(mine, boot="earlier"), SOON)


def test_a_process_in_another_container_is_given_a_day(mine):
    elsewhere = changed(mine, namespace="pid:[1]")
    assert not owner.has_ended(elsewhere, SOON)
    assert owner.has_ended(elsewhere, LATE)


def test_a_name_that_is_none_belongs_to_nobody(mine):
    assert owner.has_ended("", SOON)
    assert owner.has_ended(changed(mine, process="x"), SOON)


def child():
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def test_another_process_is_there_until_it_ends(mine):
    with child() as process:
        theirs = changed(mine, process=str(process.pid), started=owner._start_time(process.pid))
        assert not owner.has_ended(theirs, LATE)
        assert owner.has_ended(changed(theirs, started="1"), SOON)  # the number was given out again
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert owner.has_ended(theirs, SOON)  # ended, though its parent has not looked yet
        process.wait()
        assert owner.has_ended(theirs, SOON)


def test_without_a_proc_file_system_the_number_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(owner, "PROC", tmp_path)
    name = owner.enlist()
    assert not owner.has_ended(name, LATE)
    with child() as process:
        theirs = changed(name, process=str(process.pid))
        assert not owner.has_ended(theirs, LATE)
        process.kill()
        process.wait()
        assert owner.has_ended(theirs, SOON)
    owner.retire(name)
    assert owner.has_ended(name, SOON)


def test_a_process_of_another_user_is_alive(monkeypatch):
    def forbidden(*_):
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbidden)
    assert owner._alive(1)
