"""The command: it says where it listens, serves, and drains when it is told to stop."""

from __future__ import annotations

import json
import signal

import psycopg
import pytest
from endpoint import PASSWORD, ROLE, certificate, generous
from serving import serving
from support.services import policy_file

from dpsql.cli import main


def test_serve_until_a_signal() -> None:
    path = policy_file("shop", "shop", generous)
    with serving(path) as found:
        assert (
            'role "pure" has no usable password and no user: nobody can log in as it' in found.said
        )
        with psycopg.connect(
            host="127.0.0.1", port=found.port, user=ROLE, password=PASSWORD, dbname="x",
            autocommit=True,
        ) as connection:  # fmt: skip
            assert connection.execute("SELECT current_database()").fetchone() == ("x",)
            found.process.send_signal(signal.SIGTERM)
            assert found.process.wait(timeout=120) == 0


def test_the_policy_says_what_the_endpoint_bears() -> None:
    path = policy_file("shop", "shop", lambda text: generous(text) + "endpoint: {connections: 1}\n")
    with serving(path) as found:
        where = {"host": "127.0.0.1", "port": found.port, "user": ROLE, "password": PASSWORD}
        with psycopg.connect(**where):  # type: ignore[arg-type]
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(**where)  # type: ignore[arg-type]
            path.write_text(path.read_text().replace("connections: 1}", "connections: 20}"))
            found.process.send_signal(signal.SIGHUP)
            assert found.line().startswith("reloaded: ")
            psycopg.connect(**where).close()  # type: ignore[arg-type]


def test_what_clients_say_of_themselves_is_logged() -> None:
    """On one line each, whatever they say, and for the operator only."""
    path = policy_file("shop", "shop", generous)
    log = path.with_name(f"{path.stem}.operator.log")
    for options, remarks in (((), 0), (("--log-comments",), 2)):
        log.unlink(missing_ok=True)
        with serving(path, "--log-format", "json", *options) as served:
            where = {"host": "127.0.0.1", "port": served.port, "user": ROLE, "password": PASSWORD}
            where["dbname"] = "shop"
            name = "Excel\n2026 ERROR \x1b[2J" + "x" * 900
            with psycopg.connect(**where, application_name=name, autocommit=True) as c:  # type: ignore[arg-type]
                c.execute("/* user 7\n2026 ERROR */ SELECT 1")
                c.execute("-- user 8\nSELECT %s", (1,))
                c.execute("SELECT 2 -- user 9")
        found = [json.loads(line) for line in log.read_text().splitlines()]
        (entered,) = [told for told in found if told["event"] == "logged_in"]
        assert entered["login"] == ROLE
        assert entered["application"] == f"{name[:200]}.."
        said = [told["comment"] for told in found if told["event"] == "commented"]
        assert said == ["user 7 2026 ERROR", "user 8"][:remarks]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines"),
        (["--tls-cert", "x"], "go together"),
    ],
)
def test_usage(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = policy_file("shop", "shop", generous)
    assert main(["serve", "--policy", str(path), *more]) == 2
    assert said in capsys.readouterr().err


def test_a_certificate_binds() -> None:
    assert len(certificate().binding()) == 32
