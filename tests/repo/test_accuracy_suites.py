"""The accuracy benchmark: suites that stay as they were frozen, and figures that say what answers are worth."""

from __future__ import annotations

import doctest
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from benchmarks.accuracy import cells, labels, sources, suites
from benchmarks.accuracy.cells import LEAST_OF_RANK, contributions, digest, ordered_values, truth
from benchmarks.accuracy.labels import LABELS
from benchmarks.accuracy.oracle import Guarantee, Tuned, tune
from benchmarks.accuracy.runs import CannotAsk, Code, Run, code
from benchmarks.accuracy.score import Score, score
from benchmarks.accuracy.suites import Question, Suite
from benchmarks.accuracy.table import Figure, Table, dumps

ROOT = Path(__file__).parents[2]
FROZEN = "b43b7cbf03eebc3c01ae08e041212e3b037bbbe50b3922e619511fa90ff2e6dc"
"""Of ``other.json``. Defaults are chosen without it; who changes questions after that says so here."""
POLICY = """
units: {person: {table: people, key: id}}
tables:
  people: {unit: person, columns: {id: {type: bigint}}}
  t:
    unit: person
    foreign_keys: [{columns: [id], references: people}]
    max_rows_per_unit: 8
    columns:
      id: {type: bigint}
      g: {type: text, values: [a, b, c]}
      k: {type: text}
      x: {type: double, range: [0, 10], nullable: true}
"""
QUESTIONS = (
    Question("C", "rows by group", "count", "t", "id", ("g",)),
    Question("S", "sum by group", "sum", "t", "id", ("g",), "x", (0, 10)),
    Question("A", "mean by group", "avg", "t", "id", ("g",), "x", (0, 10)),
    Question("M", "median by group", "median", "t", "id", ("g",), "x", (0, 10)),
    Question("D", "people in all", "distinct", "t", "id", ()),
    Question("K", "keys found", "found", "t", "id", ("k",)),
)
TINY = Suite("tiny", "Twenty people.", POLICY, QUESTIONS, {}, {})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Person i has 1 + i % 4 rows, in groups a and b; each fifth value is missing."""
    path = tmp_path_factory.mktemp("accuracy") / "tiny.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE people AS SELECT range AS id FROM range(400)")
        db.execute(
            "CREATE TABLE t AS SELECT id, chr((97 + (id + i) % 2)::INTEGER) AS g, chr((97 + id % 4)::INTEGER) AS k,"
            " CASE WHEN (id + i) % 5 = 0 THEN NULL ELSE ((id + i) % 5 * 2)::DOUBLE END AS x"
            " FROM people, range(1 + id % 4) AS r(i)"
        )
    return path


@pytest.fixture
def db(data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(data), read_only=True) as connection:
        yield connection


def test_the_other_suite_is_as_it_was_frozen() -> None:
    assert hashlib.sha256(suites.path("other").read_bytes()).hexdigest() == FROZEN


def test_suites_have_the_questions_that_the_issue_names_and_their_truth() -> None:
    known, other = (suites.load(name) for name in suites.NAMES)
    assert sum(q.kind != "found" for q in known.questions) == 32
    assert len(other.questions) >= 40
    assert {q.kind for q in other.questions} >= {"count", "sum", "avg", "median", "distinct"}
    for suite in (known, other):
        names = [q.id for q in suite.questions]
        assert len(set(names)) == len(names)
        assert list(suite.truth) == names
        for q in suite.questions:
            assert (q.range is None) == (q.value is None)
    tables = [{*suite.data} for suite in (known, other)]
    assert tables[0] & tables[1] == {"ratings"}, (
        "two tables of that name, of students and of viewers"
    )


def test_freezing_writes_what_is_there() -> None:
    for name in suites.NAMES:
        suite = suites.load(name)
        assert suites.freeze(name, suite.data, suite.truth) == suites.path(name).read_text()


def test_examples_in_the_benchmark() -> None:
    for module in (cells, labels):
        assert doctest.testmod(module).failed == 0


def test_a_package_with_another_checksum_is_not_used(tmp_path: Path) -> None:
    for name in (sources.FLIGHTS, sources.FRAMES):
        (tmp_path / name).write_text("something else")
    with pytest.raises(sources.WrongData, match="remove the file"):
        sources.fetch(tmp_path)


def test_contributions_add_up_to_the_truth(db: duckdb.DuckDBPyConnection) -> None:
    for question in QUESTIONS[:5]:
        exact = np.array(list(truth(db, question).values()))
        found = contributions(db, question)
        rows, sums = (
            np.bincount(found.cells, values, minlength=found.size)
            for values in (found.rows, found.sums)
        )
        match question.kind:
            case "avg":
                assert sums / rows == pytest.approx(exact)
            case "median":
                assert [np.median(found.row_values[found.row_cells == c]) for c in (0, 1)] == list(
                    exact
                )
            case _:
                added = np.bincount(found.cells, found.added(question), minlength=found.size)
                assert added == pytest.approx(exact)
    assert digest(truth(db, QUESTIONS[0])) != digest(truth(db, QUESTIONS[1]))


def test_an_oracle_trades_noise_for_bias(db: duckdb.DuckDBPyConnection) -> None:
    """With a large epsilon nothing is cut; with a small one something is."""
    found = contributions(db, QUESTIONS[0])
    wide, narrow = (tune(QUESTIONS[0], found, Guarantee(e, 0.0)) for e in (10.0, 0.01))
    assert wide is not None
    assert narrow is not None
    assert wide.bounds == (4.0,)
    assert wide.error == pytest.approx(math.sqrt(2) * 4 / 10 / math.sqrt(math.prod(found.truth)))
    assert narrow.bounds < wide.bounds


def test_an_oracle_takes_the_noise_that_errs_least(db: duckdb.DuckDBPyConnection) -> None:
    for question in (*QUESTIONS[:3], QUESTIONS[4]):
        found = contributions(db, question)
        errors = [
            tune(question, found, guarantee)
            for guarantee in (Guarantee(1.0, 0.0), Guarantee(1.0, 1e-9), Guarantee(1.0, 100.0))
        ]
        assert None not in errors
        laplace, dear, cheap = (one for one in errors if one is not None)
        assert dear == laplace
        assert cheap.noise == "gaussian"
        assert cheap.error < laplace.error
    assert tune(QUESTIONS[5], found, Guarantee(1.0, 0.0)) is None


def _line(*rows: tuple[str, float | None, float | None, float | None]) -> dict[str, Any]:
    return {
        "rows": [list(row) for row in rows],
        "cost": {"epsilon": 1.0, "delta": 0.0},
        "notes": ["n"],
    }


def test_a_score_counts_bias_as_error_and_as_missed_coverage() -> None:
    exact = {"a": 100.0, "b": 0.0}
    lines = [_line(("a", 90.0, 88.0, 92.0), ("b", 0.0, -1.0, 1.0)) for _ in range(3)]
    found = score(lines, exact)
    assert [found.error, found.worst] == pytest.approx([0.1, 0.1])
    assert found.bias == pytest.approx(-0.1)
    assert found.covered == 0.5
    assert found.spread == 0
    assert found.notes == ("n",)


def test_a_score_says_what_is_missing_and_what_has_no_interval() -> None:
    exact = {"a": 100.0, "b": 50.0, "c": 10.0}
    lines = [_line(("a", 100.0, None, None), ("b", 60.0, 55.0, None), ("d", 1.0, 0.0, 2.0))] * 2
    found = score([*lines, _line(("c", None, None, None))], exact)
    assert found.missing == pytest.approx(5 / 9)
    assert found.open == 0.5
    assert found.covered == 0
    assert found.worst == pytest.approx(0.2)
    assert found.found == pytest.approx(7 / 3)
    assert score([_line()], exact).error is None
    assert score([{"refused": "DP1"}], exact).refused == "DP1"
    assert score([], exact).refused == "not asked"


def test_the_error_of_a_median_is_one_of_rank() -> None:
    """A value that is far off may be next to the median among the rows."""
    ordered = {"a": np.array([1.0, 2.0, 2.0, 2.0, 90.0, 95.0, 99.0, 99.0])}
    lines = [_line(("a", value, 0.0, 95.0)) for value in (2.0, 90.0)]
    assert [score([line], {"a": 46.0}, ordered).error for line in lines] == pytest.approx(
        [LEAST_OF_RANK] * 2
    )
    assert score([_line(("a", 95.0, None, None))], {"a": 46.0}, ordered).error == pytest.approx(
        1 / 8
    )
    assert score(lines, {"a": 46.0}, ordered).covered == 1


def test_an_oracle_of_medians_counts_ranks(db: duckdb.DuckDBPyConnection) -> None:
    median = QUESTIONS[3]
    found = contributions(db, median)
    errors = [tune(median, found, Guarantee(epsilon, 0.0)) for epsilon in (1e-4, 0.01, 10.0)]
    assert [one.error for one in errors if one] == sorted(
        [one.error for one in errors if one], reverse=True
    )
    assert errors[2] is not None
    assert errors[2].error == pytest.approx(LEAST_OF_RANK)
    ordered = ordered_values(db, median)
    assert ordered is not None
    assert list(ordered) == ["a", "b"]
    assert ordered_values(db, QUESTIONS[0]) is None


def test_a_spread_is_that_of_answers() -> None:
    near, far = _line(("a", 101.0, 0.0, 200.0)), _line(("a", 150.0, 0.0, 200.0))
    mixed = score([near, far] * 10, {"a": 100.0}).spread
    assert mixed is not None
    assert 0 < mixed < 0.5
    assert score([near], {"a": 100.0}).spread is None


def _score(error: float | None, covered: float = 0.95, **more: Any) -> Score:
    return Score(10, 3, error=error, covered=covered, **more)


def _table(
    name: str, figures: Mapping[Question, tuple[Score, Score | None, float | None]]
) -> Table:
    suite = Suite(name, "", "", tuple(figures), {}, {})
    return Table(suite, LABELS["label"], [
        Figure(q, now, before, None if best is None else Tuned(best, "laplace", (1.0,)))
        for q, (now, before, best) in figures.items()
    ])  # fmt: skip


def test_a_table_names_the_goals_that_are_missed() -> None:
    count, sums, mean, median, distinct, keys = QUESTIONS
    late = Question("F14", "planes by day", "distinct", "t", "id", ("g",))
    instructors = Question("K01", "instructors", "found", "t", "id", ("id",))
    table = _table("known", {
        count: (_score(0.1), _score(0.2), 0.1),
        sums: (_score(0.5), _score(0.4), 0.1),
        mean: (_score(0.3, 0.93), None, 0.1),
        median: (_score(None, refused="DP101: no"), None, None),
        distinct: (_score(0.3, 0.5), None, 0.1),
        late: (_score(0.14), None, 0.1),
        keys: (_score(9.0, 0.1, found=3.0), None, None),
        instructors: (_score(9.0, 0.1, found=139.0), _score(9.0, found=20.0), None),
    })  # fmt: skip
    assert list(table.missed()) == [
        "M is refused",
        "mean error over the oracle's 2.29x, goal 1.6x",
        "largest error over the oracle's 5.00x, goal 4.2x",
        "40% within twice the oracle's error, goal 75%",
        "S: 1.25x the error before, goal 1.2x",
        "D: coverage 0.500, goal 0.9",
        "F14: error 14.0%, goal 13%",
        "K01: 139 keys found, goal 140",
    ]
    text = "\n".join(table.lines())
    assert "found 139, before 20" in text
    assert "refused: DP101" in text
    record = table.record()
    assert json.loads(dumps(record)) == record
    assert record["questions"]["S"]["before"] == 0.4
    assert record["questions"]["K01"] == {"found": 139.0}
    assert dumps(record).count("\n") < 100


def test_a_table_of_good_answers_misses_nothing() -> None:
    assert list(_table("other", {QUESTIONS[0]: (_score(0.1), None, 0.09)}).missed()) == []


def test_answers_are_kept_and_a_run_goes_on(data: Path, tmp_path: Path) -> None:
    """Each answer is new, each is asked once, and a line that was cut off is asked again."""
    run = Run(TINY, LABELS["label"], ["nonnegative = on"], 3, code(str(ROOT), tmp_path), tmp_path)
    wanted = [QUESTIONS[0], QUESTIONS[3], QUESTIONS[5]]
    run.ask(data, 1, wanted[:1])
    run.file.write_text(run.file.read_text() + '{"id": "C", "ro')
    run.ask(data, 2, wanted)
    found = run.answers()
    assert {name: len(lines) for name, lines in found.items()} == dict.fromkeys("CMK", 2)
    first, second = found["C"]
    assert [row[0] for row in first["rows"]] == ["a", "b", "c"]
    assert first["rows"] != second["rows"]
    assert first["cost"]["epsilon"] <= 1
    with duckdb.connect(str(data), read_only=True) as db:
        for question in wanted:
            assert score(found[question.id], truth(db, question)).refused is None
    kept = run.file.read_text()
    run.ask(data, 2, wanted)
    assert run.file.read_text() == kept


def test_code_is_copied_and_told_apart(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "dpsql").mkdir(parents=True)
    (tree / "dpsql" / "__init__.py").write_text('"""Nothing."""\n')
    first = code(str(tree), tmp_path)
    assert code(str(tree), tmp_path) == first
    (tree / "dpsql" / "__init__.py").write_text('"""Something."""\n')
    second = code(str(tree), tmp_path)
    assert second.digest != first.digest
    assert (first.tree / "dpsql" / "__init__.py").read_text() == '"""Nothing."""\n'
    with pytest.raises(CannotAsk, match="neither a folder"):
        code("no-such-thing", tmp_path)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="commits are read from version control")
def test_the_code_of_a_commit_is_taken_from_version_control(tmp_path: Path) -> None:
    found = code("HEAD", tmp_path)
    assert (found.tree / "dpsql" / "pipeline.py").exists()
    assert found == code(found.name, tmp_path)


def test_code_that_does_not_know_the_label_says_so(data: Path, tmp_path: Path) -> None:
    (tmp_path / "dpsql").mkdir()
    (tmp_path / "dpsql" / "__init__.py").write_text(
        "class Error(Exception):\n    pass\n\n\n"
        "class Cursor:\n    pass\n\n\n"
        "def connect(policy):\n    raise Error('there is no key `share`')\n"
    )
    run = Run(TINY, LABELS["share"], (), None, Code("old", "0" * 64, tmp_path), tmp_path)
    with pytest.raises(CannotAsk, match="old, share: there is no key `share`"):
        run.ask(data, 1, QUESTIONS)
