"""Windows whose result shows the order of rows that are equal in their ORDER BY.

Such a window gets ``ties``: further columns by which equal rows are ordered. Every window function
is of one of these kinds:

- ``rank``, ``dense_rank``, ``percent_rank`` and ``cume_dist`` give equal rows the same number. They
  need no ties, and further keys would change their results.
- ``row_number``, ``ntile``, ``lag`` and ``lead`` count rows. The ties are added to their ORDER BY.
- Under a ROWS frame every other function reads some of the equal rows and not the rest. The ties
  are added to the ORDER BY as well.
- Under a RANGE or GROUPS frame, or none, equal rows enter a frame together. Aggregates then read
  the same rows in every order. ``first_value`` and ``last_value`` choose one row. If the frame
  reaches to that end of the partition whatever the keys are, the ties are added to the ORDER BY.
  Otherwise this would change the frame, and the function itself orders the rows that it chooses
  from.
"""

from __future__ import annotations

import enum

from dpsql.ir.expressions import Frame, FrameEnd, Window

_OF_EQUALS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
OF_PLACES = frozenset({"row_number", "ntile", "lag", "lead"})
_FIRST, _ROW, _LAST = FrameEnd("preceding"), FrameEnd("current row"), FrameEnd("following")
_ENDS = {
    "first_value": (None, Frame("range", _FIRST, _ROW), Frame("groups", _FIRST, _ROW)),
    "last_value": (Frame("range", _ROW, _LAST), Frame("groups", _ROW, _LAST)),
}
"""The frames that hold the row and reach to the end of the partition that the function reads."""


class Breaks(enum.Enum):
    """The place of the keys that order equal rows: nowhere, in the ORDER BY, or in the call."""

    NOWHERE = enum.auto()
    IN_ORDER = enum.auto()
    IN_CALL = enum.auto()


def breaks(window: Window) -> Breaks:
    """The place where a window needs ties."""
    name, frame = window.function, window.frame
    if name in _OF_EQUALS:
        return Breaks.NOWHERE
    if name in OF_PLACES or (frame is not None and frame.unit == "rows"):
        return Breaks.IN_ORDER
    if name not in _ENDS:
        return Breaks.NOWHERE
    return Breaks.IN_ORDER if frame in _ENDS[name] else Breaks.IN_CALL
