"""A new data_version in the text of a policy: comments, layout, links and modes stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from policy_text import SMALL

from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy import edit
from dpsql.policy.load import load

FORMS = {
    "bare": ("data_version: 1", "data_version: 2026.5", "2026.5"),
    "bare to quoted": ("data_version: 1", 'data_version: "a: b"', "a: b"),
    "double": ('data_version: "1" # why', 'data_version: "ä" # why', "ä"),
    "single": ("data_version:   '1'", "data_version:   'it''s'", "it's"),
    "block": ("data_version: |-\n  1", 'data_version: "2"', "2"),
    "folded": ("data_version: >-\n  1\n  0", 'data_version: "2"', "2"),
    "over lines": ('data_version:\n  "1"', 'data_version:\n  "2"', "2"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_the_value_changes(form: str, end: str, tmp_path: Path) -> None:
    old, new, version = FORMS[form]
    path = tmp_path / "p.yaml"
    text = f"# kept\n{SMALL}"
    assert text.count("data_version: 1\n") == 1
    before = text.replace("data_version: 1", old).replace("\n", end)
    path.write_bytes(before.encode())
    edit.write_data_version(load(path), version)
    assert load(path).data_version == version
    expected = text.replace("data_version: 1", new)
    assert path.read_bytes().decode().replace("\r\n", "\n") == expected
    assert [p.name for p in tmp_path.iterdir()] == ["p.yaml"]


def test_a_link_stays_and_so_do_the_mode_and_the_mark(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "p.yaml"
    real.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    real.chmod(0o640)
    link.symlink_to("real.yaml")
    edit.write_data_version(load(link), "2")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.read_bytes() == b"\xef\xbb\xbf" + SMALL.replace("data_version: 1", "data_version: 2").encode()  # fmt: skip


def test_a_text_that_would_mean_something_else_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(SMALL)
    policy = load(path)
    for change in (
        lambda text, key, value: text,
        lambda text, key, value: text.replace("data_version: 1", "data_version: 2").replace(
            "roles:", "time_zone: Europe/Vienna\nroles:"
        ),
    ):
        monkeypatch.setattr(edit, "replace_value", change)
        with pytest.raises(PolicyError, match=r'write `data_version: "2"` yourself'):
            edit.write_data_version(policy, "2")
    assert path.read_text() == SMALL


def test_a_folder_that_cannot_be_written_leaves_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(SMALL)
    policy = load(path)

    def fails(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(PermissionError):
        edit.write_data_version(policy, "2")
    assert path.read_text() == SMALL
    assert [p.name for p in tmp_path.iterdir()] == ["p.yaml"]
