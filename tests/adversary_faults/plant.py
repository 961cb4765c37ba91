"""A copy of the package with a fault in it, and processes that use it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.adversary_faults.fault import Fault

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dpsql"


class NotPlanted(Exception):
    """The code is not what the fault was written for; the fault must follow it."""


def edited(fault: Fault, package: Path = PACKAGE) -> dict[str, str]:
    """The files of a fault with its edits made; each old text must be there exactly once."""
    texts: dict[str, str] = {}
    for edit in fault.edits:
        text = texts.get(edit.file) or (package / edit.file).read_text("utf-8")
        count = text.count(edit.old)
        if count != 1:
            raise NotPlanted(
                f"{fault.name}: {edit.file} has its old text {count} times: {edit.old!r}"
            )
        texts[edit.file] = text.replace(edit.old, edit.new)
    for file, text in texts.items():
        compile(text, file, "exec", dont_inherit=True)
    return texts


def plant(fault: Fault | None, folder: Path) -> Path:
    """Copy the package into a folder, with the fault if there is one; the folder is first on a path."""
    target = folder / "dpsql"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(PACKAGE, target)  # bytecode too, which has the times of its sources
    if fault is not None:
        for file, text in edited(fault).items():
            (target / file).write_text(text, "utf-8")
    return folder


def environment(folder: Path) -> Mapping[str, str]:
    """What a process needs to use the copy, and all that it starts, whatever folder they work in."""
    return {
        **os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
