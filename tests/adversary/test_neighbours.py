"""Neighbours over the wire are the same to the last bit, and what is not the same is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary import neighbours
from tests.adversary.faces.server import COMMAND
from tests.adversary.faces.servers import Servers


def test_neighbours_say_the_same_over_the_wire(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(neighbours, "FACES", ("extended binary",))
    assert list(neighbours.compare(tmp_path, Servers())) == []


def test_noise_that_is_drawn_anew_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Endpoints as they are: each has noise of its own, and its own exact numbers."""
    monkeypatch.setattr(neighbours, "FACES", ("simple",))
    monkeypatch.setattr(neighbours, "questions", lambda: tuple(neighbours.shop.questions()[:3]))
    [found] = neighbours.compare(tmp_path, Servers(), program=COMMAND)
    assert (found.judge, found.meaning) == ("sameness", "neighbours differ in: rows")
