"""Every client sees of the endpoint what it sees of a real PostgreSQL with the same tables."""

from __future__ import annotations

import functools
import shutil
import socket
import warnings
from collections.abc import Iterator

import pytest
import side_by_side
from differences import DIFFERENCES, is_kept, keep, kept
from endpoint import endpoint, generous
from postgres_server import shared_server
from sides import CHECKS, Side, postgres
from support.required import leave_out
from talk import fields, messages

pytestmark = pytest.mark.filterwarnings("ignore")  # clients have warnings of their own

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    side_by_side.read_clients()


SLOW = ("dbt", "pgcli", "Django", "ibis", "pgAdmin 4", "Sequelize", "drizzle-kit")
"""Clients that take long to fetch and to run: `make clients` has them."""


@functools.cache
def _missing(client: str) -> str:
    """Why a client is left out; empty when it is here."""
    from clients import dbt, duckdb_scanner, odbc, programs

    here = {
        "JDBC": programs.jar() is not None and shutil.which("java") is not None,
        "node-postgres": programs.modules() is not None,
        "psqlODBC": odbc.available(),
        "psql": shutil.which("psql") is not None,
        "dbt": dbt.program() is not None,
        "pgcli": programs.python("pgcli") is not None,
        "Django": programs.python("django") is not None,
        "ibis": programs.python("ibis") is not None,
        "pgAdmin 4": programs.python("pgadmin") is not None,
        "Sequelize": programs.package("sequelize") is not None,
        "drizzle-kit": programs.package("drizzle-kit") is not None,
        "DuckDB": duckdb_scanner.program() is not None,
    }
    return "" if here.get(client, True) else f"{client} is not here: tests/support/clients.sh"


def _precise(text: str) -> str:
    """The policy with an epsilon at which no average of the few rows is hidden as noise."""
    return generous(text).replace("query: {epsilon: 0.1}", "query: {epsilon: 50}")


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    """The endpoint and PostgreSQL."""
    with endpoint(_precise) as shop, postgres(shared_server(), shop) as real:
        yield Side(shop.port), real


@pytest.mark.parametrize(
    ("client", "name"),
    [pytest.param(*key, marks=pytest.mark.slow if key[0] in SLOW else ()) for key in CHECKS],
)
def test_a_client_sees_what_it_sees_of_postgres(
    sides: tuple[Side, Side], client: str, name: str, rewrite: bool
) -> None:
    """What differs is listed with its reason, and is what was written down of dpsql: not anything else."""
    if _missing(client):
        leave_out(_missing(client))
    ours, theirs = (CHECKS[client, name](side) for side in sides)
    assert "FAILED" not in repr(ours) + repr(theirs)
    if (client, name) in DIFFERENCES:
        assert repr(ours) != repr(theirs), "they are equal now: take it out of differences.py"
        if rewrite:
            keep(client, name, repr(ours))
        if is_kept(client, name):
            assert repr(ours) == kept()[client][name], (
                "read the difference, and renew with --rewrite"
            )
    else:
        assert repr(ours) == repr(theirs)


def test_tls_is_asked_for_once_as_with_postgres(sides: tuple[Side, Side]) -> None:
    asks = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
    said = []
    for side in sides:
        with socket.create_connection((side.host, side.port), timeout=10) as sock:
            sock.sendall(asks)
            said.append([sock.recv(1)])
            sock.sendall(asks)
            with sock.makefile("rb") as rest:
                said[-1] += [fields(body)["C"] for _, body in messages(rest.read())]
    assert said == [[b"N", "0A000"]] * 2


def test_differences_are_about_checks_that_exist() -> None:
    assert set(DIFFERENCES) <= set(CHECKS)
    assert len(CHECKS) >= 120
    written = {(client, name) for client, names in kept().items() for name in names}
    assert {key for key in DIFFERENCES if key[0] not in SLOW} <= written <= set(DIFFERENCES)


def test_the_table_is_fresh() -> None:
    text = side_by_side.README.read_text(encoding="utf-8")
    assert side_by_side.rewritten(text) == text, "run: python tests/wire/side_by_side.py"
