"""What a body over HTTP costs before anybody is known to want its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpsql.serve.http.openapi import LARGEST_BODY
from dpsql.serve.http.question import MOST_BRACKETS, Unreadable, question


def _filled(piece: bytes, end: bytes = b"]}") -> bytes:
    head = b'{"sql": "x", "parameters": ['
    return head + piece * ((LARGEST_BODY - len(head) - len(end)) // len(piece)) + end


@pytest.mark.parametrize("body", [
    _filled(b"[],", b"[]]}"), _filled(b'{"a":[1]},', b"1]}"), _filled(b"["), _filled(b'"\\"",[],'),
    _filled(b"[{") + b'"' + b'\\"' * 100, b"[" * LARGEST_BODY,
], ids=["lists", "objects", "deep", "behind texts", "before a text without end", "nothing else"])  # fmt: skip
def test_a_body_of_lists_is_refused_before_it_is_read(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(json, "loads", read)
    with pytest.raises(Unreadable, match=f"more than {MOST_BRACKETS} lists and objects"):
        question(body, arrow=False)


@pytest.mark.parametrize("text", ["[{" * 50_000, '"[' * 50_000, "\\[" * 50_000, 'x\\"["' * 9_000])
def test_texts_have_as_many_brackets_as_they_like(text: str) -> None:
    asked = question(json.dumps({"sql": text, "parameters": [text]}).encode(), arrow=False)
    assert (asked.sql, asked.parameters) == (text, (text,))


@pytest.mark.parametrize("end", [b"", b"\\", b"[" * 2_000])
def test_a_text_without_end_is_no_json(end: bytes) -> None:
    with pytest.raises(Unreadable, match="not JSON"):
        question(b'{"sql": "' + b"[" * 2_000 + end, arrow=False)
