"""The Star Schema Benchmark: what an answer has beside plain SQL's rows is whole axes of public tables."""

from __future__ import annotations

import itertools

import pytest
from support.corpus import CORPUS, WORLDS, Entry
from support.datasets import in_memory
from support.measured import opened

QUERIES = [entry for entry in CORPUS if entry.world is WORLDS["ssb"]]
YEARS = "SELECT DISTINCT d_year FROM date"
LATE = f"{YEARS} WHERE d_year >= 1997"
EARLY = f"{YEARS} WHERE d_year <= 1997"
KI = "IN ('UNITED KI1', 'UNITED KI5')"
AXES = {
    "ssb-4": (YEARS, "SELECT DISTINCT p_brand1 FROM part WHERE p_category = 'MFGR#12'"),
    "ssb-5": (YEARS, "SELECT DISTINCT p_brand1 FROM part WHERE p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228'"),
    "ssb-6": (YEARS, "SELECT DISTINCT p_brand1 FROM part WHERE p_brand1 = 'MFGR#2239'"),
    "ssb-7": (
        "SELECT DISTINCT nation FROM cities WHERE region = 'ASIA'",
        "SELECT DISTINCT s_nation FROM supplier WHERE s_region = 'ASIA'", EARLY,
    ),
    "ssb-8": (
        "SELECT city FROM cities WHERE nation = 'UNITED STATES'",
        "SELECT DISTINCT s_city FROM supplier WHERE s_nation = 'UNITED STATES'", EARLY,
    ),
    "ssb-9": (f"SELECT city FROM cities WHERE city {KI}", f"SELECT DISTINCT s_city FROM supplier WHERE s_city {KI}", EARLY),
    "ssb-10": (
        f"SELECT city FROM cities WHERE city {KI}", f"SELECT DISTINCT s_city FROM supplier WHERE s_city {KI}",
        f"{YEARS} WHERE d_yearmonth = 'Dec1997'",
    ),
    "ssb-11": (YEARS, "SELECT DISTINCT nation FROM cities WHERE region = 'AMERICA'"),
    "ssb-12": (
        LATE, "SELECT DISTINCT s_nation FROM supplier WHERE s_region = 'AMERICA'",
        "SELECT DISTINCT p_category FROM part WHERE p_mfgr IN ('MFGR#1', 'MFGR#2')",
    ),
    "ssb-13": (
        LATE, "SELECT DISTINCT s_city FROM supplier WHERE s_nation = 'UNITED STATES'",
        "SELECT DISTINCT p_brand1 FROM part WHERE p_category = 'MFGR#14'",
    ),
}  # fmt: skip
"""For each query that groups: the values of each key, as public tables have them under its conditions."""


def test_there_are_thirteen() -> None:
    assert len(QUERIES) == 13
    assert {e.name for e in QUERIES if "group by" in e.sql} == AXES.keys()


@pytest.mark.parametrize("entry", [e for e in QUERIES if e.name in AXES], ids=str)
def test_groups_are_whole_axes_of_public_tables(entry: Entry) -> None:
    plain = in_memory("ssb")
    axes = [[row[0] for row in plain.sql(sql).fetchall()] for sql in AXES[entry.name]]
    reply = opened(entry.world).session().execute(entry.sql)
    keys = [i for i, c in enumerate(reply.columns) if c.name not in ("revenue", "profit")]
    found = [tuple(row[i] for i in keys) for row in zip(*(c.to_pylist() for c in reply.table.columns), strict=True)]  # fmt: skip
    assert len(found) == len(set(found))
    assert set(found) == set(itertools.product(*axes))
    wanted = plain.sql(entry.sql).fetchall()
    assert wanted, "plain SQL finds rows"
    assert {tuple(row[i] for i in keys) for row in wanted} <= set(found)
    assert any("all public groups are shown" in note for note in reply.notes)
