"""What a session may set: every setting is read, shown, taken back, and refused when it is no value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.cli.demo import POLICY
from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.demo_data import write_demo_data
from dpsql.service import Service, Session
from dpsql.service.settings import SETTINGS, Settings

COUNT = "SELECT COUNT(*) AS n FROM customers"
VALUES = {
    "epsilon": ("0.25", "0", "much", "1e-320"),
    "delta": ("1e-8", "1", "x", "1e-320"),
    "max_error": ("50", "0", "near"),
    "mechanism": ("'gaussian'", "'none'", "off"),
    "dialect": ("'postgres'", "'klingon'", "1"),
    "intervals": ("on", "perhaps", "2"),
    "fresh": ("on", "perhaps", "2"),
    "search": ("on", "perhaps", "2"),
    "nonnegative": ("on", "perhaps", "2"),
    "consistent": ("on", "perhaps", "2"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "shop.duckdb"
    write_demo_data(path)
    return path


@pytest.fixture
def session(data: Path, tmp_path: Path) -> Iterator[Session]:
    policy = tmp_path / "policy.yaml"
    text = POLICY.replace("path: shop.duckdb", f"path: {json.dumps(str(data))}")
    policy.write_text(text.replace("query: {share: 5%}", "query: {epsilon: 0.5}"))
    with Service.open(policy) as service:
        yield service.session("analyst")


@pytest.mark.parametrize("name", sorted(set(SETTINGS) & set(VALUES)))
def test_a_setting_is_set_shown_and_taken_back(session: Session, name: str) -> None:
    good, *bad = VALUES[name]
    usual = getattr(Settings(), name)
    session.execute(f"SET dpsql.{name} = {good}")
    assert getattr(session.settings, name) is not None
    shown = session.execute(f"SHOW dpsql.{name};")
    assert shown.columns[0].name == f"dpsql.{name}"
    for value in bad:
        with pytest.raises(Refused) as caught:
            session.execute(f"SET dpsql.{name} TO {value}")
        assert caught.value.code == "DP401"
        session.execute(caught.value.instead)
    session.execute(f"RESET dpsql.{name}")
    assert getattr(session.settings, name) == usual
    session.execute(f"set session dpsql.{name} = {good}")
    session.execute(f"SET dpsql.{name} = DEFAULT")
    assert getattr(session.settings, name) == usual


@pytest.mark.parametrize(
    "text",
    [
        "SET dpsql.noise = off", "RESET dpsql.noise", "SHOW dpsql.noise",
        "SET dpsql.bounding = 'norm clip'", "RESET dpsql.bounding", "SHOW dpsql.bounding",
        f"/* dpsql.bounding = 'norm clip' */ {COUNT}",
    ],
)  # fmt: skip
def test_no_other_setting_exists(session: Session, text: str) -> None:
    with pytest.raises(Refused) as caught:
        session.execute(text)
    assert caught.value.code == "DP401"
    assert "dpsql.epsilon" in caught.value.instead


def test_an_accuracy_costs_what_it_needs(session: Session) -> None:
    session.execute("SET dpsql.max_error = 60")
    reply = session.execute(COUNT)
    assert 0 < reply.cost.epsilon < 0.1
    session.execute("SET dpsql.max_error = 0.5")
    with pytest.raises(Refused) as caught:
        session.execute(COUNT)
    assert caught.value.code == "DP404"
    session.execute(caught.value.instead)
    assert session.execute(COUNT).cost.epsilon > 0.4
    assert session.execute("SELECT COUNT(*) FROM countries").cost.epsilon == 0


def test_intervals_may_be_columns(session: Session) -> None:
    session.execute("SET dpsql.intervals = on")
    reply = session.execute(f"{COUNT} WHERE age > 30")
    assert [c.name for c in reply.columns] == ["n", "n_low", "n_high"]
    ((n, low, high),) = zip(*(c.to_pylist() for c in reply.table.columns), strict=True)
    assert low < n < high


def test_fresh_noise_is_paid_for(session: Session) -> None:
    first = session.execute(COUNT)
    assert session.execute(COUNT).recalled
    session.execute("SET dpsql.fresh = on")
    again = session.execute(COUNT)
    assert not again.recalled
    assert again.cost == first.cost
