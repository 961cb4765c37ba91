"""A small database of rides, with riders who have many, and far values: what limits and ranges cut is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

from dpsql.engines.duckdb.exact_limits import read_exact_limits
from dpsql.forecast.look import Look
from dpsql.forecast.planner import Planner, open_planner
from dpsql.forecast.report import Forecaster
from dpsql.policy.load import load
from dpsql.policy.model import Policy

RIDERS, EACH, GREEDY = 2_000, 2, 100
"""Riders with ``EACH`` rides, and the rides of one more rider."""
POLICY = """\
source: {engine: duckdb, path: rides.duckdb}
data_version: "1"
units:
  rider: {key: rider}
tables:
  rides:
    unit: rider
    max_rows_per_unit: 10
    columns:
      rider: {type: bigint}
      day: {type: date, range: [2025-01-01, 2025-04-10]}
      kind: {type: text, values: [bike, bus, train]}
      line: {type: text}
      minutes: {type: integer, range: [0, 100]}
  stations:
    public: true
    columns:
      station: {type: text}
accounts:
  dataset: {epsilon: 1000, delta: 1e-5}
roles:
  analyst:
    session: {epsilon: 100}
    search: off
    query: {epsilon: 1}
    max_groups_per_unit: 4
"""
ROWS = f"""
    CREATE TABLE rides AS
    SELECT i % {RIDERS} AS rider, DATE '2025-01-01' + CAST(i % 100 AS INTEGER) AS day,
        CASE WHEN i % 10 < 7 THEN 'bike' WHEN i % 10 < 9 THEN 'bus' ELSE 'train' END AS kind,
        'line ' || i % 5 AS line, CAST(50 + i % 51 AS INTEGER) AS minutes
    FROM range({RIDERS * EACH}) AS r(i)"""
MORE = f"""
    INSERT INTO rides
    SELECT -1, DATE '2025-02-01', 'bike', 'line of one', 300 FROM range({GREEDY}) AS r(i)"""
TRANSCRIPT = """\
No private row was read: this follows from the policy alone.

As the policy is: a question of role "analyst" costs at most epsilon 1 and delta 1e-7
    question                                                                   number   noise, 19 times in 20   within 5 % from   in a session
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
1   SELECT COUNT(*) AS n FROM rides                                            n                         ± 30          600 rows            109
2   SELECT kind, AVG(minutes) AS mean FROM rides GROUP BY kind                 mean       ± 2.3 in 1,000 rows          650 rows            109
3   SELECT line, COUNT(*) AS n FROM rides GROUP BY line                        n                         ± 60        1,200 rows             50
    groups of fewer than about 136 units are not shown
4   SELECT rider FROM rides                                                                   refused (DP101)
5   SELECT station FROM stations                                                              exact, and free
6   SELECT MEDIAN(minutes) AS m FROM rides                                     m            ± 76 rows of rank        1,600 rows            405
7   SELECT AVG(n) FROM (SELECT kind, COUNT(*) AS n FROM rides GROUP BY kind)   avg       not known beforehand                              207

query.epsilon: rows that a group needs for an error of 5 %
    question                                               0.5     1 (now)   for 5 % of 1,000 rows
──────────────────────────────────────────────────────────────────────────────────────────────────
    questions in a session                         50 .. 1,623   50 .. 405
1   SELECT COUNT(*) AS n FROM rides                      1,200         600                       1
2   SELECT kind, AVG(minutes) AS mean FROM ride…         1,300         650                       1
3   SELECT line, COUNT(*) AS n FROM rides GROUP…         2,400       1,200           none of these
6   SELECT MEDIAN(minutes) AS m FROM rides               3,100       1,600           none of these

rides: max_rows_per_unit: rows that a group needs for an error of 5 %
    question                                         5   10 (now)
─────────────────────────────────────────────────────────────────
1   SELECT COUNT(*) AS n FROM rides                300        600
2   SELECT kind, AVG(minutes) AS mean FROM ride…   320        650
3   SELECT line, COUNT(*) AS n FROM rides GROUP…   600      1,200
6   SELECT MEDIAN(minutes) AS m FROM rides         770      1,600

rides.minutes: range: noise, 19 times in 20; of means in a group of 1,000 rows
    question                                       0 .. 100 (now)   0 .. 200
────────────────────────────────────────────────────────────────────────────
2   SELECT kind, AVG(minutes) AS mean FROM ride…            ± 2.3      ± 4.7
6   SELECT MEDIAN(minutes) AS m FROM rides                   ± 76       ± 83

Of sums and means, rows are counted for values at three quarters of their range in the mean.
"""
"""What ``dpsql forecast`` prints of some questions about them."""


def write_rides(folder: Path, *, greedy: bool = True, policy: str = POLICY) -> Path:
    """Write the database and the policy; returns the policy's path. Without ``greedy``: a neighbour."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(folder / "rides.duckdb")) as connection:
        connection.execute(ROWS)
        connection.execute("CREATE TABLE stations AS SELECT 'a' AS station")
        if greedy:
            connection.execute(MORE)
    path = folder / "policy.yaml"
    path.write_text(policy, encoding="utf-8")
    return path


@contextmanager
def opened(path: Path, *, look: bool = False) -> Iterator[tuple[Planner, Forecaster]]:
    """A planner and a forecaster of the analyst."""
    policy = load(path)
    limits = read_exact_limits(policy.source.path, policy) if look else None
    with open_planner(policy) as planner:
        looking = None if limits is None else Look(planner, "analyst", limits)
        yield planner, Forecaster(planner, "analyst", look=looking)


def changed(policy: Policy, table: str, **values: object) -> Policy:
    """The policy with other fields of a table."""
    found = replace(policy.tables[table], **values)  # type: ignore[arg-type]
    return replace(policy, tables={**policy.tables, table: found})
