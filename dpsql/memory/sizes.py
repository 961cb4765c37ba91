"""How many bytes a value keeps in memory."""

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
"""What there is one of in a process, however many values name it."""
_POLICY = "dpsql.policy"
"""Values of its classes belong to the policy, which is loaded once."""
MOST_OBJECTS = 200_000
UNKNOWN = 1 << 62
"""The size of what has more objects than are counted."""
ARROW, ARROW_COLUMN = 1_200, 900
"""An Arrow table, and each of its columns, beside the bytes of its values."""


def size_of(*values: object) -> int:
    """The bytes of some values with all that they refer to; what they share is counted once.

    It is an estimate: memory that an allocator keeps between objects is left out, and so are
    Python's own tables. ``UNKNOWN`` is said of what has too many objects to be looked at.
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
            waiting += value  # the keys, which are left out above where all are texts
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
