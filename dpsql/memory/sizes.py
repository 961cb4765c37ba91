"""Estimates how many bytes a value takes in memory."""

from __future__ import annotations

import enum
import gc
import sys
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import pyarrow as pa

_SHARED = (
    type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, property, enum.Enum, bool,
    type(None), pa.DataType,
)  # fmt: skip
"""Types whose values exist once in a process, however many values refer to them."""
_POLICY = "dpsql.policy"
"""The package whose values belong to the policy, which is loaded once."""
MOST_OBJECTS = 200_000
UNKNOWN = 1 << 62
"""The size of a value with more objects than are counted."""
ARROW, ARROW_COLUMN = 1_200, 900
"""The bytes of an Arrow table, and of each of its columns, in addition to its values."""


def size_of(*values: object) -> int:
    """The bytes of values with all objects that they refer to; shared objects are counted once.

    This is an estimate: it leaves out memory that the allocator keeps between objects, and Python's
    own tables. It is ``UNKNOWN`` if there are too many objects.
    """
    seen: set[int] = set()
    waiting, total = list(values), 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or _shared(value):
            continue
        seen.add(id(value))
        if len(seen) > MOST_OBJECTS:
            return UNKNOWN
        total += _own_size(value)
        waiting += gc.get_referents(value)
        if isinstance(value, dict):
            waiting += value  # the keys, which get_referents leaves out if all are texts
    return total


def _shared(value: object) -> bool:
    return isinstance(value, _SHARED) or type(value).__module__.startswith(_POLICY)


def _own_size(value: object) -> int:
    match value:
        case pa.Table():
            return table_size(value)
        case pa.ChunkedArray() | pa.Array() | pa.Buffer():
            return ARROW_COLUMN + int(value.size if isinstance(value, pa.Buffer) else value.nbytes)
        case _:
            return sys.getsizeof(value)


def table_size(table: pa.Table) -> int:
    """The bytes of an Arrow table."""
    return ARROW + ARROW_COLUMN * int(table.num_columns) + int(table.nbytes)
