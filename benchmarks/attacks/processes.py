"""What a process and all processes below it take: memory by share (PSS), and work of processors."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """The process and everything below it."""
    children: dict[int, list[int]] = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            fields = _stat(int(folder.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def _stat(process: int) -> list[str]:
    """The fields after the command's name (which may hold spaces); none if the process is gone."""
    try:
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def pss(process: int) -> int:
    """Bytes of one process, with its share of what it shares; 0 if it is gone."""
    try:
        text = (PROC / str(process) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return 1024 * sum(
        int(line.split()[1]) for line in text.splitlines() if line.startswith(("Pss:", "SwapPss:"))
    )


def seconds_of_work(processes: list[int]) -> float:
    """Seconds of processors that processes have used so far."""
    fields = [f for process in processes if (f := _stat(process))]
    return sum(int(f[11]) + int(f[12]) for f in fields) / _TICK


@dataclass(frozen=True)
class Snapshot:
    """One look at the tree."""

    at: float
    parts: tuple[int, ...]
    """Bytes of each process, the first one's first."""
    cpu: float
    """Seconds of work so far, of the processes that are there now."""

    @property
    def memory(self) -> int:
        """Bytes of all of them."""
        return sum(self.parts)


def look(root: int) -> Snapshot:
    """What the tree takes now."""
    found = tree(root)
    return Snapshot(time.monotonic(), tuple(map(pss, found)), seconds_of_work(found))


@dataclass
class Watch:
    """Looks at a tree all the time, in a thread; ends the process whose tree takes more than ``ceiling``."""

    root: int
    ceiling: int
    every: float = 0.25
    taken: list[Snapshot] = field(default_factory=list)
    stopped: bool = False
    exceeded: bool = False

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = True
        self._thread.join()

    def _look(self) -> None:
        while not self.stopped:
            self.taken.append(look(self.root))
            if self.taken[-1].memory > self.ceiling and not self.exceeded:
                self.exceeded = True
                for process in tree(self.root):
                    kill(process)
            time.sleep(self.every)

    @property
    def peak(self) -> Snapshot:
        """The look that found most so far."""
        return max(self.taken, key=lambda t: t.memory, default=Snapshot(0.0, (), 0.0))

    def idle_since(self, part: float = 0.35, within: float = 1.0) -> float | None:
        """Since when less than a part of one processor was used; None while more is."""
        since: float | None = None
        for earlier, later in zip(self.taken, self.taken[1:], strict=False):
            passed = later.at - earlier.at
            if passed and (later.cpu - earlier.cpu) / passed > part:
                since = None
            elif since is None:
                since = earlier.at
        if since is None or self.taken[-1].at - since < within:
            return None
        return since


def kill(process: int) -> None:
    """End a process at once, if it is there."""
    try:
        os.kill(process, 9)
    except ProcessLookupError:
        return
