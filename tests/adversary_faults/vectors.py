"""Faults of the bound on what a unit adds to all groups together."""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

FAULTS = (
    Fault(
        "a vector is as long as it has numbers",
        "planner",
        (
            Edit(
                "bound/vector_clip.py",
                """Over(Fold("sum", self._length(Name(name), limit)), of_unit)""",
                """Over(Fold("count"), of_unit)""",
            ),
        ),
        "The factor of a unit follows from its number of groups, so one with large sums is not scaled down.",
        "a norm taken of counts instead of totals",
    ),
    Fault(
        "a limit that was found is only priced",
        "planner",
        (
            Edit(
                "bound/vector_clip.py",
                """        one = 1 << self.bits
        if self.norm == 1:
            most""",
                """        one = 1 << self.bits
        if limit:
            return Number(one)
        if self.norm == 1:
            most""",
            ),
        ),
        "A search finds a low limit, noise is drawn for it, and units beyond it count in full.",
    ),
    Fault(
        "a unit in many groups counts in each in full",
        "planner",
        (
            Edit(
                "bound/vector_clip.py",
                "return None if self._all_units_fit else self._limit_of(self.units, divided=False)",
                "return None",
            ),
            Edit(
                "bound/vector_clip.py",
                "        return 0 if self._all_units_fit else self.bits\n",
                "        return 0\n",
            ),
        ),
        "A number of units has noise for as many groups as were found, and a unit counts in all of its groups.",
    ),
)
