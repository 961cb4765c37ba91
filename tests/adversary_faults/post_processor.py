"""Faults of what happens to released tables."""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

FAULTS = (
    Fault(
        "post-processing has no end",
        "post-processor",
        (
            Edit(
                "release/postprocess.py",
                "            with stoppable(connection.interrupt):\n                found = fetch(connection.sql(sql, params=dict(values or {}) or None))\n",
                "            found = fetch(connection.sql(sql, params=dict(values or {}) or None))\n",
            ),
        ),
        "SQL over released numbers runs past every deadline and holds a thread.",
        "stop 24: post-processing without a deadline",
    ),
    Fault(
        "results of post-processing are not counted",
        "post-processor",
        (
            Edit(
                "engines/duckdb/fetch.py",
                "            take(part.nbytes, part.num_rows, part.num_columns)\n",
                "",
            ),
            Edit(
                "release/postprocess.py",
                '        "memory_limit": f"{memory // 1000}KB",\n',
                '        "memory_limit": "64GB",\n',
            ),
        ),
        "SQL over released numbers takes all memory of the machine.",
        "issue 13: post-processing without bounds",
    ),
    Fault(
        "rows that are constant have no bound",
        "post-processor",
        (
            Edit(
                "checks/constant_rows.py",
                "MOST_CONSTANT_ROWS = 10_000_000\n",
                "MOST_CONSTANT_ROWS = 10**30\n",
            ),
        ),
        "A few words keep the post-processor at work on more rows than there is time for.",
        "stop 26: joins of VALUES and GENERATE_SERIES",
    ),
    Fault(
        "a released number is rounded to nothing",
        "post-processor",
        (
            Edit(
                "release/noise.py",
                "        noisy = (noisy + (1 << (shift - 1))) >> shift\n",
                "        noisy = noisy >> shift << 1 >> 1\n",
            ),
        ),
        "Counts are one half too small on average: sums of many groups are wrong.",
    ),
    Fault(
        "negative counts are hidden unasked",
        "post-processor",
        (
            Edit(
                "service/session.py",
                "        if self.settings.nonnegative:\n            release = nonnegative(release, priced)",
                "        if not self.settings.consistent:\n            release = nonnegative(release, priced)",
            ),
        ),
        "Counts of small groups are too large on average, and no note says so.",
    ),
)
