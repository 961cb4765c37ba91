"""Data that breaks the policy, or is another than was verified: nothing is answered, over any protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from callers import Caller
from endpoint import ROLE, Endpoint, endpoint, generous

from dpsql.diagnostics.refusal import DataBreaksPolicy, SourceMismatch
from dpsql.serve import users
from dpsql.serve.http.app import Face

COUNT = "SELECT COUNT(*) FROM orders"
BROKEN = ("max_rows_per_unit: 50", "max_rows_per_unit: 1")


def _rewritten(path: Path) -> None:
    """Other bytes in the same file, as `cp` leaves them."""
    with path.open("ab") as file:
        file.write(b"x")


def _replaced(path: Path) -> None:
    """Another file in its place, as `mv` leaves it."""
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.fixture
def found() -> Iterator[Endpoint]:
    with endpoint(generous) as here:
        yield here


def robot(found: Endpoint) -> Caller:
    user, token = users.with_token("robot", ROLE)
    users.write(found.service.policy.front.users, [user])
    found.house.reload()
    return Caller(Face(lambda: found.house.snapshots).app(), token)


@pytest.mark.parametrize("change", [_rewritten, _replaced])
def test_data_that_is_not_what_was_verified_answers_nothing_after_a_reload(
    found: Endpoint, change: object
) -> None:
    assert callable(change)
    client = robot(found)
    with psycopg.connect(found.dsn(), autocommit=True) as c:
        assert c.execute(COUNT).fetchone()
        change(found.service.policy.source.path)
        with pytest.raises(SourceMismatch, match="has changed since it was opened"):
            found.house.reload()
        spent = found.service.session(ROLE).budget()
        for sql in (COUNT, "SELECT country, COUNT(*) FROM customers GROUP BY 1", "SELECT country FROM countries"):  # fmt: skip
            with pytest.raises(psycopg.Error) as caught:
                c.execute(sql)
            assert caught.value.sqlstate == "22023"
            assert "the data is not what the policy was verified for" in str(caught.value)
            response = client.post("/v1/query", json={"sql": sql})
            assert response.status_code >= 400
            assert response.json()["code"] == "DP604"
        assert c.execute("SELECT 1").fetchone() == (1,)
        assert c.execute("SELECT relname FROM pg_class WHERE relname = 'orders'").fetchone()
    assert found.service.session(ROLE).budget() == spent
    healthy = client.get("/healthz")
    assert healthy.status_code == 200
    assert "DP604" not in healthy.text


def test_a_policy_that_the_data_breaks_is_not_taken_up(found: Endpoint) -> None:
    """The older one goes on: what it declares was verified."""
    path = found.service.policy.path
    client = robot(found)
    with psycopg.connect(found.dsn(), autocommit=True) as c:
        text, terms = path.read_text(), found.service.ledger.terms()
        path.write_text(text.replace(*BROKEN))
        with pytest.raises(DataBreaksPolicy) as caught:
            found.house.reload()
        assert not any(letter.isdigit() for letter in str(caught.value).removeprefix("DP604"))
        assert c.execute(COUNT).fetchone()
        assert found.service.ledger.terms() == terms, "the ledger goes by the older one too"
        assert found.service.policy.tables["orders"].max_rows_per_unit == 50
        assert client.post("/v1/query", json={"sql": COUNT}).status_code == 200
        path.write_text(text)
        found.house.reload()
        assert c.execute(COUNT).fetchone()


def test_without_the_check_changed_data_is_answered(
    found: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault."""
    monkeypatch.setattr(type(found.service), "check_data", lambda _: None)
    _replaced(found.service.policy.source.path)
    with pytest.raises(SourceMismatch):
        found.house.reload()
    with psycopg.connect(found.dsn(), autocommit=True) as c:
        assert c.execute(COUNT).fetchone()
