"""The operator's log: for its owner alone, bounded, and nobody waits for it or stops because of it."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import stat
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpsql.diagnostics.operation import events, file, log, repeats
from dpsql.diagnostics.operation.defects import defect, record_stray
from dpsql.diagnostics.operation.events import (
    Disconnected,
    Event,
    LoginFailed,
    PolicyActive,
    record,
)
from dpsql.diagnostics.operation.file import LogFile, Unsafe
from dpsql.diagnostics.operation.log import LAYOUTS, OperatorLog, keep_log


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoints of other tests in this process have events, too: here is what this thread records."""
    mine, real = threading.get_ident(), OperatorLog.emit

    def emit(made: OperatorLog, found: logging.LogRecord) -> None:
        if found.thread == mine:
            real(made, found)

    monkeypatch.setattr(OperatorLog, "emit", emit)


def _failed(login: str = "eve") -> LoginFailed:
    return LoginFailed(login=login, address="192.0.2.7", face="http")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "operator.log"


@pytest.fixture(autouse=True)
def _open_mask() -> object:
    """As on a machine where new files can be read by all."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_nobody_else_reads_a_log_or_what_was_rotated(place: Path) -> None:
    made = LogFile(place, most_bytes=100, most_files=3)
    for n in range(20):
        made.write(f"{n} {'x' * 40}\n")
    made.close()
    files = sorted(place.parent.iterdir())
    assert [p.name for p in files] == ["operator.log", "operator.log.1", "operator.log.2"]
    assert {_mode(p) for p in files} == {0o600}
    assert [p.read_text().split()[0] for p in files] == ["18", "16", "14"]
    assert all(p.stat().st_size <= 100 for p in files)


def test_the_mode_is_there_before_the_first_byte(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write_text("old\n")
    place.chmod(0o644)
    real, seen = os.write, list[int]()
    monkeypatch.setattr(os, "write", lambda h, d: seen.append(_mode(place)) or real(h, d))
    made = LogFile(place)
    made.write("new\n")
    made.close()
    assert seen == [0o600]
    assert place.read_text() == "old\nnew\n"


def test_a_log_that_others_can_read_would_be_noticed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "MODE", 0o644)
    with pytest.raises(AssertionError):
        test_nobody_else_reads_a_log_or_what_was_rotated(place)


def test_links_other_kinds_of_files_and_files_of_others_are_not_taken(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.parent / "elsewhere").write_text("")
    place.symlink_to(place.parent / "elsewhere")
    with pytest.raises(Unsafe, match="is a link"):
        LogFile(place).open()
    place.unlink()
    os.mkfifo(place)
    reader = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(Unsafe, match="no regular file"):
        LogFile(place).open()
    os.close(reader)
    place.unlink()
    place.write_text("")
    monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    with pytest.raises(Unsafe, match="another user"):
        LogFile(place).open()


def test_a_log_that_was_moved_away_is_made_anew(place: Path) -> None:
    made = LogFile(place)
    made.write("one\n")
    place.rename(place.with_name("kept"))
    made.write("two\n")
    place.unlink()
    made.write("three\n")
    made.close()
    assert (place.with_name("kept").read_text(), place.read_text()) == ("one\n", "three\n")


def test_one_file_only_begins_anew(place: Path) -> None:
    made = LogFile(place, most_bytes=10, most_files=1)
    made.write("12345678\n")
    made.write("next\n")
    made.close()
    assert [p.read_text() for p in place.parent.iterdir()] == ["next\n"]


@dataclass(frozen=True, slots=True)
class Unlisted(Event):
    """An event that is in no list."""

    value: str


def test_events_are_written_and_nothing_else(place: Path) -> None:
    with keep_log(OperatorLog(LogFile(place), LAYOUTS["json"])):
        logging.getLogger("dpsql.operator").error("a text of somebody %s", "zanzibar")
        record(Unlisted("zanzibar"))
        record(PolicyActive("shop", "abc"))
    (line,) = place.read_text().splitlines()
    told = json.loads(line)
    assert (told["event"], told["database"], told["version"]) == ("policy_active", "shop", "abc")
    record(PolicyActive("shop", "nobody listens"))
    assert len(place.read_text().splitlines()) == 1


class Full:
    """A disk that is full until it is not."""

    def __init__(self) -> None:
        self.full, self.lines, self.tried = True, list[str](), threading.Event()

    def write(self, line: str) -> None:
        self.tried.set()
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.lines.append(line)

    def close(self) -> None:
        pass


def _until(condition: object) -> None:
    end = time.monotonic() + 10
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_full_disk_is_told_once_and_lost_events_are_counted() -> None:
    sink, said = Full(), list[str]()
    made = OperatorLog(sink, complain=said.append)
    with keep_log(made):
        for n in range(3):
            record(PolicyActive("shop", str(n)))
        _until(lambda: made._lost == 3)
        sink.full = False
        record(PolicyActive("shop", "after"))
    assert said == [
        "the operator's log cannot be written: No space left on device; dpsql goes on without it"
    ]
    assert [line.split()[2:4] for line in sink.lines] == [
        ["log_resumed", "lost=3"], ["policy_active", 'database="shop"'],
    ]  # fmt: skip


def test_no_thread_and_no_standard_error_stop_nobody(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    made = OperatorLog(LogFile(place.parent / "nowhere" / "log"))
    with keep_log(made):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            record(PolicyActive("shop", "1"))
        assert made._lost == 1
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", None)
            record(PolicyActive("shop", "2"))
            _until(lambda: made._lost == 2)
        (place.parent / "nowhere").mkdir()
        record(PolicyActive("shop", "3"))
    first, second = (place.parent / "nowhere" / "log").read_text().splitlines()
    assert first.endswith("log_resumed lost=2")
    assert 'version="3"' in second


def test_a_line_that_was_cut_by_a_full_disk_ends_before_the_next(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, real = LogFile(place), os.write

    def half(handle: int, data: bytes) -> int:
        monkeypatch.setattr(
            os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full"))
        )
        return real(handle, data[:4])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="full"):
        made.write("one line\n")
    monkeypatch.setattr(os, "write", real)
    made.write("another\n")
    made.close()
    assert place.read_text() == "one \nanother\n"


class Hanging:
    """A disk that does not answer."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def write(self, line: str) -> None:
        self.go.wait(20)

    def close(self) -> None:
        pass


def test_nobody_waits_for_a_disk_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "WAITING", 50)
    monkeypatch.setattr(log, "PATIENCE", 0.05)
    sink = Hanging()
    made, start = OperatorLog(sink), time.monotonic()
    with keep_log(made):
        for n in range(500):
            record(PolicyActive("shop", str(n)))
        assert made._lost >= 449
    assert time.monotonic() - start < 5
    sink.go.set()


def test_a_flood_is_counted_and_others_are_still_written(place: Path) -> None:
    with keep_log(OperatorLog(LogFile(place), clock=lambda: 0.0)):
        for n in range(5_000):
            record(_failed(f"eve{n}"))
        record(Disconnected(7, "ann"))
        record(PolicyActive("shop", "abc"))
    lines = [line.split(maxsplit=2)[2] for line in place.read_text().splitlines()]
    assert len(lines) == repeats.AT_ONCE + 3
    assert lines[repeats.AT_ONCE].startswith("disconnected")
    assert lines[-2].startswith("policy_active")
    assert (
        lines[-1]
        == f'repeated of="login_failed" subject="" count={5_000 - repeats.AT_ONCE} seconds=0'
    )


def test_a_flood_that_is_not_counted_would_be_noticed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats.Repeats, "admit", lambda *_: True)
    with pytest.raises(AssertionError):
        test_a_flood_is_counted_and_others_are_still_written(place)


def test_buckets_fill_with_time_and_are_few() -> None:
    found = repeats.Repeats()
    assert sum(found.admit(Disconnected(1, "ann"), 0.0) for _ in range(1_000)) == repeats.AT_ONCE
    assert (
        sum(found.admit(Disconnected(1, "ann"), 60.0) for _ in range(1_000)) == repeats.EACH_MINUTE
    )
    assert found.admit(Disconnected(1, "bob"), 60.0)
    (told,) = found.take_summaries(61.0)
    assert (told.of, told.subject, told.count) == ("disconnected", "ann", 1_780)
    assert not list(found.take_summaries(62.0))
    for n in range(3 * repeats.MOST_SUBJECTS):
        found.admit(Disconnected(1, f"{n}"), 62.0)
    assert len(found._buckets) <= repeats.MOST_SUBJECTS + 1
    assert found.admit(Disconnected(1, "later"), 5_000.0)
    assert len(found._buckets) <= 10


def test_what_an_error_says_itself_is_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    """It may quote rows, and so may what it came of."""

    incident = ""
    with caplog.at_level(logging.INFO):
        try:
            try:
                raise KeyError("zanzibar7391")
            except KeyError as error:
                raise ValueError("zanzibar7391") from error
        except ValueError as error:
            incident = defect(error)
    (line,) = (message for message in caplog.messages if incident in message)
    assert line.startswith(f'defect incident="{incident}" kind="ValueError" where="test_operator_')
    assert "zanzibar" not in caplog.text


def test_an_error_that_is_kept_as_it_is_would_be_noticed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        events.log,
        "log",
        lambda level, text, event, extra: logging.getLogger("x").exception("%s", event),
    )
    with pytest.raises(AssertionError):
        test_what_an_error_says_itself_is_not_kept(caplog)


def test_errors_that_nobody_catches_are_recorded_and_not_printed(
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Falling:
        def __del__(self) -> None:
            raise ValueError("zanzibar")

    def fail() -> None:
        raise KeyError("zanzibar")

    async def stray() -> None:
        loop = asyncio.get_running_loop()
        record_stray(loop)
        loop.call_soon(fail)
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        Falling()
        await asyncio.sleep(0.01)

    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    with caplog.at_level(logging.INFO):
        asyncio.run(stray())
    assert [line.split()[2] for line in caplog.messages if line.startswith("defect ")] == [
        'kind="KeyError"', 'kind="ValueError"', 'kind="KeyError"',
    ]  # fmt: skip
    assert "zanzibar" not in caplog.text + "".join(capsys.readouterr())
