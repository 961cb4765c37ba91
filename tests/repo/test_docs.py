"""The documents name everything that exists, and what is made from the code is fresh."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import readme_tables

from dpsql.cli.arguments import COMMANDS
from dpsql.diagnostics.codes import CODES
from dpsql.policy import keys
from dpsql.policy.schema import markdown, schema
from dpsql.service.settings import SETTINGS
from tests.repo import architecture_picture

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
HEADINGS = set(re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE))


@pytest.mark.parametrize("code", CODES)
def test_every_refusal_code_has_its_heading(code: str) -> None:
    assert code in HEADINGS


@pytest.mark.parametrize("command", [c.name for c in COMMANDS])
def test_every_command_has_its_heading(command: str) -> None:
    assert f"dpsql {command}" in HEADINGS


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_has_its_heading(setting: str) -> None:
    assert f"dpsql.{setting}" in HEADINGS


@pytest.mark.parametrize("key", [key.name for key in keys.POLICY.keys])
def test_every_part_of_a_policy_has_its_heading(key: str) -> None:
    assert key in HEADINGS


def test_every_policy_key_has_its_row() -> None:
    for row in markdown().splitlines():
        assert row in TEXT


def test_what_is_made_from_the_code_is_fresh() -> None:
    assert readme_tables.rewritten(TEXT) == TEXT, "run: python tests/repo/readme_tables.py"


def test_every_made_region_is_used() -> None:
    assert set(re.findall(r"<!-- made: (\w+) -->", TEXT)) == set(readme_tables.REGIONS)


def test_the_policy_schema_is_fresh() -> None:
    stored = json.loads((ROOT / "grammar" / "policy.schema.json").read_text())
    assert stored == json.loads(json.dumps(schema()))


def test_links_within_the_documents_lead_somewhere() -> None:
    anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in HEADINGS}
    for name in ("README.md", "SECURITY.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if target.startswith("#"):
                assert target[1:] in anchors, target
            elif not target.startswith("https://"):
                assert (ROOT / target).exists(), target


def test_the_contents_list_every_chapter() -> None:
    chapters = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    listed = re.findall(r"^- \[([^\]]+)\]\(#", TEXT, re.MULTILINE)
    assert listed == chapters


def test_changes_are_whole_sentences() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.split(r"\n- ", text)[1:]
    assert entries
    assert all(entry.strip().endswith(".") for entry in entries)


def test_the_tests_that_security_names_exist() -> None:
    """A guarantee whose test was renamed or removed is noticed."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) >= 20
    for file, test in named:
        found = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {test or 'test_'}" in found, f"{file}::{test}"
    guarantees = text.partition("## What is guaranteed")[2].partition("## What is not")[0]
    for guarantee in re.split(r"^\d\. ", guarantees, flags=re.MULTILINE)[1:]:
        assert "`tests/" in guarantee, f"a guarantee without a test: {guarantee[:60]}"


def test_the_picture_of_the_parts_is_fresh() -> None:
    page = architecture_picture.PAGE.read_text(encoding="utf-8")
    assert architecture_picture.rewritten(page) == page, (
        "run: python -m tests.repo.architecture_picture"
    )


def test_the_architecture_names_what_exists() -> None:
    page = architecture_picture.PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?|\w+\.py)`", page)
    assert len(named) > 15
    assert [n for n in named if not (ROOT / n).exists() and not (ROOT / "dpsql" / n).exists()] == []
