"""Who logs in, as which role, and what that costs whom: users, SET ROLE, limits, reloading."""

from __future__ import annotations

import io
import re
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from endpoint import PASSWORD, ROLE, Endpoint, endpoint, generous
from serving import serving
from support.services import policy_file

from dpsql.cli import main
from dpsql.diagnostics.refusal import PolicyError, SourceMismatch
from dpsql.serve import users

COUNT = "SELECT count(*) FROM customers"


def _granting(text: str) -> str:
    """The analyst may become ``pure``; ``viewer`` logs in, sees countries only, and may become both."""
    text = generous(text).replace(
        "    max_groups_per_unit: 3\n", "    max_groups_per_unit: 3\n    may_become: [pure]\n", 1
    )
    return text + (
        "  viewer:\n"
        f"    password: {PASSWORD}\n"
        "    epsilon: 0.3\n    delta: 1e-6\n    session: {epsilon: 0.25}\n    query: {epsilon: 0.2}\n"
        "    tables: [countries]\n    may_become: [analyst, pure]\n"
    )


@pytest.fixture(scope="module")
def roles() -> Iterator[Endpoint]:
    with endpoint(_granting) as found:
        yield found


def _connect(where: Endpoint, **more: str) -> psycopg.Connection:
    return psycopg.connect(where.dsn(**more), autocommit=True)


def _spent(where: Endpoint, role: str) -> float:
    accounts = where.service.session(role).budget()
    return float(accounts[1].spent_epsilon)


def test_a_role_that_is_granted_is_charged_and_so_is_who_took_it(roles: Endpoint) -> None:
    with _connect(roles, user="viewer") as c:
        with pytest.raises(psycopg.errors.UndefinedTable):
            c.execute(COUNT)
        before = _spent(roles, "analyst"), _spent(roles, "viewer"), roles.spent
        c.execute("SET ROLE analyst")
        assert c.execute("SELECT current_user, session_user").fetchone() == ("analyst", "viewer")
        assert c.execute("SHOW role").fetchone() == ("analyst",)
        assert len(c.execute(COUNT).fetchall()) == 1
        after = _spent(roles, "analyst"), _spent(roles, "viewer"), roles.spent
        assert [b - a for a, b in zip(before, after, strict=True)] == pytest.approx([0.1] * 3)
        accounts = [row[0] for row in c.execute("SHOW dpsql.budget").fetchall()]
        assert sum("viewer" in a for a in accounts) == sum("analyst" in a for a in accounts) == 2
        c.execute("RESET ROLE")
        assert c.execute("SELECT current_user").fetchone() == ("viewer",)


def test_who_took_a_role_caps_what_is_asked_as_it(roles: Endpoint) -> None:
    """A query of ``pure`` may cost 0.5; one of ``viewer`` 0.2, and 0.25 in all."""
    with _connect(roles, user="viewer", options="-c dpsql.session=capped") as c:
        c.execute("SET ROLE pure")
        before = roles.spent
        c.execute("SELECT count(*) FROM customers WHERE age > 21")
        assert roles.spent - before == pytest.approx(0.2)
        c.execute("SET dpsql.epsilon = 0.5")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            c.execute("SELECT count(*) FROM customers WHERE age > 22")
        c.execute("SET dpsql.epsilon = 0.1")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded) as caught:
            c.execute("SELECT count(*) FROM customers WHERE age > 23")
        assert "viewer" in str(caught.value)


@pytest.mark.parametrize("way", ["SET ROLE {}", "SET SESSION AUTHORIZATION {}"])
def test_a_role_that_is_not_granted_is_refused(roles: Endpoint, way: str) -> None:
    with _connect(roles) as c:
        for other in ("viewer", "nobody"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="set role"):
                c.execute(way.format(other))
        c.execute(way.format("pure"))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            c.execute(way.format("viewer"))  # grants are of the role that logged in
        c.execute("SET ROLE analyst")
        c.execute("DISCARD ALL")
        assert c.execute("SELECT current_user").fetchone() == ("analyst",)


def test_a_role_for_one_transaction(roles: Endpoint) -> None:
    """It is charged while the transaction lasts, and gone however it ends."""
    with _connect(roles) as c:
        for end in ("COMMIT", "ROLLBACK"):
            before = _spent(roles, "pure"), _spent(roles, "analyst")
            c.execute("BEGIN")
            c.execute("SET LOCAL ROLE pure")
            assert c.execute("SELECT current_user, session_user").fetchone() == ("pure", "analyst")
            c.execute(f"SELECT count(*) FROM customers WHERE age > {20 + len(end)}")
            c.execute(end)
            assert c.execute("SHOW role").fetchone() == ("none",)
            after = _spent(roles, "pure"), _spent(roles, "analyst")
            assert after[0] > before[0]
            assert c.execute("SELECT current_user").fetchone() == ("analyst",)
        c.execute("SET LOCAL ROLE pure")
        assert c.execute("SELECT current_user").fetchone() == ("analyst",)
        c.execute("SELECT set_config('role', 'pure', false)")
        assert c.execute("SELECT current_user").fetchone() == ("pure",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            c.execute("SELECT set_config('role', 'viewer', false)")


def test_a_rollback_takes_a_role_back(roles: Endpoint) -> None:
    with psycopg.connect(roles.dsn(user="viewer")) as c:
        c.execute("SET ROLE pure")
        c.rollback()
        assert c.execute("SELECT current_user").fetchone() == ("viewer",)
        assert c.execute("SHOW role").fetchone() == ("none",)
        c.execute("SET ROLE analyst")
        c.execute("SET dpsql.epsilon = 0.01")
        c.execute("SAVEPOINT a")
        c.execute("SET ROLE pure")
        c.execute("ROLLBACK TO a")
        assert c.execute("SELECT current_user").fetchone() == ("analyst",)
        assert c.execute("SHOW dpsql.epsilon").fetchone() == ("1/100",)


# -- limits of a role


def _narrow(text: str) -> str:
    return generous(text).replace(
        "    max_groups_per_unit: 3\n",
        "    connections: 2\n    idle_seconds: 1\n    statement_seconds: 1\n", 1,
    )  # fmt: skip


def test_a_role_has_limits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with endpoint(_narrow) as found:
        first, second = _connect(found), _connect(found)
        with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
            _connect(found)
        engine = found.service._engine
        endless = "SELECT count(*) AS p0 FROM range(100000000000) AS r(i)"
        measure = engine.measure
        monkeypatch.setattr(engine, "measure", lambda *_: measure(endless, {}))
        for setting in ("0", "60s"):  # a session may ask for less, not for more
            first.execute(f"SET statement_timeout = '{setting}'")
            begun = time.monotonic()
            with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
                first.execute(f"SELECT count(*) FROM orders WHERE amount > {len(setting)}")
            assert 0.9 < time.monotonic() - begun < 30
        with pytest.raises(psycopg.OperationalError):
            second.execute("SELECT 1")  # idle for longer than a second
        first.close()
        second.close()


def test_a_role_has_messages_of_its_own_size() -> None:
    def change(text: str) -> str:
        narrow = "    max_groups_per_unit: 3\n    message_bytes: 1000\n"
        return generous(text).replace("    max_groups_per_unit: 3\n", narrow, 1)

    with endpoint(change) as found:
        with _connect(found) as c:
            assert c.execute(f"SELECT {'1' * 9}").fetchone() == (111_111_111,)
        c = _connect(found)
        with pytest.raises(psycopg.OperationalError):
            c.execute(f"SELECT '{'x' * 1000}'")
        c.close()


# -- passwords themselves


def test_passwords_are_taken_over_tls_where_a_policy_says_so() -> None:
    with endpoint(lambda t: generous(t) + "cleartext: true\n", tls=True) as found:
        dsn = found.dsn(sslmode="require", require_auth="password")
        with psycopg.connect(dsn) as c:
            assert c.execute("SELECT 1").fetchone() == (1,)
        for who in ({"password": "wrong"}, {"user": "nobody"}):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(found.dsn(sslmode="require", **who))
        with psycopg.connect(found.dsn(sslmode="disable", require_auth="scram-sha-256")):
            pass


@pytest.mark.parametrize("sslmode", ["require", "disable"])
def test_passwords_are_not_asked_for_otherwise(shop: Endpoint, sslmode: str) -> None:
    """A client that gives nothing but its password is asked for a proof, and leaves."""
    said = 'method requirement "password" failed: server requested SASL authentication'
    with pytest.raises(psycopg.OperationalError, match=said):
        psycopg.connect(shop.dsn(sslmode=sslmode, require_auth="password"))


def test_passwords_are_not_asked_for_without_tls() -> None:
    """Also where the policy takes them over TLS: nobody between may read one."""
    with (
        endpoint(lambda t: generous(t) + "cleartext: true\n", tls=True) as found,
        pytest.raises(psycopg.OperationalError, match="server requested SASL authentication"),
    ):
        psycopg.connect(found.dsn(sslmode="disable", require_auth="password"))


# -- previews


def test_previews_are_refused_or_empty() -> None:
    previews = (
        "SELECT * FROM orders LIMIT 1000", "SELECT email, age FROM customers",
        "SELECT o.amount FROM orders o ORDER BY 1 LIMIT 5",
    )  # fmt: skip
    with endpoint(lambda t: generous(t) + "preview: empty\n") as found, _connect(found) as c:
        heard: list[str] = []
        c.add_notice_handler(lambda d: heard.append(d.message_primary or ""))
        for sql in previews:
            for binary in (False, True):
                cursor = c.cursor(binary=binary).execute(sql, prepare=True)
                assert cursor.fetchall() == []
                assert cursor.description
        assert heard[0].startswith("preview: rows of private tables are not shown")
        assert found.spent == 0
        for sql in (
            "SELECT nothing FROM orders LIMIT 5",
            "SELECT * FROM nowhere",
            "SELECT * FORM x",
        ):
            with pytest.raises(psycopg.errors.Error):
                c.execute(sql)
        assert len(c.execute("SELECT * FROM countries LIMIT 3").fetchall()) == 3


# -- users


def _add(path: Path, name: str, password: str, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(password + "\n"))
    return main(["user", "add", name, "--policy", str(path), *more])


def test_users_are_added_listed_and_removed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = policy_file("shop", "shop", generous)
    assert _add(path, "ann lee", "correct horse", monkeypatch, "--role", "analyst") == 0
    assert _add(path, "ben", "battery staple", monkeypatch, "--role", "pure") == 0
    place = path.with_name("policy.users")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert "battery" not in place.read_text()
    assert main(["user", "list", "--policy", str(path)]) == 0
    assert capsys.readouterr().out == "ann lee  role analyst\nben  role pure\n"
    assert main(["user", "remove", "ben", "--policy", str(path)]) == 0
    assert list(users.read(place)) == ["ann lee"]
    for arguments, said in (
        (["add", "x", "--role", "nobody"], "name a role"), (["add", "x"], "name a role"),
        (["add"], "needs a name"), (["remove", "ben"], "no user"),
        (["add", "pure", "--role", "analyst"], "name of a role"),
        (["add", "x", "--role", "pure"], "at least 8"),
    ):  # fmt: skip
        monkeypatch.setattr(sys, "stdin", io.StringIO("short\n"))
        assert main(["user", *arguments, "--policy", str(path)]) == 2
        assert said in capsys.readouterr().err


def test_a_password_is_typed_twice_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = policy_file("shop", "shop", generous)
    monkeypatch.setattr("dpsql.cli.user.sys.stdin.isatty", lambda: True, raising=False)
    typed = iter(["long enough", "long enough", "long enough", "otherwise"])
    monkeypatch.setattr("getpass.getpass", lambda _: next(typed))
    command = ["user", "add", "x", "--role", "pure", "--policy", str(path)]
    assert main(command) == 0
    assert main(command) == 2
    assert "differ" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ann analyst", "is not"), ("ann analyst SCRAM-SHA-256$1", "is not"),
        ("{0}\n{0}", "repeats a name"), ("ann nobody {1}", 'the role "nobody"'),
        ("pure analyst {1}", "name of a role"),
    ],
)  # fmt: skip
def test_a_users_file_that_cannot_be_used(line: str, said: str) -> None:
    user = users.with_password("ann", "analyst", "correct horse")
    whole = f"ann analyst {user.verifier}"
    path = policy_file("shop", "shop", generous)
    path.with_name("policy.users").write_text("# a comment\n\n" + line.format(whole, user.verifier))
    from dpsql.policy.load import load

    with pytest.raises(PolicyError, match=said):
        users.of(load(path), {})


def test_a_user_has_the_budgets_of_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    with endpoint(generous) as found:
        path = found.service.policy.path
        with pytest.raises(psycopg.OperationalError):
            _connect(found, user="ann", password="staple battery")
        assert _add(path, "ann", "staple battery", monkeypatch, "--role", "analyst") == 0
        found.house.reload()
        with _connect(found, user="ann", password="staple battery") as c:
            assert c.execute("SELECT current_user, session_user").fetchone() == ("analyst", "ann")
            c.execute(COUNT)
        assert _spent(found, "analyst") == pytest.approx(0.1)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            _connect(found, user="ann", password=PASSWORD)


# -- reloading


def test_a_reload_reaches_sessions_that_are_open() -> None:
    with endpoint(generous) as found, _connect(found) as c, _connect(found) as other:
        path = found.service.policy.path
        c.execute("SET dpsql.epsilon = 0.02")
        first = c.execute(COUNT).fetchall()
        path.write_text(path.read_text().replace("age: {type: integer, range: [18, 100]}", "age: {type: integer, range: [18, 90]}"))  # fmt: skip
        found.house.reload()
        assert c.execute("SHOW dpsql.epsilon").fetchone() == ("1/50",)
        rows = c.execute(
            "SELECT col_description('customers'::regclass, 4), count(*) FROM pg_class GROUP BY 1"
        ).fetchall()
        assert rows[0][0] == "range 18 to 90"
        assert c.execute(COUNT).fetchall() is not first
        for more, kind in (
            ("roles: {", PolicyError),
            ("limits: {threads: 1}\n", SourceMismatch),
            ("database: elsewhere\n", SourceMismatch),
        ):
            text = path.read_text()
            path.write_text(text + more)
            with pytest.raises(kind):
                found.house.reload()
            path.write_text(text)
        path.write_text(path.read_text().replace(PASSWORD, "another long password"))
        found.house.reload()
        with pytest.raises(psycopg.OperationalError):
            _connect(found)
        path.write_text(re.sub(r'    password: "[^"]+"\n', "", path.read_text()))
        found.house.reload()
        with pytest.raises(psycopg.OperationalError, match="not permitted to log in"):
            other.execute("SELECT count(*) FROM orders")


def test_a_rollback_to_a_role_that_was_revoked_ends_the_transaction() -> None:
    """Nobody goes on as another role without saying so: that one would be charged."""
    with endpoint(_granting) as found, _connect(found) as c:
        path = found.service.policy.path
        c.execute("SET ROLE pure")
        c.execute("BEGIN")
        c.execute("RESET ROLE")
        path.write_text(path.read_text().replace("    may_become: [pure]\n", ""))
        found.house.reload()
        assert c.execute("SELECT current_user").fetchone() == ("analyst",)
        c.execute("ROLLBACK")
        assert c.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        for sql in ("SELECT current_user", COUNT):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                c.execute(sql)
        assert found.spent == 0
        c.execute("RESET ROLE")
        assert c.execute("SELECT current_user").fetchone() == ("analyst",)


def test_a_signal_reloads() -> None:
    path = policy_file("shop", "shop", generous)
    with serving(path) as found:
        text = path.read_text()
        path.write_text(text + "nonsense: 1\n")
        found.process.send_signal(signal.SIGHUP)
        assert found.line().startswith("not reloaded: ")
        path.write_text(text.replace(PASSWORD, "another long password"))
        found.process.send_signal(signal.SIGHUP)
        while not found.line().startswith("reloaded: "):
            assert found.process.poll() is None
        with psycopg.connect(
            host="127.0.0.1", port=found.port, user=ROLE, password="another long password",
            dbname="x", autocommit=True,
        ) as c:  # fmt: skip
            assert c.execute("SELECT 1").fetchone() == (1,)
            found.process.send_signal(signal.SIGTERM)
            assert found.process.wait(timeout=120) == 0
