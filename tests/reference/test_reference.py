"""Every query of the corpus measures, costs and answers what it did when the reference was recorded.

``make reference`` records it anew; that is a change of behaviour, to be explained in its commit.
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.corpus import CORPUS

from dpsql.engines.duckdb import terms
from dpsql.price import price
from dpsql.privacy.mechanisms import laplace_for
from tests.reference import files
from tests.reference.compare import differences, dump
from tests.reference.record import record

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
SAMPLE = CORPUS if NIGHTLY else CORPUS[::24]
DUMPS = Path(__file__).parents[2] / "build" / "reference"


@pytest.mark.parametrize("name", files.STEMS)
def test_queries_are_as_recorded(name: str, rewrite: bool) -> None:
    recorded = files.read(name)
    chosen = [e for e in (CORPUS if rewrite else SAMPLE) if files.stem(e) == name]
    found = [json.loads(json.dumps(record(e))) for e in chosen]
    said = [dump(recorded[f["sql"]], f, DUMPS) for f in found if f["sql"] in recorded]
    if rewrite:
        files.write(name, found)
        print("\n".join(filter(None, said)))  # what the new reference changes
    else:
        assert not any(said), "\n".join(filter(None, said))


@pytest.mark.parametrize("name", files.STEMS)
def test_every_query_has_a_record(name: str) -> None:
    assert list(files.read(name)) == [e.sql for e in CORPUS if files.stem(e) == name]


def test_the_reference_is_small() -> None:
    assert sum(path.stat().st_size for path in files.FOLDER.iterdir()) < 3_000_000


EXAMPLE = next(e for e in CORPUS if e.name == "sums-1")


def _changed(*path: str | int, value: Any) -> list[str]:
    recorded = files.read("sums")[EXAMPLE.sql]
    found = copy.deepcopy(recorded)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return differences(recorded, found)


def test_a_difference_names_query_measurement_and_what_differs() -> None:
    recorded = files.read("sums")[EXAMPLE.sql]
    way, data = next(iter(recorded["integers"])), "neighbour of dirty"
    key, values = recorded["integers"][way][data][0]
    (line,) = _changed("integers", way, data, 0, value=[key, [values[0] + 1, *values[1:]]])
    assert line.startswith(f"sums-1: integers > {way} > {data}, group {json.dumps(key)}: recorded")
    for part, value in (
        ("price", {}), ("events", []), ("notes", ["a note"]), ("ledger", []), ("columns", []),
    ):  # fmt: skip
        assert (
            f"sums-1: answered > clean > {part}"
            in _changed("answered", "clean", part, value=value)[0]
        )
    assert (
        "sums-1: modest request > family" in _changed("modest request", "family", value="none")[0]
    )
    rows = recorded["answered"]["clean"]["answer"]
    lines = _changed("answered", "clean", "answer", value=rows[1:])
    assert lines[0].startswith("sums-1: answered > clean > answer: recorded the row")


def test_the_noise_of_an_answer_is_no_difference_and_any_more_is() -> None:
    answer = files.read("sums")[EXAMPLE.sql]["answered"]["clean"]["answer"]
    place = next(i for i, v in enumerate(answer[0]) if isinstance(v, float))

    def moved(by: float) -> list[str]:
        row = [v * (1 + by) if i == place else v for i, v in enumerate(answer[0])]
        return _changed("answered", "clean", "answer", 0, value=row)

    assert moved(1e-9) == []
    assert len(moved(1e-2)) == 2


def _rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    real = terms._rounded
    monkeypatch.setattr(terms, "_rounded", lambda *args: real(*args).replace("floor(", "ceil("))


def _drawn_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    real = terms._tagged
    monkeypatch.setattr(terms, "_tagged", lambda *args: ["1", *real(*args)])


def _biased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price, "laplace_for", lambda l1, epsilon: laplace_for(l1, 2 * epsilon))


FAULTS = {
    "rounding": (_rounded_up, "sums-1", "integers > "),
    "which groups a unit keeps": (_drawn_otherwise, "keys-48", "integers > "),
    "half the noise": (_biased, "sums-1", "modest request > parts[0] > noise"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, name, place = FAULTS[fault]
    entry = next(e for e in CORPUS if e.name == name)
    known = files.read(files.stem(entry))[entry.sql]
    assert differences(known, json.loads(json.dumps(record(entry)))) == []  # prepares the data too
    plant(monkeypatch)
    found = differences(known, json.loads(json.dumps(record(entry))))
    assert any(line.startswith(f"{name}: {place}") for line in found), found[:5]


def test_a_record_is_the_same_twice() -> None:
    """Whatever draws noise and groups is fixed."""
    assert differences(record(EXAMPLE), record(EXAMPLE)) == []
