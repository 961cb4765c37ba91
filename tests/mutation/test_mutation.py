"""Changes are single, drawn the same for a seed, made in a copy, and judged by what tests say."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import mmap
import shlex
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mutation import judges, timing
from tests.mutation.changes import Change, changes
from tests.mutation.covering import Cover, cover, files
from tests.mutation.draw import FOLDERS, draw
from tests.mutation.judges import Limits, Verdict, asked, judged, load, save, some
from tests.mutation.probes import probed
from tests.mutation.report import JUDGEMENTS, report, share_of
from tests.mutation.tree import _MEMORY, ROOT, Tree

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
        "from dpsql.privacy.small import capped, unused\n\n\n"
        "def test_small():\n    assert capped(5) == 3\n\n\n"
        "def test_wrong():\n    assert capped(2) == 7\n\n\n"
        "def test_unused():\n    assert unused(2) == 4\n"
    )
    (folder / "whole").write_text("abc")
    plugins = folder / "tests" / "mutation"
    plugins.mkdir()
    (plugins / "timing.py").write_text((ROOT / "tests/mutation/timing.py").read_text())
    return Tree.at(folder)


def _change(tree: Tree, kind: str, new: str = "pass") -> Change:
    path = "dpsql/privacy/small.py"
    return next(c for c in changes(path, tree.text(path)) if c.kind == kind and new in c.new)


@pytest.mark.skipif(sys.platform == "win32", reason="groups of processes are POSIX")
def test_from_what_tests_reach_to_who_notices(tree: Tree, tmp_path: Path) -> None:
    """A test that fails without a change judges nothing; a line that no test runs has no judge."""
    assert files(tree) == ["tests/unit/privacy/test_small.py"]
    drawn = changes("dpsql/privacy/small.py", tree.text("dpsql/privacy/small.py"))
    known = cover(tree, drawn, tmp_path / "cover", 30, float("inf"))
    small, unused = (f"tests/unit/privacy/test_small.py::test_{n}" for n in ("small", "unused"))
    assert list(known.seconds) == [small, unused]
    left_out = _change(tree, "return left out")
    assert known.reached[left_out.name] == {small}
    assert known.reached[drawn[0].name] == {small, unused}, "a line that is run at import"
    noticed = judged(left_out, "unit", tree, known, Limits())
    assert (noticed.killed, noticed.by) == (True, f"FAILED {small}")
    assert judged(left_out, "laws", tree, known, Limits()).killed is None
    nowhere = judged(_change(tree, "raise left out"), "unit", tree, known, Limits())
    assert (nowhere.killed, nowhere.by) == (None, "no test runs it")
    missed = judged(_change(tree, "part left out", "value > most"), "unit", tree, known, Limits())
    assert missed.killed is False
    assert tree.text("dpsql/privacy/small.py").count("value > most and value") == 1, "taken back"


@pytest.mark.parametrize(
    ("script", "killed"),
    [
        ("print('{{\"finding\": 1}}'); raise SystemExit(1)", True),
        ("raise SystemExit(2)", None),
        ("pass", False),
    ],
)
def test_the_adversary_says_so_or_says_nothing(
    tree: Tree, script: str, killed: bool | None
) -> None:
    limits = Limits(adversary=f"{{python}} -c {shlex.quote(script)}")
    verdict = judged(_change(tree, "raise left out"), "adversary", tree, Cover(), limits)
    assert verdict.killed is killed


def test_a_call_stands_before_each_statement_and_changes_nothing() -> None:
    lines = {c.lines for c in changes("m.py", SMALL)}
    text = probed(SMALL, {where: [key] for key, where in enumerate(sorted(lines))})
    ran: list[int] = []
    small: dict[str, object] = {"check": lambda *_: None}
    small["__builtins__"] = {**vars(builtins), "__import__": lambda *_: Hits(ran)}
    exec(text, small)
    assert small["capped"](2) == 2  # type: ignore[operator]
    reached = {sorted(lines)[key] for key in ran}
    assert (3, 3) in reached, "what is run at import"
    assert (9, 9) not in reached, "the words of an error"
    assert {(8, 9), (10, 10), (11, 12)} <= reached


class Hits:
    """What ``dpsql_reached`` is in a copy."""

    def __init__(self, ran: list[int]) -> None:
        self.reached = ran.append


@pytest.mark.parametrize(
    ("without", "killed"), [((False, ""), True), ((True, "time"), None), ((True, "FAILED"), None)]
)
def test_tests_that_take_too_long_without_a_change_say_nothing_of_it(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, without: tuple[bool, str], killed: bool | None
) -> None:
    change = _change(tree, "raise left out")
    name = "tests/unit/t.py::t"
    known = Cover({name: 1.0}, {change.name: {name}})
    before = tree.text(change.path)

    def tried(where: Tree, tests: list[str], cover: Cover) -> tuple[bool, str]:
        assert (tests, cover) == ([change.path, name], known)
        return without if where.text(change.path) == before else (True, judges.TIME)

    monkeypatch.setattr(judges, "_tests", tried)
    assert judged(change, "unit", tree, known, Limits()).killed is killed


@pytest.mark.parametrize(
    ("used", "waited", "over"), [(10, 10, False), (10, 70, True), (11, 0, True)]
)
def test_what_is_left_of_a_file_is_skipped_once_its_time_has_passed(
    used: float, waited: float, over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own time, not that of others on a busy machine; and an end to waiting."""
    monkeypatch.setattr(timing, "_began", {"tests/a.py": (5.0, 50.0)})
    monkeypatch.setattr(timing, "_now", lambda: (5.0 + used, 50.0 + waited))
    monkeypatch.setenv(timing.LIMIT, "10")
    with pytest.raises(pytest.skip.Exception) if over else contextlib.nullcontext():
        timing.pytest_runtest_setup(SimpleNamespace(nodeid="tests/a.py::b"))  # type: ignore[arg-type]


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


def test_the_fastest_come_first_unless_named_after_the_file_and_neighbours_last() -> None:
    change = next(c for c in changes("dpsql/price/price.py", SMALL) if c.kind == "arithmetic")
    names = [
        "tests/unit/a.py::slow",
        "tests/unit/a.py::fast",
        "tests/unit/test_price.py::x",
        "tests/laws/l.py::y",
        "tests/unit/a.py::other",
        "tests/unit/b.py::elsewhere",
    ]
    known = Cover(
        dict(zip(names, (2.0, 1.0, 3.0, 0.1, 0.5, 0.1), strict=True)), {change.name: {*names[:4]}}
    )
    ordered = known.of(change, ("tests/unit",))
    assert ordered == [names[2], names[1], names[0], names[4]]
    assert known.within(ordered, 4.5, 10) == [names[2], names[1]]
    assert known.within(ordered, 100, 1) == [names[2]]
    assert known.within(ordered, 1.1, 9) == [names[2]], "one, if it is not much longer"
    assert known.within(ordered, 0.5, 9) == []


def _verdicts(drawn: Sequence[Change], unit: str, laws: str) -> list[Verdict]:
    """One for each letter: ``+`` noticed, ``-`` not, anything else is not tried."""
    return [
        Verdict(change.name, judge, mark == "+", "", 1.0)
        for judge, marks in (("unit", unit), ("laws", laws))
        for change, mark in zip(drawn, marks, strict=True)
        if mark in "+-"
    ]


def test_a_judge_tries_what_others_missed_and_a_sample(tree: Tree) -> None:
    drawn = changes("m.py", SMALL)[:10]
    verdicts = _verdicts(drawn, "++++++++--", "          ")
    assert asked(drawn, verdicts, "unit", 0, 1) == list(drawn)
    chosen = asked(drawn, verdicts, "laws", 3, 1)
    assert chosen[:2] == list(drawn[8:])
    assert len({*chosen}) == 5
    assert asked(drawn, verdicts, "laws", 3, 1) == chosen
    assert asked(drawn, verdicts, "laws", 4, 1)[:5] == chosen


def test_a_random_sample_is_of_all_changes(tree: Tree) -> None:
    drawn = changes("m.py", SMALL)[:10]
    chosen = some(drawn, 4, 1)
    assert len({*chosen}) == 4
    assert {*chosen} < {*drawn}
    assert some(drawn, 4, 1) == chosen != some(drawn, 4, 2)
    assert {*some(drawn, 50, 1)} == {*drawn}


def test_the_share_of_a_random_sample_is_that_of_the_sample() -> None:
    """The changes that nobody else noticed count no more than others do."""
    drawn = changes("m.py", SMALL)[:10]
    verdicts = _verdicts(drawn, "+++++++---", "+-  -  +  ")
    assert share_of("laws", drawn, verdicts) == (4, 2, "50% (15% to 85%)")


def test_what_no_test_runs_counts_as_not_noticed() -> None:
    drawn = changes("m.py", SMALL)[:10]
    verdicts = _verdicts(drawn, "+++++++++ ", "          ")
    verdicts.append(Verdict(drawn[9].name, "unit", None, "no test runs it", 0.0))
    assert share_of("unit", drawn, verdicts) == (10, 9, "90%")


def test_shares_say_what_is_a_sample() -> None:
    drawn = changes("m.py", SMALL)[:10]
    assert share_of("laws", drawn, []) == (0, 0, "not tried")
    verdicts = _verdicts(drawn, "++++++++--", "+-+-    +-")
    assert share_of("unit", drawn, verdicts) == (10, 8, "80%")
    alone = _verdicts(drawn, "++++++++--", "        +-")
    assert share_of("laws", drawn, alone) == (2, 1, "no sample of what others notice")
    tried, noticed, share = share_of("laws", drawn, verdicts)
    assert (tried, noticed) == (6, 3)
    assert share == "50% (22% to 78%)", "one of two alone, and half of eight"


def test_the_page_lists_survivors_with_what_was_said_of_them(tree: Tree, tmp_path: Path) -> None:
    drawn = [_change(tree, "comparison", ">="), _change(tree, "arithmetic", "+")]
    drawn.append(_change(tree, "return left out"))
    place = tmp_path / "verdicts"
    for verdict in _verdicts(drawn, "--+", "   "):
        save(place, verdict)
    said = tmp_path / "judgements.toml"
    said.write_text(
        'note = "On one processor."\n[[survivor]]\nfile = "small.py"\nline = "return value * 2"\n'
        'new = "(value + 2)"\njudgement = "gap: nobody asks"\n'
    )
    page = report(drawn, tree, load(place), said)
    assert "commit `abc`: 3 changes" in page
    assert "1 of 3 are noticed by at least one judge. On one processor.\n" in page
    assert "| privacy/small.py:16 | `value * 2` to `(value + 2)` | gap: nobody asks |" in page
    assert page.count("**not judged**") == 1
    assert "| privacy/small.py:11 | `return most` to `pass` | + |  |  |" in page


def test_judgements_say_what_kind_and_gaps_say_whether_there_is_a_test() -> None:
    for one in tomllib.loads(JUDGEMENTS.read_text("utf-8"))["survivor"]:
        assert set(one) == {"file", "line", "new", "judgement"}
        kind, _, why = one["judgement"].partition(":")
        assert kind.split(",")[0] in ("equivalent", "harmless", "gap")
        assert why
        assert not kind.startswith("gap") or "without a test" in kind or "`" in why


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the sizes of Linux")
def test_a_fork_has_room_beside_what_its_process_holds(tree: Tree) -> None:
    unbacked = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Python 3.11 has no name for it
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | unbacked
    held = mmap.mmap(-1, _MEMORY + (1 << 30), flags=flags)
    ended = tree.tests(["tests/unit/privacy/test_small.py"], 60)
    held.close()
    assert ended.output.startswith(".F."), "the tests of the tree ran, one of which fails"
