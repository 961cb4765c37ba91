"""Replaces one value in the text of a policy, and leaves comments and layout as they are."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import yaml

from dpsql.diagnostics.quote import place
from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.document import text_of
from dpsql.policy.load import parse
from dpsql.policy.model import Policy

_BARE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MARK = b"\xef\xbb\xbf"
"""The bytes that some editors write at the start of a file in UTF-8."""


def write_data_version(policy: Policy, version: str) -> None:
    """Give the file of a policy another ``data_version``: all of the new text is written, or none.

    The file keeps its mode, and a link to it stays a link. Raises ``PolicyError``, and writes
    nothing, if the new text would mean anything else than the old one with that version.
    """
    name = place(policy.path)
    text = text_of(policy.path, name)
    old, changed = parse(text, policy.path, name), replace_value(text, "data_version", version)
    if not _differs_in_version(old, parse(changed, policy.path, name), version):
        raise PolicyError(
            f'{name}: data_version cannot be replaced here; write `data_version: "{version}"` yourself'
        )
    file = policy.path.resolve()
    mark = _MARK if file.read_bytes().startswith(_MARK) else b""
    number, new = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(number, "wb") as out:
            out.write(mark + changed.encode())
            out.flush()
            os.fsync(out.fileno())
        Path(new).chmod(file.stat().st_mode & 0o7777)
        Path(new).replace(file)
    except OSError:
        Path(new).unlink(missing_ok=True)
        raise


def replace_value(text: str, key: str, value: str) -> str:
    """The text of a policy with another value for one of its outermost keys.

    The value is quoted as the old one is.

    >>> replace_value("a: 'x'  # kept\\nb: 2\\n", "a", "it's")
    "a: 'it''s'  # kept\\nb: 2\\n"
    >>> replace_value("{b: 2, a: 1}", "a", "2026-11-01")
    '{b: 2, a: 2026-11-01}'
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode), "a policy is a mapping"
    [node] = [held for name, held in root.value if name.value == key]
    assert isinstance(node, yaml.ScalarNode), "its value is a scalar"
    quoted = json.dumps(value, ensure_ascii=not value.isprintable())
    match node.style:
        case "'":
            written = "'" + value.replace("'", "''") + "'"
        case None if _BARE.fullmatch(value):
            written = value
        case "|" | ">":
            written = f"{quoted}\n"
        case _:
            written = quoted
    return text[: node.start_mark.index] + written + text[node.end_mark.index :]


def _differs_in_version(old: Policy, new: Policy, version: str) -> bool:
    """Whether ``new`` is ``old`` with that data version, and nothing else."""
    as_before = replace(
        new, data_version=old.data_version, version=old.version, answers_key=old.answers_key
    )
    return new.data_version == version and as_before == old
