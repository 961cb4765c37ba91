"""The process that answers catalog queries. It has what the parent sends it, and nothing else.

Its standard input is a socket to the parent. The process ends when the parent ends, because the
socket is closed then, whatever ended the parent.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import socket
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from dpsql.diagnostics.refusal import PolicyError
from dpsql.engines.catalog import limits
from dpsql.engines.catalog.content import CatalogFailed, Content
from dpsql.engines.catalog.database import CatalogDatabase, check_engine
from dpsql.engines.catalog.frames import Channel, Closed

MOST_CONTENTS = 2
"""The most catalogs of roles that a process keeps. Each takes about 15 MB."""
_LARGEST_ORDER = 1 << 30
_PART = 1 << 20
_LEFT = 4
"""A process is replaced if more than one part in so many of its growth stays taken."""


class RefusedByParent(Exception):
    """Raised for an effect that the parent does not carry out. The parent knows the reason."""


class _Parts(io.RawIOBase):
    """An Arrow stream that is sent to the parent in parts. At most one part is kept here."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._part = channel, bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(data)
        self._part += data
        if len(self._part) >= _PART:
            self.flush()
        return size

    def flush(self) -> None:
        if self._part:
            self._channel.send({"part": True}, self._part)
            self._part = bytearray()


class Worker:
    """Carries out one order after the other, and listens for interrupts meanwhile."""

    def __init__(self, channel: Channel, growth: int) -> None:
        """``growth`` is the memory that statements may take, in bytes."""
        self._channel, self._growth = channel, growth
        self._orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._databases: OrderedDict[int, CatalogDatabase] = OrderedDict()
        self._running: tuple[int, CatalogDatabase] | None = None
        self._first = 0
        self._gives_way = False
        """Whether the priority is lowered. It is not for a start, since clients wait for that."""

    def serve(self, end: Callable[[int], object] = os._exit) -> None:
        """Serve until the parent is gone."""
        threading.Thread(target=self._listen, args=(end,), name="listen", daemon=True).start()
        try:
            check_engine()
        except PolicyError as error:
            self._channel.send({"broken": str(error)})
            return
        self._limit_memory()
        self._channel.send({"ready": os.getpid()})
        while (order := self._orders.get())["do"] != "end":
            self._carry_out(order)

    def stop(self, process: int, *, ends: bool) -> bool:
        """An effect of the statement that runs, carried out by the parent."""
        return bool(self._ask({"effect": "stop", "process": process, "ends": ends}))

    def set(self, name: str, value: str, *, local: bool) -> str:
        """An effect too. The parent refuses long texts, so they are cut before they are sent."""
        name, value = name[:_LONGEST_WORDS], value[:_LONGEST_SETTING]
        return str(self._ask({"effect": "set", "name": name, "value": value, "local": local}))

    def _ask(self, effect: dict[str, Any]) -> Any:
        self._channel.send(effect)
        reply = self._replies.get()
        if "refused" in reply:
            raise RefusedByParent
        return reply["done"]

    def _listen(self, end: Callable[[int], object]) -> None:
        """Read messages while a statement runs: the engine does not block this thread."""
        try:
            while True:
                head, body = self._channel.receive(_LARGEST_ORDER)
                if head["do"] == "interrupt":
                    running = self._running
                    if running is not None and running[0] == head["number"]:
                        running[1].interrupt()
                elif head["do"] == "reply":
                    self._replies.put(head)
                else:
                    self._orders.put({**head, "body": body})
        except Closed:
            end(0)

    def _carry_out(self, order: dict[str, Any]) -> None:
        reply: dict[str, Any] = {}
        try:
            if order["do"] == "make":
                self._make(pickle.loads(order["body"]))  # noqa: S301 (the parent's own)
            else:
                reply = self._run(order)
        except PolicyError as error:
            reply = {"broken": str(error)}
        except CatalogFailed as failure:
            reply = {"failed": failure.kind, "words": failure.words[:_LONGEST_WORDS]}
        self._channel.send({**reply, "memory": limits.present(), "exhausted": self._is_exhausted()})

    def _is_exhausted(self) -> bool:
        """Whether a statement left so much memory in use that the next one could fail."""
        left = self._growth // _LEFT
        return not limits.has_room(self._growth - left) or limits.present() > self._first + left

    def _make(self, content: Content) -> None:
        limits.lift_limits()
        while len(self._databases) >= MOST_CONTENTS:
            self._databases.popitem(last=False)[1].close()
        self._databases[content.number] = CatalogDatabase(content, self._growth)
        self._limit_memory()

    def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        sql, parameters, variables, bounds = pickle.loads(order["body"])  # noqa: S301
        database = self._databases[order["content"]]
        self._databases.move_to_end(order["content"])
        if not self._gives_way:
            limits.give_way()
            self._gives_way = True
        self._running = order["number"], database
        sink = _Parts(self._channel)
        try:
            columns = database.run(
                sink, sql, parameters, variables, self if order["effects"] else None, bounds
            )
        finally:
            self._running = None
        sink.flush()
        return {"columns": columns}

    def _limit_memory(self) -> None:
        self._first = limits.present()
        if not limits.limit_growth(self._growth):
            limits.watch(self._growth)


_LONGEST_WORDS, _LONGEST_SETTING = 10_000, 100_000


def main() -> None:
    """``python -m dpsql.engines.catalog.worker GROWTH``, with a socket as standard input."""
    limits.obey_parent()
    Worker(Channel(socket.socket(fileno=0)), int(sys.argv[1])).serve()


if __name__ == "__main__":
    main()
