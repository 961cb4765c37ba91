"""Threads that share commits."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing

import pytest

from dpsql.diagnostics.refusal import LedgerFailed
from dpsql.ledger import schema
from dpsql.ledger import writer as module
from dpsql.ledger.writer import SqliteWriter as Writer


class Crowd:
    """Runs tasks in threads which all wait behind one that is slow."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.results, self.threads = writer, {}, []

    def run(self, slow, *tasks):
        begun, go = threading.Event(), threading.Event()

        def first(db):
            begun.set()
            go.wait(5)
            return slow(db)

        self._thread("first", first)
        assert begun.wait(5)
        for i, task in enumerate(tasks):
            self._thread(i, task)
        while len(self.writer._queue) < len(tasks):
            time.sleep(0.001)
        go.set()
        for thread in self.threads:
            thread.join()
        return [self.results[key] for key in ("first", *range(len(tasks)))]

    def _thread(self, key, task):
        def call():
            try:
                self.results[key] = self.writer.run(task)
            except BaseException as error:  # noqa: BLE001
                self.results[key] = error

        self.threads.append(threading.Thread(target=call))
        self.threads[-1].start()


def insert(number):
    def task(db):
        db.execute("INSERT INTO t VALUES (?)", (number,))
        return number

    return task


@pytest.fixture
def statements():
    return []


@pytest.fixture
def writer(tmp_path, statements):
    path = tmp_path / "file"
    schema.create(path)
    connection = schema.connect_file(path, 1.0)
    connection.execute("CREATE TABLE t (n INTEGER UNIQUE)")
    connection.set_trace_callback(statements.append)
    writer = Writer(connection, path, 1.0, None)
    yield writer
    writer.close()


def numbers(tmp_path):
    with closing(sqlite3.connect(tmp_path / "file")) as db:
        return [n for (n,) in db.execute("SELECT n FROM t ORDER BY n")]


def test_those_who_wait_share_one_commit(writer, statements, tmp_path):
    assert Crowd(writer).run(insert(0), *map(insert, range(1, 6))) == [0, 1, 2, 3, 4, 5]
    assert statements.count("COMMIT") == 2
    assert numbers(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_no_transaction_is_shared_by_too_many(writer, statements, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARED", 2)
    assert Crowd(writer).run(insert(0), *map(insert, range(1, 6))) == [0, 1, 2, 3, 4, 5]
    assert statements.count("COMMIT") == 4


def test_work_that_fails_is_undone_alone(writer, tmp_path):
    def fails(db):
        insert(9)(db)
        raise LookupError("no")

    first, one, failed, two = Crowd(writer).run(insert(0), insert(1), fails, insert(2))
    assert (first, one, two) == (0, 1, 2)
    assert isinstance(failed, LookupError)
    assert numbers(tmp_path) == [0, 1, 2]


def test_when_the_store_fails_everyone_in_the_transaction_is_told(writer, tmp_path):
    first, *others = Crowd(writer).run(insert(0), insert(1), insert(1), insert(2))
    assert first == 0
    assert all(isinstance(error, LedgerFailed) for error in others)
    assert numbers(tmp_path) == [0]
    assert writer.run(insert(5)) == 5


def test_when_the_thread_that_writes_is_stopped_nobody_waits_for_ever(writer, tmp_path):
    def stopped(db):
        raise KeyboardInterrupt

    first, *others = Crowd(writer).run(insert(0), insert(1), stopped, insert(2))
    assert first == 0
    assert sum(isinstance(error, KeyboardInterrupt) for error in others) == 1
    assert all(isinstance(e, LedgerFailed | KeyboardInterrupt) for e in others)
    assert numbers(tmp_path) == [0]
    assert writer.run(insert(5)) == 5


def test_after_the_end_nothing_is_written(writer):
    writer.close()
    with pytest.raises(LedgerFailed, match="closed"):
        writer.run(insert(1))
    with pytest.raises(LedgerFailed, match="closed"):
        writer.probe(1.0)


def test_closing_does_not_wait_for_a_transaction_that_hangs(writer, monkeypatch, tmp_path):
    """Whoever writes lets go of the connection itself."""
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    begun, go = threading.Event(), threading.Event()

    def slow(db):
        begun.set()
        go.wait(5)
        return insert(7)(db)

    thread = threading.Thread(target=lambda: writer.run(slow))
    thread.start()
    assert begun.wait(5)
    writer.close()
    assert thread.is_alive()
    with pytest.raises(LedgerFailed, match="did not answer in time: not within"):
        writer.probe(0.01)
    go.set()
    thread.join()
    assert numbers(tmp_path) == [7]
    with pytest.raises(sqlite3.ProgrammingError):
        writer.connection.execute("SELECT 1")
