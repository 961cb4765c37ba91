"""Measured side by side: two runs that take turns in one process, their ratio and its spread.

Time that passes (``wall``) is what people wait for; work of processors (``cpu``) hardly changes
with what else the machine does. Both are medians of the ratios of neighbouring runs, with quartiles.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb


@dataclass(frozen=True)
class Spread:
    """A median and its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of several values."""
        quarters = (
            statistics.quantiles(values, n=4, method="inclusive")
            if len(values) > 1
            else [values[0]] * 3
        )
        return cls(statistics.median(values), quarters[0], quarters[2])


@dataclass(frozen=True)
class Ratio:
    """What dpsql takes as a multiple of ``plain``; ``goal`` is the most it should (0: none)."""

    about: str
    size: int
    plain_ms: float
    dpsql_ms: float
    wall: Spread
    cpu: Spread
    goal: float = 0.0

    @property
    def bar(self) -> Spread:
        """What is drawn."""
        return self.wall

    @property
    def missed(self) -> str:
        """By how much the goal is missed, by both kinds of time; empty where it is not, or none."""
        least = min(self.wall.median, self.cpu.median)
        return f"{least:.2f}x, goal {self.goal:.1f}x" if 0 < self.goal < least else ""

    def line(self) -> str:
        """One line of the table."""
        goal = f"{self.goal:.1f}x" if self.goal else ""
        wall, cpu = (f"{s.median:6.2f}x ({s.low:.2f}-{s.high:.2f})" for s in (self.wall, self.cpu))
        return (
            f"{self.about:52} {self.size:12,} {self.plain_ms:9.1f}ms {self.dpsql_ms:9.1f}ms"
            f" {wall:22} {cpu:22} {goal:>5}"
        )


RATIOS = (
    f"{'case':52} {'rows':>12} {'plain':>11} {'dpsql':>11} {'wall (quartiles)':^22}"
    f" {'cpu (quartiles)':^22}  goal"
)


@dataclass(frozen=True)
class Taken:
    """Milliseconds of something alone."""

    about: str
    size: int
    wall: Spread
    cpu: Spread
    goal: float = 0.0

    @property
    def bar(self) -> Spread:
        """What is drawn."""
        return self.wall

    @property
    def missed(self) -> str:
        """By how much the goal is missed, by both kinds of time; empty where it is not, or none."""
        least = min(self.wall.median, self.cpu.median)
        return f"{least:.3f}ms, goal {self.goal:g}ms" if 0 < self.goal < least else ""

    def line(self) -> str:
        """One line of the table."""
        goal = f"{self.goal:g}ms" if self.goal else ""
        wall, cpu = (f"{s.median:9.3f}ms ({s.low:.3f}-{s.high:.3f})" for s in (self.wall, self.cpu))
        return f"{self.about:52} {wall:32} {cpu:32} {goal:>7}"


TIMES = f"{'alone':52} {'wall (quartiles)':^32} {'cpu (quartiles)':^32}    goal"


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds that pass, and that processors work."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def in_turns(
    about: str, size: int, sides: tuple[Callable[[], object], Callable[[], object]],
    repeat: int, goal: float = 0.0,
) -> Ratio:  # fmt: skip
    """Plain and dpsql, so many times each, after one run of both that does not count."""
    for side in sides:
        side()
    runs = [[timed(side) for side in sides] for _ in range(repeat)]
    plain, ours = (1e3 * statistics.median(run[side][0] for run in runs) for side in (0, 1))
    wall, cpu = (Spread.of([run[1][kind] / run[0][kind] for run in runs]) for kind in (0, 1))
    return Ratio(about, size, plain, ours, wall, cpu, goal)


def alone(
    about: str, run: Callable[[], object], repeat: int, goal: float = 0.0, size: int = 0
) -> Taken:
    """Something by itself, after one run that does not count."""
    run()
    runs = [timed(run) for _ in range(repeat)]
    wall, cpu = (Spread.of([1e3 * r[kind] for r in runs]) for kind in (0, 1))
    return Taken(about, size, wall, cpu, goal)


def options(about: str | None, repeat: int = 7) -> argparse.ArgumentParser:
    """What every benchmark may be told."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=repeat, help="runs of each side")
    parser.add_argument("--data", type=Path, help="keep made data in this folder")
    parser.add_argument("--out", type=Path, help="write NAME.json and NAME.png to this folder")
    return parser


@contextmanager
def places(data: Path | None) -> Iterator[tuple[Path, Path]]:
    """A folder for data, which may last, and one for policies and ledgers, which does not."""
    with TemporaryDirectory() as place:
        if data is not None:
            data.mkdir(parents=True, exist_ok=True)
        yield (data or Path(place)).absolute(), Path(place)


@dataclass
class Report:
    """Figures, printed as they come; at the end they are written as JSON and drawn as PNG."""

    name: str
    out: Path | None
    head: str = RATIOS
    unit: str = "time, as a multiple of plain DuckDB"
    found: list[Ratio | Taken] = field(default_factory=list)
    notes: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        print(self.head, flush=True)

    def add(self, figure: Ratio | Taken) -> None:
        """One more line."""
        self.found.append(figure)
        print(figure.line(), flush=True)

    def note(self, about: str, value: object) -> None:
        """What is no time: a mean, a refusal, megabytes."""
        self.notes[about] = value
        print(f"{about}: {value}", flush=True)

    @property
    def missed(self) -> list[str]:
        """The figures that miss their goal, and by how much."""
        return [f"{f.about}, {f.size:,} rows: {f.missed}" for f in self.found if f.missed]

    def close(self) -> None:
        """Say which goals are missed, and write both files."""
        goals = sum(f.goal > 0 for f in self.found)
        if goals:
            print(
                f"{goals - len(self.missed)} of {goals} goals are met",
                *self.missed,
                sep="\nmissed: ",
            )
        if self.out is None:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        made = {
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "versions": {"python": platform.python_version(), "duckdb": duckdb.__version__},
            "figures": [asdict(f) for f in self.found],
            "missed": self.missed,
            "notes": self.notes,
        }
        (self.out / f"{self.name}.json").write_text(json.dumps(made, indent=1, default=str))
        if self.found:
            self._draw(self.out / f"{self.name}.png")

    def _draw(self, path: Path) -> None:
        """A bar for each case and size, with its quartiles, and its goal where there is one."""
        from matplotlib.figure import Figure  # only here: not everybody plots

        cases = list(dict.fromkeys(f.about for f in self.found))
        sizes = sorted({f.size for f in self.found})
        drawing = Figure(figsize=(10, 1.5 + 0.32 * len(cases) * max(1, len(sizes) ** 0.7)))
        drawing.set_layout_engine("constrained")
        axes, height = drawing.subplots(), 0.8 / len(sizes)
        for i, size in enumerate(sizes):
            mine = [(cases.index(f.about), f) for f in self.found if f.size == size]
            at = [n + (i - (len(sizes) - 1) / 2) * height for n, _ in mine]
            bars = [f.bar for _, f in mine]
            spread = (
                [max(0, b.median - b.low) for b in bars],
                [max(0, b.high - b.median) for b in bars],
            )
            axes.barh(at, [b.median for b in bars], height, xerr=spread, label=f"{size:,}")
            for (_, f), y in zip(mine, at, strict=True):
                if f.goal:
                    axes.plot([f.goal] * 2, [y - height / 2, y + height / 2], color="black")
        axes.set_yticks(range(len(cases)), cases)
        axes.invert_yaxis()
        middles = [f.bar.median for f in self.found]
        if max(middles) > 20 * min(middles):
            axes.set_xscale("log")
        axes.set_xlabel(f"{self.unit} (black: goal)")
        if len(sizes) > 1:
            axes.legend(title="rows")
        drawing.savefig(path, dpi=120)
