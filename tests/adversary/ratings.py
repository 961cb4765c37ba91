"""A small world in which everything is answered, for tests of the adversary itself."""

from __future__ import annotations

from tests.adversary.model import Row, World

VICTIM = "person:3"
POLICY = """\
source: {engine: duckdb, path: data.duckdb}
data_version: "1"
units: {person: {key: u}}
tables:
  t:
    unit: person
    max_rows_per_unit: 5
    columns:
      u: {type: bigint}
      x: {type: double, range: [0, 8]}
      c: {type: text, values: [web, shop, phone]}
accounts: {dataset: {epsilon: 1000000, delta: 1e-3}}
roles: {analyst: {session: {epsilon: 1000000}, query: {epsilon: 1, delta: 1e-6}}}
"""


def _rows() -> tuple[Row, ...]:
    found = []
    for unit in range(40):
        for number in range(1 + unit % 3):
            x = 7.5 if f"person:{unit}" == VICTIM else (unit + number) % 6
            word = ("web", "shop", "phone")[unit % 3]
            found.append(Row("t", (str(unit), f"{x}::DOUBLE", f"'{word}'"), f"person:{unit}"))
    return tuple(found)


RATINGS = World("ratings", POLICY, ("CREATE TABLE t (u BIGINT, x DOUBLE, c VARCHAR)",), _rows())
