"""The command: it says where it listens, serves, and drains when it is told to stop."""

from __future__ import annotations

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
        assert 'role "pure" has no usable password' in found.said
        with psycopg.connect(
            host="127.0.0.1", port=found.port, user=ROLE, password=PASSWORD, dbname="x",
            autocommit=True,
        ) as connection:  # fmt: skip
            assert connection.execute("SELECT current_database()").fetchone() == ("x",)
            found.process.send_signal(signal.SIGTERM)
            assert found.process.wait(timeout=20) == 0


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
