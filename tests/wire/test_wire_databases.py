"""Several policies behind one endpoint: the name of the database chooses which."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from endpoint import PASSWORD, ROLE, generous
from serving import Serving, serving
from support.services import policy_file

from dpsql.cli import main
from dpsql.diagnostics.refusal import PolicyError
from dpsql.serve import users
from dpsql.serve.catalog.catalog import role_catalog
from dpsql.serve.databases import Databases
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.service import Service

COUNT, ORDERS = "SELECT count(*) FROM customers", "SELECT count(*) FROM orders"
OTHER = "another long password"


def _clinic(text: str) -> str:
    """The same data under another policy: its analyst has another password, and it has a nurse."""
    text = generous(text).replace(PASSWORD, OTHER)
    return f"database: clinic\n{text}  nurse: {{password: {OTHER}, epsilon: 9, tables: [visits]}}\n"


@pytest.fixture(scope="module")
def policies() -> tuple[Path, Path]:
    """``policy`` and ``clinic``; each has a robot with a token."""
    return policy_file("shop", "shop", generous), policy_file("shop", "shop", _clinic)


@pytest.fixture(scope="module")
def tokens(policies: tuple[Path, Path]) -> tuple[str, str]:
    made = [users.with_token("robot", ROLE) for _ in policies]
    for path, (user, _) in zip(policies, made, strict=True):
        users.write(path.with_name("policy.users"), [user])
    return made[0][1], made[1][1]


@pytest.fixture(scope="module")
def both(policies: tuple[Path, Path], tokens: tuple[str, str]) -> Iterator[Serving]:
    assert len(tokens) == 2
    with serving(
        policies[0], "--policy", str(policies[1]), "--http-port", "0", seconds=300
    ) as found:
        yield found


def _connect(where: Serving, database: str, user: str, password: str) -> psycopg.Connection:
    return psycopg.connect(
        host="127.0.0.1", port=where.port, user=user, password=password, dbname=database,
        autocommit=True,
    )  # fmt: skip


def _left(connection: psycopg.Connection) -> str:
    return str(connection.execute("SHOW dpsql.budget").fetchall())


def test_the_name_chooses_users_tables_and_accounts(both: Serving) -> None:
    with (
        _connect(both, "policy", ROLE, PASSWORD) as shop,
        _connect(both, "clinic", ROLE, OTHER) as clinic,
        _connect(both, "clinic", "nurse", OTHER) as nurse,
    ):
        assert clinic.execute("SELECT current_database()").fetchone() == ("clinic",)
        assert shop.execute("SELECT datname FROM pg_database").fetchall() == [("policy",)]
        assert nurse.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200"
        ).fetchall() == [("visits",)]
        before = _left(shop), _left(clinic)
        shop.execute(ORDERS)
        between = _left(shop), _left(clinic)
        assert between[0] != before[0]
        assert between[1] == before[1]
        clinic.execute(ORDERS)  # asked here for the first time: nothing is recalled across policies
        assert _left(clinic) != between[1]
        assert _left(shop) == between[0]


@pytest.mark.parametrize(
    ("database", "user", "password", "state"),
    [
        ("policy", ROLE, OTHER, "28P01"), ("clinic", ROLE, PASSWORD, "28P01"),
        ("policy", "nurse", OTHER, "28P01"), ("nowhere", ROLE, PASSWORD, "28P01"),
        ("nowhere", ROLE, OTHER, "28P01"), ("nowhere", "nurse", OTHER, "28P01"),
        ("nowhere", "nobody", OTHER, "28P01"),
    ],
)  # fmt: skip
def test_who_is_kept_out(
    both: Serving, database: str, user: str, password: str, state: str
) -> None:
    with pytest.raises(psycopg.OperationalError) as refused:
        _connect(both, database, user, password)
    assert state == "28P01"
    assert "password authentication failed" in str(refused.value)


def test_one_log_in_of_two_policies_is_two_people(both: Serving) -> None:
    with _connect(both, "policy", ROLE, PASSWORD) as c, _connect(both, "clinic", ROLE, OTHER) as o:
        seen = c.execute("SELECT pid FROM pg_stat_activity").fetchall()
        assert (o.info.backend_pid,) not in seen
        assert (c.info.backend_pid,) in seen
        assert c.info.backend_pid != o.info.backend_pid
        stopped = c.execute("SELECT pg_cancel_backend(%s)", (o.info.backend_pid,)).fetchone()
        assert stopped == (False,), "as for a number that nobody has"


def test_a_token_chooses_over_http_and_so_does_a_header(
    both: Serving, tokens: tuple[str, str]
) -> None:
    def asked(token: str, **headers: str) -> httpx.Response:
        return httpx.post(
            f"http://127.0.0.1:{both.http}/v1/query",
            json={"sql": COUNT},
            headers={"Authorization": f"Bearer {token}", **headers},
            timeout=120,
        )

    for token, name in zip(tokens, ("policy", "clinic"), strict=True):
        assert asked(token).status_code == 200
        assert asked(token, **{"dpsql-database": name}).json()["recalled"]
        assert asked(token, **{"dpsql-database": "nowhere"}).status_code == 404
    assert asked(tokens[0], **{"dpsql-database": "clinic"}).status_code == 401
    assert asked("guessed", **{"dpsql-database": "nowhere"}).status_code == 401


def test_a_signal_reloads_each() -> None:
    """What is wrong with one policy does not keep the other from being read."""
    first, second = policy_file("shop", "shop", generous), policy_file("shop", "shop", _clinic)
    with serving(first, "--policy", str(second), seconds=300) as found:
        for path, old in ((first, PASSWORD), (second, OTHER)):
            path.write_text(path.read_text().replace(old, f"new {old}"))
        found.process.send_signal(signal.SIGHUP)
        _heard(found, "reloaded")
        for name, old in (("policy", PASSWORD), ("clinic", OTHER)):
            with _connect(found, name, ROLE, f"new {old}") as c:
                assert c.execute("SELECT current_database()").fetchone() == (name,)
        second.write_text(second.read_text() + "nonsense: 1\n")
        first.write_text(first.read_text().replace(f"new {PASSWORD}", PASSWORD))
        found.process.send_signal(signal.SIGHUP)
        _heard(found, "not reloaded: ")
        for name, password in (("policy", PASSWORD), ("clinic", f"new {OTHER}")):
            _connect(found, name, ROLE, password).close()


def test_the_first_says_what_the_endpoint_bears() -> None:
    """For clients of both, and again after a signal."""
    paths = [
        policy_file("shop", "shop", lambda text: f"{generous(text)}endpoint: {{connections: 1}}\n"),
        policy_file("shop", "shop", lambda text: f"{_clinic(text)}endpoint: {{connections: 9}}\n"),
    ]
    with serving(paths[0], "--policy", str(paths[1]), seconds=300) as found:
        first = _connect(found, "clinic", ROLE, OTHER)
        with pytest.raises(psycopg.OperationalError):
            _connect(found, "clinic", ROLE, OTHER)
        paths[0].write_text(paths[0].read_text().replace("connections: 1}", "connections: 2}"))
        paths[1].write_text(paths[1].read_text() + "nonsense: 1\n")
        found.process.send_signal(signal.SIGHUP)
        _heard(found, "not reloaded: ")
        second = _connect(found, "policy", ROLE, PASSWORD)
        with pytest.raises(psycopg.OperationalError):
            _connect(found, "clinic", ROLE, OTHER)
        first.close()
        second.close()


def _heard(found: Serving, words: str) -> None:
    while not found.line().startswith(words):
        assert found.process.poll() is None


@pytest.fixture
def houses(policies: tuple[Path, Path]) -> Iterator[list[ServiceEndpoint]]:
    with Service.open(policies[0]) as shop, Service.open(policies[1]) as clinic:
        yield [ServiceEndpoint(service, role_catalog) for service in (shop, clinic)]


def _told(both: Databases) -> list[tuple[int, int, bool]]:
    """Of each name: how many salts users have there, how many of those elsewhere too, and whether
    they are the same when they are asked for again."""
    users = (ROLE, "nurse", "nobody", "somebody")
    names = ("policy", "clinic", "nowhere", "elsewhere")
    salts = {n: {both.at(n).verifier(u)[0].salt for u in users} for n in names}
    again = {n: {both.at(n).verifier(u)[0].salt for u in users} for n in names}
    others = {n: set[bytes]().union(*(salts[m] for m in names if m != n)) for n in names}
    return [(len(salts[n]), len(salts[n] & others[n]), salts[n] == again[n]) for n in names]


def test_a_log_in_does_not_tell_which_databases_exist(houses: list[ServiceEndpoint]) -> None:
    """Whoever is asked about, existing or not, has a salt of its own under each name, always the same."""
    both = Databases(houses)
    assert _told(both) == [(4, 0, True)] * 4
    assert both.at("clinic") is houses[1]
    known = {h.verifier(u)[0].iterations for h in houses for u in (ROLE, "nobody")}
    for name in ("nowhere", "elsewhere", ""):
        found, exists = both.at(name).verifier(ROLE)
        assert found.iterations in known
        assert not exists, "no password is right there"
        assert len(found.salt) == len(houses[0].verifier("nobody")[0].salt)
        assert not both.at(name).cleartext
    with pytest.raises(PolicyError, match="two policies have the database"):
        Databases([houses[0], houses[0]])


def test_names_that_do_not_exist_look_like_each_of_those_that_do(
    houses: list[ServiceEndpoint],
) -> None:
    """Where one policy takes passwords over TLS and the other does not, so it is with wrong names."""
    front = houses[1].snapshot.service.policy.front
    object.__setattr__(front, "cleartext", True)
    both = Databases(houses)
    assert {both.at(f"no{n}").cleartext for n in range(60)} == {True, False}
    assert len({both.at("nowhere").cleartext for _ in range(20)}) == 1


def test_a_salt_that_tells_a_name_would_be_noticed(
    houses: list[ServiceEndpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Databases, "at", lambda self, name: self._endpoints.get(name, houses[0]))
    assert _told(Databases(houses)) != [(4, 0, True)] * 4


def test_two_policies_of_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [policy_file("shop", "shop", generous) for _ in range(2)]
    arguments = [a for path in paths for a in ("--policy", str(path))]
    assert main(["serve", "--port", "0", *arguments]) == 1
    assert 'the database "policy"' in capsys.readouterr().err
