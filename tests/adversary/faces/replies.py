"""Messages of the PostgreSQL protocol as a transcript."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.adversary.faces import session, values
from tests.adversary.faces.protocol import Message, fields
from tests.adversary.model import Column, Failure, Step, Transcript

BINARY = 1


@dataclass(frozen=True)
class Field:
    """One column of a RowDescription."""

    name: str
    oid: int
    modifier: int
    format: int


def described(body: bytes) -> tuple[Field, ...]:
    """The columns of a RowDescription."""
    (count,), place, found = struct.unpack("!h", body[:2]), 2, []
    for _ in range(count):
        end = body.index(b"\0", place)
        _, _, oid, _, modifier, code = struct.unpack("!IhIhih", body[end + 1 : end + 19])
        found.append(Field(body[place:end].decode(), oid, modifier, code))
        place = end + 19
    if place != len(body):
        raise ValueError("a RowDescription is longer than its columns")
    return tuple(found)


def cells(body: bytes) -> list[bytes | None]:
    """The values of a DataRow."""
    (count,), place, found = struct.unpack("!h", body[:2]), 2, []
    for _ in range(count):
        (length,) = struct.unpack("!i", body[place : place + 4])
        place += 4
        found.append(None if length < 0 else body[place : place + length])
        place += max(length, 0)
    if place != len(body):
        raise ValueError("a DataRow is longer than its values")
    return found


def row(body: bytes, columns: Sequence[Field]) -> tuple[Any, ...]:
    """The values of a DataRow, read as their types and formats say."""
    found = cells(body)
    if len(found) != len(columns):
        raise ValueError(f"a row of {len(found)} values for {len(columns)} columns")
    return tuple(
        None if cell is None
        else values.decode_binary(column.oid, cell) if column.format == BINARY
        else values.decode_text(column.oid, cell)
        for cell, column in zip(found, columns, strict=True)
    )  # fmt: skip


def failed(body: bytes) -> Failure:
    """An ErrorResponse."""
    said = fields(body)
    position = int(said["P"]) if "P" in said else None
    return session.failure(said["M"], said["C"], said.get("D"), said.get("H"), position=position)


def transcript(step: Step, messages: Iterable[Message]) -> Transcript:
    """What the messages of one statement say. Rows before an error are kept, as clients keep them."""
    columns: tuple[Field, ...] = ()
    found, rows, notes, notices = Transcript(step), [], [], []
    for each in messages:
        if each.kind == b"T":
            columns = described(each.body)
        elif each.kind == b"D":
            rows.append(row(each.body, columns))
        elif each.kind == b"E":
            found = replace(found, error=failed(each.body))
        elif each.kind == b"N":
            said = fields(each.body)["M"]
            priced = _priced(found, said)
            found, mine = priced or found, notices if priced else notes
            mine.append(said)
    told = tuple(Column(c.name, values.type_name(c.oid, c.modifier)) for c in columns)
    return replace(
        found, columns=told, rows=tuple(rows), notes=tuple(notes), notices=tuple(notices)
    )


def lines(found: Transcript) -> Transcript:
    """A plan: rows of one text are what EXPLAIN says."""
    if found.error is not None:
        return found
    return replace(found, columns=(), rows=(), text="\n".join(str(r[0]) for r in found.rows))


def _priced(found: Transcript, said: str) -> Transcript | None:
    """A notice that tells cost and what is left; None for any other."""
    if cost := session.COST.match(said):
        epsilon, delta, left = cost.groups()
        return replace(found, cost=(epsilon, delta or "0"), remaining=left, recalled=False)
    if recalled := session.RECALLED.match(said):
        return replace(found, cost=("0", "0"), remaining=recalled.group(1), recalled=True)
    return None
