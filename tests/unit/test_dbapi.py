"""The PEP 249 module: what drivers, notebooks and scripts expect of it."""

from __future__ import annotations

import builtins
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpsql
from dpsql import dbapi
from dpsql.cli.demo import POLICY
from dpsql.engines.duckdb.demo_data import write_demo_data
from dpsql.service import Service

COUNT = "SELECT COUNT(*) AS n FROM customers"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "shop.duckdb"
    write_demo_data(path)
    return path


@pytest.fixture
def policy(data: Path, tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    text = POLICY.replace("path: shop.duckdb", f"path: {json.dumps(str(data))}")
    path.write_text(text.replace("query: {share: 5%}", "query: {epsilon: 0.5}"))
    return path


@pytest.fixture
def connection(policy: Path) -> Iterator[dbapi.Connection]:
    with dpsql.connect(policy) as opened:
        yield opened


def test_the_module_is_what_pep_249_wants() -> None:
    assert (dpsql.apilevel, dpsql.threadsafety, dpsql.paramstyle) == ("2.0", 1, "qmark")
    tree = {
        "Warning": Exception,
        "Error": Exception,
        "InterfaceError": dpsql.Error,
        "DatabaseError": dpsql.Error,
        "DataError": dpsql.DatabaseError,
        "OperationalError": dpsql.DatabaseError,
        "IntegrityError": dpsql.DatabaseError,
        "InternalError": dpsql.DatabaseError,
        "ProgrammingError": dpsql.DatabaseError,
        "NotSupportedError": dpsql.DatabaseError,
    }
    for name, parent in tree.items():
        assert issubclass(getattr(dpsql, name), parent)
        assert getattr(dbapi.Connection, name) is getattr(dpsql, name)
    assert issubclass(dpsql.Refused, dpsql.ProgrammingError)
    assert issubclass(dpsql.OutOfBudget, dpsql.Refused)
    moment = dt.datetime(2025, 3, 4, 5, 6, 7)  # noqa: DTZ001 (local, as PEP 249 says)
    ticks = moment.timestamp()
    assert dpsql.Date(2025, 3, 4) == dpsql.DateFromTicks(ticks) == moment.date()
    assert dpsql.Time(5, 6, 7) == dpsql.TimeFromTicks(ticks)
    assert dpsql.Timestamp(2025, 3, 4, 5, 6, 7) == dpsql.TimestampFromTicks(ticks)
    assert dpsql.Binary(b"x") == b"x"


def test_the_module_is_imported_lazily() -> None:
    code = "import dpsql, sys; assert 'duckdb' not in sys.modules; assert 'connect' in dir(dpsql)"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError):
        _ = dpsql.nonsense
    with pytest.raises(AttributeError):
        _ = dpsql._nonsense


def test_rows_are_fetched_as_usual(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.description is None
    assert cursor.rowcount == -1
    for method in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, cursor.df):
        with pytest.raises(dpsql.InterfaceError):
            method()
    cursor.execute("SELECT country, COUNT(*) AS n FROM customers GROUP BY country")
    assert cursor.rowcount == 8
    assert cursor.description is not None
    assert [c[0] for c in cursor.description] == ["country", "n"]
    assert [c[1] for c in cursor.description] == [dpsql.STRING, dpsql.NUMBER]
    assert all(len(c) == 7 for c in cursor.description)
    first = cursor.fetchone()
    assert first is not None
    assert first[0] == "Austria"
    assert len(cursor.fetchmany()) == 1
    cursor.arraysize = 3
    assert len(cursor.fetchmany()) == 3
    assert len(cursor.fetchmany(2)) == 2
    assert cursor.rownumber == 7
    assert [row[0] for row in cursor] == ["Switzerland"]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []


def test_type_objects() -> None:
    assert dpsql.DATETIME == "timestamp"
    assert dpsql.DATETIME != "text"
    assert dpsql.NUMBER != dpsql.STRING
    assert dpsql.BINARY != dpsql.ROWID
    assert len({dpsql.BINARY, dpsql.ROWID, dpsql.ROWID}) == 2


def test_an_answer_says_what_it_cost(connection: dbapi.Connection) -> None:
    cursor = connection.execute(COUNT)
    ((count,),) = cursor.fetchall()
    ((low, high),) = cursor.intervals["n"]
    assert low is not None
    assert high is not None
    assert low < count < high
    paid = cursor.cost
    assert paid == {"epsilon": 0.5, "delta": 0.0, "rho": pytest.approx(0.12245933)}
    assert cursor.remaining == connection.budget()
    assert cursor.remaining["session"]["epsilon"] == 9.5
    assert not cursor.recalled
    cursor.execute(COUNT)
    assert cursor.fetchall() == [(count,)]
    assert cursor.recalled
    assert cursor.cost == {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}


def test_frames(connection: dbapi.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT DATE_TRUNC('year', placed) AS y, COUNT(*) AS n, COUNT(*) AS n FROM orders GROUP BY y"
    cursor = connection.execute(sql)
    assert cursor.arrow().column_names == ["y", "n", "n_2"]
    pandas, polars = cursor.df(), cursor.pl()
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert list(pandas.columns) == polars.columns == ["y", "n", "n_2"]
    assert pandas["n"].tolist() == polars["n"].to_list() == [row[1] for row in cursor]
    found = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name == "polars":
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(dpsql.NotSupportedError, match=r"pip install .dpsql\[polars\]"):
        cursor.pl()


@pytest.mark.parametrize(
    ("condition", "values", "plain"),
    [
        ("age > ?", [40], "age > 40"),
        ("age > ?", [np.int64(40)], "age > 40"),
        ("age > ?", [40.5], "age > 40.5"),
        ("age > ?", [Decimal("40.5")], "age > 40.5"),
        ("country = ?", ["Italy"], "country = 'Italy'"),
        ("joined > ?", [dt.date(2022, 1, 1)], "joined > DATE '2022-01-01'"),
        ("(age > 40) = ?", [True], "(age > 40) = TRUE"),
        ("country = $2 AND age > $1", [30, "Italy"], "country = 'Italy' AND age > 30"),
        ("age > ? AND country = ? AND age < ?", [30, "Spain", 60],
         "age > 30 AND country = 'Spain' AND age < 60"),
    ],
)  # fmt: skip
def test_parameters_mean_what_they_are(
    connection: dbapi.Connection, condition: str, values: list[Any], plain: str
) -> None:
    connection.execute(f"{COUNT} WHERE {plain}")
    cursor = connection.execute(f"{COUNT} WHERE {condition}", values)
    assert cursor.recalled


def test_parameters_are_numbered_by_place(connection: dbapi.Connection) -> None:
    sql = "SELECT SUM(CASE WHEN age > {} THEN 1 ELSE 0 END) * {} AS n FROM customers WHERE country = {}"
    written = connection.execute(sql.format(30, 2, "'Italy'")).fetchall()
    given = connection.execute(sql.format("?", "?", "?"), [30, 2, "Italy"]).fetchall()
    assert given == written


def test_null_and_timestamp_parameters(connection: dbapi.Connection) -> None:
    cursor = connection.execute("SELECT COUNT(*) AS n FROM orders WHERE channel = ?", [None])
    assert abs(cursor.fetchall()[0][0]) < 10_000
    moment = dt.datetime(2025, 1, 1, 12)  # noqa: DTZ001 (as columns are)
    cursor = connection.execute("SELECT COUNT(*) AS n FROM visits WHERE started > ?", [moment])
    assert cursor.rowcount == 1


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([], "DP113"),
        ([1, 2], "DP113"),
        ([object()], "DP205"),
        ([float("nan")], "DP205"),
        ([Decimal("NaN")], "DP205"),
        ([dt.datetime(2025, 1, 1, tzinfo=dt.UTC)], "DP201"),
        ([pd.NaT], "DP205"),
    ],
)
def test_parameters_that_do_not_fit(
    connection: dbapi.Connection, values: list[Any], code: str
) -> None:
    with pytest.raises(dpsql.Refused) as caught:
        connection.execute(f"{COUNT} WHERE age > ?", values)
    assert caught.value.code == code


@pytest.mark.parametrize("values", ["30", b"30", {"age": 30}])
def test_parameters_are_positional(connection: dbapi.Connection, values: Any) -> None:
    with pytest.raises(dpsql.ProgrammingError, match="one value for each"):
        connection.execute(f"{COUNT} WHERE age > ?", values)


def test_a_refusal_is_readable_where_it_is_printed(connection: dbapi.Connection) -> None:
    cursor = connection.execute(COUNT)
    with pytest.raises(dpsql.Refused) as caught:
        cursor.execute("SELECT email FROM customers")
    refused = caught.value
    assert (refused.code, refused.position) == ("DP101", 8)
    assert refused.headline.startswith("this query returns rows")
    assert str(refused).startswith(f"DP101: {refused.headline}\n  at line 1, column 8")
    assert "why:" in str(refused)
    assert all(line in str(refused) for line in refused.instead.splitlines())
    assert refused.sqlstate == "0A000"
    with pytest.raises(dpsql.InterfaceError):
        cursor.fetchall()
    with pytest.raises(dpsql.Refused, match="DP602"):
        dpsql.connect(connection.session()._service.policy.path, role="nobody")


def test_settings_belong_to_the_connection(connection: dbapi.Connection) -> None:
    cursor = connection.execute("SET dpsql.epsilon = 0.25")
    assert cursor.description is None
    assert cursor.rowcount == -1
    assert cursor.fetchall() == []
    assert connection.execute(COUNT).cost["epsilon"] == 0.25
    ((plan, *_), *_) = connection.execute(f"EXPLAIN {COUNT}").fetchall()
    assert plan.startswith("measurement m0")
    assert "discrete Laplace" in connection.explain(f"{COUNT} WHERE age > ?", [30])
    assert next(row[0] for row in connection.execute("SHOW dpsql.budget")) == "the dataset"


def test_connecting_again_resets_nothing(policy: Path) -> None:
    with dpsql.connect(str(policy)) as one, dpsql.connect(policy, session="second") as two:
        one.execute(COUNT)
        two.execute(f"{COUNT} WHERE age > 30")
        assert one.budget()["session"]["epsilon"] == two.budget()["session"]["epsilon"] == 9.5
        assert one.budget()["dataset"]["epsilon"] == two.budget()["dataset"]["epsilon"] == 49
    with dpsql.connect(policy, "analyst") as again:
        assert again.budget()["session"]["epsilon"] == 9.5
        assert again.role == "analyst"


def test_what_is_not_there(connection: dbapi.Connection) -> None:
    connection.commit()
    connection.rollback()
    with connection.cursor() as cursor:
        cursor.setinputsizes([])
        cursor.setoutputsize(1)
        with pytest.raises(dpsql.NotSupportedError, match="call execute for each"):
            cursor.executemany(COUNT, [[], []])
    with pytest.raises(dpsql.InterfaceError, match="the cursor is closed"):
        cursor.execute(COUNT)


def test_a_closed_connection(policy: Path) -> None:
    connection = dpsql.connect(policy)
    cursor = connection.execute(COUNT)
    connection.close()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.budget, cursor.fetchall):
        with pytest.raises(dpsql.InterfaceError, match="the connection is closed"):
            use()


def test_pandas_can_read_from_a_connection(connection: dbapi.Connection) -> None:
    with pytest.warns(UserWarning, match="DBAPI2"):
        frame = pd.read_sql(f"{COUNT} WHERE age > ?", connection, params=(30,))  # type: ignore[call-overload]
    assert frame.columns.tolist() == ["n"]


def test_a_policy_that_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(dpsql.PolicyError):
        dpsql.connect(tmp_path / "gone.yaml")


def test_one_process_may_open_a_source_often(policy: Path) -> None:
    with Service.open(policy) as one, Service.open(policy) as two:
        first = one.session().execute(COUNT).table.column(0).to_pylist()
        assert two.session().execute(COUNT).table.column(0).to_pylist() == first


def test_the_dialect_of_a_connection(policy: Path) -> None:
    with dpsql.connect(policy, dialect="bigquery") as opened:
        cursor = opened.execute("SELECT 7 / 2 AS half FROM `countries` LIMIT 1")
        assert cursor.fetchall() == [(3.5,)]
    with pytest.raises(dpsql.Refused) as caught:
        dpsql.connect(policy, dialect="cobol")
    assert caught.value.code == "DP401"
