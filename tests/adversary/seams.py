"""The few places inside dpsql that a judge looks at; nothing else here imports from its inside.

Seen are: the statement that the engine runs, the integers that come back, the noise that is added
to them, and the threshold that groups pass. Three things can be changed: where randomness comes from
(the same bytes again, and one salt for prepared copies), the integers (those of another run, under
the labels of this one), and what a view has each time that it is read. With these the same, whatever a client sees of two neighbours has to
be the same, byte by byte.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from dpsql.cli import main
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.privacy.entropy import Entropy
from dpsql.release import noise as noising
from dpsql.service import Service
from tests.adversary.model import Draw, Measured
from tests.adversary.readings import reread

SAMPLES = 4_000
"""Further draws of each noise, in two calls: the scale is known to 5 % with them."""
FAR = 1 << 40
"""Above every threshold."""
SALT = 20_250_601
"""By which copies number the rows of a unit."""


@dataclass
class Recorder:
    """What the seams see of one connection, statement after statement.

    ``pinned`` is a seed; with it each statement draws the same bytes whenever it is asked.
    ``other`` are tables that the engine gave in another run, in order: their integers are used.
    """

    pinned: bytes | None = None
    other: list[pa.Table] | None = None
    sampled: bool = True
    found: list[Measured] = field(default_factory=list)
    tables: list[pa.Table] = field(default_factory=list)
    statement: str = ""
    readings: Sequence[tuple[str, str]] = ()
    """Views, each with one that some readings of a statement find in its place."""
    troubles: list[str] = field(default_factory=list)
    """What was raised while noise was added."""
    once: _Once | None = None
    """The measurement that is being noised."""
    fresh: bool = False
    """Whether real randomness is taken, since what is drawn is not for an answer."""
    taken: int = 0

    def begin(self, step: int) -> None:
        """Start a step: forget what was seen, and draw from the beginning of its own stream."""
        self.found, self.taken = [], step << 32


@contextmanager
def watch(recorder: Recorder) -> Iterator[Recorder]:
    """Look through the seams while this lasts."""
    with ExitStack() as stack:
        for owner, name, wrapper in (
            (Entropy, "raw", _raw),
            (DuckDB, "measure", _measure),
            (noising, "_noised", _noised),
            (noising, "_selected", _selected),
            (noising, "add_noise", _added),
            (noising, "choose_values", _chosen),
        ):
            stack.enter_context(patch.object(owner, name, wrapper(getattr(owner, name), recorder)))
        yield recorder


Original = Callable[..., Any]


def _raw(original: Original, recorder: Recorder) -> Original:
    def raw(self: Entropy, n: int) -> bytes:
        if recorder.pinned is None or recorder.fresh:
            return bytes(original(self, n))
        recorder.taken += 1
        place = recorder.taken.to_bytes(8, "little")
        return hashlib.shake_128(recorder.pinned + place).digest(n)

    return raw


def _measure(original: Original, recorder: Recorder) -> Original:
    def measure(self: DuckDB, sql: str, parameters: Any) -> Any:
        read = reread(sql, recorder.readings, recorder.taken >> 32)
        recorder.statement = f"{read}\n-- {sorted((k, str(v)) for k, v in parameters.items())}"
        return original(self, read, parameters)

    return measure


def _noised(original: Original, recorder: Recorder) -> Original:
    def noised(tables: Iterator[pa.Table], part: Any, entropy: Any) -> Any:
        exact = pa.concat_tables(list(tables))
        at = len(recorder.tables)
        recorder.tables.append(exact)
        used = exact
        if recorder.other is not None and at < len(recorder.other):
            used = transplant(recorder.other[at], exact)
        once = _Once(recorder, original, part, entropy)
        try:
            released = once.run(used, "draw")
        except Exception as error:
            recorder.found.append(_measured(recorder, part, exact, once, ""))
            recorder.troubles.append(f"{type(error).__name__}: {error}")
            raise
        try:
            leak = "" if once.run(_zeros(used), "repeat") == released else "exact integers"
            leak = once.order(exact) or leak
        except Exception as error:  # noqa: BLE001 (else it would look like a failure of the engine)
            leak = f"what the seams cannot follow: {type(error).__name__}: {error}"
        recorder.found.append(_measured(recorder, part, exact, once, leak))
        return once.released

    return noised


Mode = Literal["draw", "repeat", "look"]


@dataclass
class _Once:
    """One measurement, noised three times: to be released, from zeros, and to see its integers.

    "draw" is the real thing. "repeat" gives the same noisy results whatever integers are there: what
    it releases must be the same. "look" keeps the integers that noise would be added to, of all
    groups, since all of them pass.
    """

    recorder: Recorder
    original: Original
    part: Any
    entropy: Any
    mode: Mode = "draw"
    released: Any = None
    results: list[Any] = field(default_factory=list)
    drawn: list[Draw] = field(default_factory=list)
    seen: list[tuple[Any, ...]] = field(default_factory=list)
    shown: tuple[int, int] | None = None
    place: int = 0

    def run(self, table: pa.Table, mode: Mode) -> list[list[tuple[str, bytes]]]:
        """Noise a table; what was released, as bytes, since NaN is equal to nothing."""
        self.mode, self.place, self.recorder.once = mode, 0, self
        self.recorder.fresh = mode != "draw"
        try:
            found = self.original(iter([table]), self.part, self.entropy)
        finally:
            self.recorder.once, self.recorder.fresh = None, False
        if mode == "draw":
            self.released = found
        return [_labels(column) for column in found.table.columns]

    def order(self, exact: pa.Table) -> str:
        """Look at the integers. Groups that are selected stand in no order of the engine."""
        keys = len(_names(exact))
        looked = self.run(exact, "look")[:keys]
        if self.part.selection is None:
            return ""
        seen, self.seen = self.seen, []
        backwards = exact.take(pa.array(range(exact.num_rows - 1, -1, -1), pa.int64()))
        other = self.run(backwards, "look")[:keys]
        self.seen = seen
        return "" if other == looked else "the order in which the engine gave groups"

    def result(self) -> Any:
        """The next of the noisy results that were drawn."""
        self.place += 1
        return self.results[self.place - 1]


def _measured(recorder: Recorder, part: Any, exact: pa.Table, once: _Once, leak: str) -> Measured:
    seen = [*once.seen, *((),) * len(once.drawn)]
    draws = [replace(draw, exact=seen[i]) for i, draw in enumerate(once.drawn)]
    return Measured(
        part.measurement.name, recorder.statement, _keys(exact), tuple(draws),
        tuple(_column(exact, name) for name in exact.column_names), once.shown, leak,
    )  # fmt: skip


def _zeros(table: pa.Table) -> pa.Table:
    columns = [
        pa.chunked_array([pa.array([0] * table.num_rows).cast(column.type)])
        if pa.types.is_integer(column.type) and not name.startswith("k")
        else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _column(table: pa.Table, name: str) -> tuple[str, str, tuple[Any, ...]]:
    return name, str(table.schema.field(name).type), tuple(_integers(table.column(name)))


def _integers(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_list(column.type):
        return [tuple(tuple(pair.values()) for pair in value or ()) for value in column.to_pylist()]
    if pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        return [None if v is None else int(v) for v in column.to_pylist()]
    return [None] * len(column)


def _selected(original: Original, recorder: Recorder) -> Original:
    def selected(table: pa.Table, part: Any, entropy: Any) -> Any:
        kept, units = original(table, part, entropy)
        once = recorder.once
        if once is not None and part.selection is not None and once.mode == "draw":
            once.shown = int(part.selection.threshold), kept.num_rows
        return kept, units

    return selected


def _added(original: Original, recorder: Recorder) -> Original:
    def added(exact: Any, item: Any, entropy: Any) -> Any:
        once = recorder.once
        if once is None:
            return original(exact, item, entropy)
        if once.mode == "look":
            once.seen.append(tuple(int(v) for v in exact))
            return exact + FAR
        if once.mode == "repeat":
            return once.result()
        noisy = original(exact, item, entropy)
        once.results.append(noisy)
        noise = tuple(int(v) - int(e) for v, e in zip(noisy, exact, strict=True))
        sample = _sample(original, item, entropy, recorder) if recorder.sampled else ()
        once.drawn.append(Draw("number", (), noise, sample, _law(item.noise)))
        return noisy

    return added


def _sample(original: Original, item: Any, entropy: Any, recorder: Recorder) -> tuple[int, ...]:
    recorder.fresh = True
    try:
        zeros = np.zeros(SAMPLES // 2, dtype=np.int64)
        return tuple(int(v) for _ in range(2) for v in original(zeros, item, entropy))
    finally:
        recorder.fresh = False


def _chosen(original: Original, recorder: Recorder) -> Original:
    def chosen(column: pa.ChunkedArray, item: Any, entropy: Any) -> Any:
        once = recorder.once
        if once is None:
            return original(column, item, entropy)
        if once.mode == "look":
            once.seen.append(tuple(_integers(column)))
        if once.mode == "repeat":
            return once.result()
        values = original(column, item, entropy)
        if once.mode == "draw":
            once.results.append(values)
            again = _Again(original, column.type, item, entropy)
            once.drawn.append(Draw("histogram", (), law=_law(item.noise), again=again))
        return values

    return chosen


@dataclass
class _Again:
    """Chooses among the bins of one group, as often as is wanted."""

    original: Original
    kind: Any
    item: Any
    entropy: Any

    def __call__(self, exact: Sequence[tuple[int, int]], times: int) -> list[str]:
        """That many values, as texts."""
        names = [field.name for field in self.kind.value_type]
        bins = [dict(zip(names, pair, strict=True)) for pair in exact]
        many = pa.chunked_array([pa.array([bins] * times, self.kind)])
        return list(map(str, self.original(many, self.item, self.entropy).to_pylist()))


def _law(law: Any) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The name of a mechanism and its parameters as exact text."""
    return str(law.name), tuple((f.name, str(getattr(law, f.name))) for f in fields(law))


def _names(table: pa.Table) -> list[str]:
    return [n for n in table.column_names if n.startswith("k") and n[1:].isdigit()]


def _keys(table: pa.Table) -> tuple[tuple[tuple[str, bytes], ...], ...]:
    columns = [_labels(table.column(name)) for name in _names(table)]
    return tuple(zip(*columns, strict=True)) if columns else ((),) * table.num_rows


def _labels(column: pa.ChunkedArray) -> list[tuple[str, bytes]]:
    """Each value of a key as its type and its bytes."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return [(str(kind), _label(value)) for value in column.to_pylist()]


def _label(value: Any) -> bytes:
    if value is None:
        return b"\0NULL"
    if isinstance(value, float):
        return struct.pack("<d", value)
    return value.encode() if isinstance(value, str) else repr(value).encode()


def same(label: tuple[str, bytes]) -> tuple[str, bytes]:
    """A label by value: both zeros are one, and so are all NaN."""
    kind, held = label
    if kind in ("double", "float") and len(held) == 8:
        (number,) = struct.unpack("<d", held)
        held = b"nan" if number != number else struct.pack("<d", number + 0.0)
    return kind, held


def transplant(integers: pa.Table, labels: pa.Table) -> pa.Table:
    """The integers of one table under the labels of another, where both have the same group."""
    names = _names(integers)
    if not names or _names(labels) != names:
        return integers
    labels = labels.select(names).cast(pa.schema([integers.schema.field(n) for n in names]))
    there = {tuple(map(same, key)): i for i, key in enumerate(_keys(labels))}
    count = integers.num_rows
    at = [
        i if (j := there.get(tuple(map(same, key)))) is None else count + j
        for i, key in enumerate(_keys(integers))
    ]
    place = pa.array(at, pa.int64())
    columns = [
        pa.chunked_array([*integers.column(n).chunks, *labels.column(n).chunks]).take(place)
        if n in names
        else integers.column(n)
        for n in integers.column_names
    ]
    return pa.Table.from_arrays(columns, schema=integers.schema)


def prepare(policy: Path) -> bool:
    """Make copies of all private tables as the owner does; whether ``dpsql prepare`` made them.

    Which rows of a unit a copy lets through depends on a salt: here it is the same for all worlds.
    """
    with patch.object(secrets, "randbits", lambda _: SALT):
        return _command("prepare", "--policy", str(policy))


def check(policy: Path) -> bool:
    """Compare the data with its policy as the owner does; whether ``dpsql check`` found them to agree."""
    return _command("check", str(policy))


def _command(*words: str) -> bool:
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return main(words) == 0


def answered_at(policy: Path, role: str, moment: datetime, statements: Sequence[str]) -> bool:
    """Whether all statements are answered when the clock stands at this moment."""
    with Service.open(policy, clock=lambda: moment) as service:
        session = service.session(role=role, name=f"{moment:%m%d}")
        try:
            for statement in statements:
                session.execute(statement)
        except Exception:  # noqa: BLE001 (any refusal is one)
            return False
    return True
