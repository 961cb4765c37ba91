"""Changes are single, drawn the same for a seed, made in a copy, and judged by what tests say."""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import pytest

from tests.mutation import judges, timing
from tests.mutation.changes import Change, changes
from tests.mutation.covering import Cover, cover, files
from tests.mutation.draw import FOLDERS, draw
from tests.mutation.judges import Limits, Verdict, judged, load, report, save, shares
from tests.mutation.tree import ROOT, Tree

SMALL = '''"""A module."""

LIMIT: int | None = 3


def capped(value: int, most: int = LIMIT) -> int:
    """At most so much."""
    if not value >= 0:
        raise ValueError(f"{value + 1}")
    check(value, most)
    if value > most and value:
        return most
    return value


def unused(value: int) -> int:
    return value * 2
'''


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("comparison", "value > most", "value >= most"),
        ("comparison", "value > most", "value < most"),
        ("constant", "= 3", "= 4"),
        ("constant", "= 3", "= 2"),
        ("arithmetic", "value * 2", "value + 2"),
        ("not left out", "not value >= 0", "value >= 0"),
        ("raise left out", 'raise ValueError(f"{value + 1}")', "pass"),
        ("call left out", "check(value, most)", "pass"),
        ("return left out", "return most", "pass"),
        ("arguments", "check(value, most)", "check(most, value)"),
        ("condition", "value > most and value", "value > most or value"),
        ("part left out", "value > most and value", "value > most"),
    ],
)
def test_each_kind_of_change(kind: str, old: str, new: str) -> None:
    made = [c.applied(SMALL) for c in changes("m.py", SMALL) if c.kind == kind]
    plain = [text.replace("(", "").replace(")", "") for text in made]
    assert SMALL.replace(old, new).replace("(", "").replace(")", "") in plain


def test_what_is_not_run_is_left_alone() -> None:
    found = changes("m.py", SMALL)
    assert not any(c.applied(SMALL) == SMALL for c in found)
    touched = {c.place.line for c in found}
    lines = SMALL.splitlines()
    assert 1 not in touched, "a docstring"
    assert all("int |" in lines[c.place.line - 1] for c in found if c.place.line == 3)
    assert not any(
        c.kind == "return left out" and lines[c.place.line - 1] == "    return value" for c in found
    )
    assert not any("value - 1" in c.new for c in found), "words of an error"


def test_a_change_is_one_and_is_printed_as_a_diff() -> None:
    change = next(c for c in changes("m.py", SMALL) if c.kind == "call left out")
    assert "-    check(value, most)\n+    pass\n" in change.diff(SMALL)
    changed = zip(SMALL.splitlines(), change.applied(SMALL).splitlines(), strict=True)
    assert sum(a != b for a, b in changed) == 1


def test_characters_of_several_bytes_stand_where_they_stood() -> None:
    text = 'a = "ä" + b\nc = ("ö", 1)\n'
    [change] = [c for c in changes("m.py", text) if c.new == "2"]
    assert change.applied(text) == 'a = "ä" + b\nc = ("ö", 2)\n'


def test_the_same_seed_draws_the_same_and_each_folder_has_its_turn() -> None:
    first, again, other = (list(itertools.islice(draw(ROOT, seed), 12)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({c.name for c in first}) == 12
    for change, folder in zip(first, itertools.cycle(FOLDERS), strict=False):
        assert change.path.startswith(f"dpsql/{folder}/")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A copy with one module of ours, and one test of it."""
    folder = tmp_path / "tree"
    (folder / "dpsql" / "privacy").mkdir(parents=True)
    (folder / "tests" / "unit" / "privacy").mkdir(parents=True)
    for package in (folder / "dpsql", folder / "dpsql" / "privacy"):
        (package / "__init__.py").write_text("")
    module = SMALL.replace("    check(value, most)\n", "")
    (folder / "dpsql" / "privacy" / "small.py").write_text(module)
    (folder / "tests" / "unit" / "privacy" / "test_small.py").write_text(
        "from dpsql.privacy.small import capped\n\n\ndef test_small():\n    assert capped(5) == 3\n\n\n"
        "def test_wrong():\n    assert capped(2) == 7\n"
    )
    (folder / "whole").touch()
    plugins = folder / "tests" / "mutation"
    plugins.mkdir()
    (plugins / "timing.py").write_text((ROOT / "tests/mutation/timing.py").read_text())
    return Tree.at(folder)


def _change(tree: Tree, kind: str, new: str = "pass") -> Change:
    path = "dpsql/privacy/small.py"
    return next(c for c in changes(path, tree.text(path)) if c.kind == kind and new in c.new)


@pytest.mark.skipif(sys.platform == "win32", reason="groups of processes are POSIX")
def test_from_what_tests_run_to_who_notices(tree: Tree, tmp_path: Path) -> None:
    """A test that fails without a change judges nothing; a line that no test runs has no judge."""
    assert files(tree) == ["tests/unit/privacy/test_small.py"]
    known = cover(tree, tmp_path / "cover", 30, float("inf"))
    name = "tests/unit/privacy/test_small.py::test_small"
    assert list(known.seconds) == [name]
    noticed = judged(_change(tree, "return left out"), tree, known, Limits())
    assert noticed.killed == {"unit": True, "laws": None}
    assert noticed.by["unit"] == f"FAILED {name}"
    missed = judged(_change(tree, "raise left out"), tree, known, Limits())
    assert missed.survived
    assert tree.text("dpsql/privacy/small.py").count("raise ValueError") == 1, "it was taken back"
    adversary = '{python} -c "print(\'{{\\"finding\\": 1}}\'); raise SystemExit(1)"'
    found = judged(_change(tree, "raise left out"), tree, known, Limits(adversary=adversary))
    assert found.killed["adversary"]
    broken = Limits(adversary="{python} -c 'raise SystemExit(2)'")
    assert judged(_change(tree, "raise left out"), tree, known, broken).killed["adversary"] is None
    place = tmp_path / "verdicts"
    for verdict in (noticed, missed):
        save(place, verdict)
    assert load(place) == [noticed, missed]
    assert shares(load(place)) == {"unit": (1, 2), "laws": (0, 0)}
    assert "2 changes, 1 noticed" in report(load(place))
    assert missed.diff in report(load(place))


@pytest.mark.parametrize(
    ("without", "killed"), [((False, ""), True), ((True, "time"), None), ((True, "FAILED"), None)]
)
def test_tests_that_take_too_long_without_a_change_say_nothing_of_it(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, without: tuple[bool, str], killed: bool | None
) -> None:
    change = _change(tree, "raise left out")
    name = "tests/unit/t.py::t"
    known = Cover({name: 1.0}, {change.path: {change.place.line: {name}}})
    before = tree.text(change.path)

    def tried(where: Tree, tests: list[str], cover: Cover) -> tuple[bool, str]:
        assert (tests, cover) == ([name], known)
        return without if where.text(change.path) == before else (True, judges.TIME)

    monkeypatch.setattr(judges, "_tests", tried)
    assert judged(change, tree, known, Limits()).killed["unit"] is killed


def test_what_is_left_of_a_file_is_skipped_once_its_time_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "_began", [time.monotonic() - 10])
    monkeypatch.setenv(timing.LIMIT, "100")
    timing.pytest_runtest_setup()
    monkeypatch.setenv(timing.LIMIT, "9")
    with pytest.raises(pytest.skip.Exception):
        timing.pytest_runtest_setup()


def test_a_run_that_was_killed_is_mended(tree: Tree) -> None:
    path = "dpsql/privacy/small.py"
    before = tree.text(path)
    with tree.changed(_change(tree, "raise left out")):
        assert tree.text(path) != before
    assert tree.text(path) == before
    (tree.folder / "before_change").write_text(f"{path}\n{before}")
    (tree.folder / path).write_text("half")
    tree.mend()
    assert tree.text(path) == before


def test_tests_named_after_a_file_come_first_then_the_fastest() -> None:
    change = next(c for c in changes("dpsql/plan/price.py", SMALL) if c.kind == "arithmetic")
    names = [
        "tests/unit/a.py::slow",
        "tests/unit/a.py::fast",
        "tests/unit/test_price.py::x",
        "tests/laws/l.py::y",
    ]
    known = Cover(
        dict(zip(names, (2.0, 1.0, 3.0, 0.1), strict=True)),
        {change.path: {change.place.line: {*names}}},
    )
    ordered = known.of(change, ("tests/unit",))
    assert ordered == [names[2], names[1], names[0]]
    assert known.within(ordered, 4.5, 10) == [names[2], names[1]]
    assert known.within(ordered, 100, 1) == [names[2]]
    elsewhere = Cover(known.seconds, {change.path: {1: {names[1]}}})
    assert elsewhere.of(change, ("tests/unit",)) == [names[1]], (
        "a line that is run when it is imported"
    )


def test_a_verdict_without_judges_survives() -> None:
    assert Verdict("n", "p", "k", "d", {"unit": None, "laws": False}).survived
    assert not Verdict("n", "p", "k", "d", {"unit": None, "laws": True}).survived
