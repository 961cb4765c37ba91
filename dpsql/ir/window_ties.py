"""Where the order of rows that a window's ORDER BY takes for equal can be seen in its result.

Such a window gets ``ties``: columns by which equal rows are ordered too. Every function of a window is
one of these:

- ``rank``, ``dense_rank``, ``percent_rank`` and ``cume_dist`` give equal rows one number: nothing
  is needed, and further keys would change it.
- ``row_number``, ``ntile``, ``lag`` and ``lead`` count rows: their ORDER BY goes on with the ties.
- Under a ROWS frame every other function sees some of the equal rows and not the rest: so there.
- Under a RANGE or GROUPS frame, or none, rows enter a frame together with their equals. Aggregates then see
  the same rows in every order. ``first_value`` and ``last_value`` choose one of them: where the frame reaches
  to that end of the partition whatever the keys are, the ORDER BY goes on with the ties; elsewhere
  this would change the frame, and the function itself orders the rows that it chooses from.
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
"""The frames that reach to the end of the partition from which a function chooses, and hold the row."""


class Breaks(enum.Enum):
    """Where the keys stand that put equal rows in an order."""

    NOWHERE = enum.auto()
    IN_ORDER = enum.auto()
    IN_CALL = enum.auto()


def breaks(window: Window) -> Breaks:
    """Where a window needs them."""
    name, frame = window.function, window.frame
    if name in _OF_EQUALS:
        return Breaks.NOWHERE
    if name in OF_PLACES or (frame is not None and frame.unit == "rows"):
        return Breaks.IN_ORDER
    if name not in _ENDS:
        return Breaks.NOWHERE
    return Breaks.IN_ORDER if frame in _ENDS[name] else Breaks.IN_CALL
