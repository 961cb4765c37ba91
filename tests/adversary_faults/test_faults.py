"""The planted faults still apply to the code, compile, and are found by who looks for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversary_faults.__main__ import show
from tests.adversary_faults.every import BY_NAME, FAULTS
from tests.adversary_faults.fault import Edit, Fault
from tests.adversary_faults.hunt import COMMAND, State, finding, hunt, judge, names, table
from tests.adversary_faults.plant import PACKAGE, ROOT, NotPlanted, edited, environment, plant
from tests.adversary_faults.shown.every import SHOWS

QUICK = ("a threshold costs no delta", "the sign of a zero is a label", "a role may ask all tables")
CHANGED = Edit("privacy/entropy.py", "REKEY_BYTES = 1 << 28", "REKEY_BYTES = 1 << 27")
EXAMPLE = Fault("an example", "noise", (CHANGED,), "Nothing.")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_applies_to_the_code_as_it_is(fault: Fault) -> None:
    texts = edited(fault)
    assert texts.keys() == {edit.file for edit in fault.edits}
    assert all(text != (PACKAGE / file).read_text("utf-8") for file, text in texts.items())


def test_there_are_faults_of_every_area_and_of_every_old_hole() -> None:
    assert len(BY_NAME) == len(FAULTS) >= 45
    assert {fault.area for fault in FAULTS} == {
        "planner", "second check", "catalog", "post-processor", "faces", "ledger", "resources", "noise",
    }  # fmt: skip
    assert sum(fault.origin != "new" for fault in FAULTS) >= 30


def test_every_fault_has_a_reproduction() -> None:
    assert SHOWS.keys() == BY_NAME.keys()


@pytest.mark.parametrize("old", ["no such text", "def "])
def test_a_text_that_is_not_there_once_is_refused(old: str) -> None:
    edit = Edit("privacy/entropy.py", old, "")
    with pytest.raises(NotPlanted):
        edited(Fault("wrong", "noise", (edit,), "Nothing."))


def test_a_text_that_does_not_compile_is_refused() -> None:
    edit = Edit("privacy/entropy.py", "REKEY_BYTES = 1 << 28", "REKEY_BYTES = 1 <<")
    with pytest.raises(SyntaxError):
        edited(Fault("wrong", "noise", (edit,), "Nothing."))


def test_edits_of_one_file_follow_one_another() -> None:
    edits = (CHANGED, Edit("privacy/entropy.py", "REKEY_BYTES = 1 << 27", "REKEY_BYTES = 1 << 26"))
    assert (
        "REKEY_BYTES = 1 << 26"
        in edited(Fault("two", "noise", edits, "Nothing."))["privacy/entropy.py"]
    )


def test_a_process_uses_the_planted_package(tmp_path: Path) -> None:
    """The adversary is any command: this one ends with a finding if the edit is there."""
    look = (
        "import json, dpsql.privacy.entropy as e; w = e.REKEY_BYTES == 1 << 27;"
        " print('looking', flush=True); w and print(json.dumps({'finding': 'half', 'judge': 'bytes'})); raise SystemExit(w)"
    )
    (tmp_path / "look.py").write_text(look)
    command = f"{{python}} {tmp_path / 'look.py'} {{seconds}} {{seed}}"
    found = hunt(EXAMPLE, tmp_path, command, 60, 7)
    assert (found.found, found.by, found.seed, found.fault) == (True, "bytes", 7, "an example")
    other = Fault(
        "another", "noise", (Edit(CHANGED.file, CHANGED.old, CHANGED.old + " "),), "Nothing."
    )
    missed = hunt(other, tmp_path, command, 60, 7)
    assert (missed.found, missed.ended) == (False, 0)
    state = State(tmp_path / "state")
    state.keep(missed)
    state.keep(found)
    assert set(state.hunts().values()) == {found, missed}
    said = table(state.hunts().values())
    assert "| an example | noise | both | bytes |" in said
    assert "| another | noise | both | not found |" in said
    assert "1 of 2 found" in said
    more = table([found], [EXAMPLE, other])
    assert "| another | noise |  | not tried |" in more
    assert names(more) == {("an example", "noise"), ("another", "noise")}


def test_the_page_of_hunts_has_each_fault_once() -> None:
    text = (ROOT / "docs" / "planted_faults.md").read_text("utf-8")
    assert names(text) == {(fault.name, fault.area) for fault in FAULTS}
    assert sum(line.startswith("| ") for line in text.splitlines()) == len(FAULTS) + 1


def test_findings_in_a_file_count(tmp_path: Path) -> None:
    script = tmp_path / "write.py"
    script.write_text(
        'import sys; open(sys.argv[1], \'w\').write(\'{"finding": {"kind": "time"}}\\n\'); sys.exit(1)'
    )
    found = hunt(EXAMPLE, tmp_path, f"{{python}} {script} {{findings}}", 60, 1)
    assert (found.found, found.by, found.ended) == (True, "time", 1)


@pytest.mark.parametrize("line", ['"finding"', '["finding"]', '{"other": "finding"}', "no finding"])
def test_what_is_no_finding(line: str) -> None:
    assert finding(line) is None
    assert judge(line) == ""


def test_the_command_names_what_it_is_given() -> None:
    words = COMMAND.format(python=sys.executable, seconds=5, seed=1)
    assert words.endswith("-m tests.adversary --seconds 5 --seed 1 --json --first")


@pytest.mark.parametrize("how", ["-c", "-m"])
def test_the_copy_is_used_wherever_a_process_works(tmp_path: Path, how: str) -> None:
    """The repository holds a package of the same name, and Python looks where it stands first."""
    plant(None, tmp_path)
    (tmp_path / "dpsql" / "where.py").write_text("print(__file__)")
    words = {"-c": "import dpsql.where", "-m": "dpsql.where"}
    ended = subprocess.run(
        [sys.executable, how, words[how]],
        env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout.startswith(str(tmp_path))


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_shows_where_it_is_planted_alone(name: str) -> None:
    assert show(BY_NAME[name], planted=True)
    assert not show(BY_NAME[name], planted=False)


KEPT = {
    "declared values bound a prepared copy": ("unlisted_on_a_copy", "moves exact numbers by 5.0"),
    "whole numbers that are one double are two keys": (
        "two_keys_one_double", "moves exact numbers by 2.0",
    ),
    "keys that differ by nanoseconds are one unit": (
        "two_moments_one_unit", "a count grows when a unit goes",
    ),
    "a view that adds rows up is read again and again": (
        "two_readings_of_a_view", "moves exact numbers by 2.0",
    ),
    "copies of another database are read": (
        "copies_of_another", "copies of another database are read",
    ),
}  # fmt: skip
"""Attacks that the adversary repeats, and what each finds where a fault is planted."""


@pytest.mark.parametrize("planted", [True, False])
@pytest.mark.parametrize("name", KEPT)
def test_a_kept_attack_finds_the_fault_that_it_was_found_by(
    name: str, planted: bool, tmp_path: Path
) -> None:
    plant(BY_NAME[name] if planted else None, tmp_path)
    file, words = KEPT[name]
    kept = ROOT / "fixtures" / "adversary" / f"{file}.json"
    ended = subprocess.run(
        [sys.executable, "-m", "tests.adversary", "--again", str(kept)],
        env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode == 1) is planted, ended.stderr
    assert (words in ended.stdout) is planted


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", BY_NAME)
def test_every_fault_shows_where_it_is_planted_alone(name: str) -> None:
    assert (show(BY_NAME[name], planted=True), show(BY_NAME[name], planted=False)) == (True, False)
