"""The note of an answer in which values are hidden, because noise alone may decide them.

Claim: whether the note is there is a function of released numbers and public noise laws.
Assumes: ``known`` holds released tables and public rows only.
Argument: the functions here get nothing else, and the finished answer is computed from the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.ir.expressions import alias
from dpsql.plan.nodes import HiddenMean, Measurement
from dpsql.plan.noise_alone import Hidden
from dpsql.release.lookups import Known

NOTE = (
    "NULL stands for averages and similar values that noise alone may decide;"
    " SET dpsql.show = 'always' shows them"
)


def hidden_note(known: Known, answer: pa.Table) -> tuple[str, ...]:
    """The note, if a value of a released group is hidden and the answer has a NULL."""
    found = (
        _hides(known, measurement, hidden)
        for measurement in known.priced.plan.measurements
        for hidden in measurement.hidden
    )
    empty = any(column.null_count for column in answer.columns)
    return (NOTE,) if empty and any(found) else ()


def _hides(known: Known, measurement: Measurement, hidden: Hidden) -> bool:
    """Whether the value of a released group is hidden, as ``plan.noise_alone.hide`` says."""
    table = known.tables[measurement.name]

    def numbers(position: int) -> npt.NDArray[np.float64]:
        column = table.column(alias(measurement.columns[position]))
        return np.asarray(column.to_numpy(), dtype=np.float64)

    count = moved = numbers(hidden.count)
    if isinstance(hidden, HiddenMean) and hidden.half:
        moved = float(hidden.half) * count + np.abs(numbers(hidden.total))
    return not bool(np.all((count > 0) & (moved > known.noise_of(measurement, hidden))))
