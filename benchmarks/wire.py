"""The endpoint beside PostgreSQL in the same run: small statements, a recalled tile, a million rows.

python benchmarks/wire.py [--seconds 5] [--rows 1000000] [--peers]

``dpsql serve`` runs in a process of its own, pgbench asks it (`sh tests/support/postgres.sh` brings
both servers). With ``--peers`` a Python server of the protocol is asked too, in an environment that
is made for it. Then 500 connections idle while 200 ask, and the server's memory is told.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "tests"),
    str(ROOT / "tests/support"),
    str(ROOT / "tests/wire"),
]

import asyncpg  # noqa: E402
import duckdb  # noqa: E402
import psycopg  # noqa: E402
from endpoint import PASSWORD, ROLE, generous  # noqa: E402
from postgres_server import binaries, shared_server  # noqa: E402
from serving import serving  # noqa: E402
from sides import Side, _fill, _tables  # noqa: E402
from support.datasets import database  # noqa: E402
from support.services import policy_file  # noqa: E402

ONE = "SELECT 1;\n"
NUMBER = "\\set x random(1, 1000000000)\nSELECT :x;\n"
TILE = "SELECT channel, count(*), sum(amount) FROM orders GROUP BY channel ORDER BY channel;\n"


PEERS = {
    "buenavista": ("buenavista==0.5.0", "duckdb==1.4.5", "python-dateutil", "pyarrow", "pandas")
}
"""Python servers of this protocol that install from an index. (riffq has wheels for one newer Python.)"""
_BUENAVISTA = """
import duckdb, sys
from buenavista.examples.duckdb_postgres import create
db = duckdb.connect()
db.execute(f"CREATE TABLE orders AS FROM '{sys.argv[1]}'")
server = create(db, ("127.0.0.1", 0))
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@contextmanager
def served() -> Iterator[tuple[Side, int]]:
    """An endpoint over the shop, and its process."""
    with serving(policy_file("shop", "shop", generous), seconds=3600) as found:
        yield Side(found.port), found.process.pid


@contextmanager
def buenavista() -> Iterator[Side]:
    """The peer over the same orders, in an environment of its own that is made once."""
    place = ROOT / "build" / "peers" / "buenavista"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS["buenavista"]], check=True)
    with tempfile.TemporaryDirectory() as folder:
        orders = f"{folder}/orders.parquet"
        with duckdb.connect(str(database("shop")), read_only=True) as data:
            data.execute(f"COPY orders TO '{orders}'")
        process = subprocess.Popen(
            [python, "-c", _BUENAVISTA, orders],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            yield Side(int(process.stdout.readline()))
        finally:
            process.terminate()
            process.wait()


def postgres() -> Side:
    server = shared_server()
    with psycopg.connect(server.dsn, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
        owner.execute("CREATE DATABASE shop")
    with psycopg.connect(server.dsn.replace("dbname=postgres", "dbname=shop")) as owner:
        owner.execute(_tables())
        _fill(owner)
        owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {ROLE}")
    return Side(server.port)


def pgbench(side: Side, sql: str, clients: int, protocol: str, seconds: float) -> float:
    """Transactions a second."""
    home = binaries()
    assert home is not None
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(sql)
        script.flush()
        done = subprocess.run(
            [home / "pgbench", "-n", "-c", str(clients), "-j", "1", "-T", str(int(seconds)), "-M", protocol,
             "-f", script.name],
            env={**os.environ, **side.environment, "PGSSLMODE": "disable",
                 "PGOPTIONS": "-c client_min_messages=error"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    return float(found[1]) if found else float("nan")


def delivered(side: Side, rows: int, *, binary: bool, times: int = 3) -> float:
    """Seconds to fetch rows of five kinds, at best; not a number where they are not delivered."""
    sql = (
        "SELECT x::int4 AS a, x::int8 * 7 AS b, x::float8 / 3 AS c, 'some text ' || x AS d,"
        f" TIMESTAMP '2024-01-01 00:00:00' AS e FROM generate_series(1, {rows}) AS s(x)"
    )
    found = []
    with closing(psycopg.connect(side.dsn, autocommit=True)) as c:
        for _ in range(times):
            start = time.perf_counter()
            c.pgconn.send_query_params(sql.encode(), [], result_format=int(binary))
            counts = [result.ntuples for result in iter(c.pgconn.get_result, None)]
            found.append(time.perf_counter() - start if counts == [rows] else float("nan"))
    return min(found)


async def crowd(side: Side, idle: int, active: int, seconds: float) -> list[float]:
    """Milliseconds of SELECT 1 while many are connected."""
    where = {
        "host": side.host, "port": side.port, "user": side.role, "password": side.password,
        "database": side.database, "ssl": False,
    }  # fmt: skip
    found: list[float] = []
    gate = asyncio.Semaphore(20)

    async def opened() -> asyncpg.Connection:
        async with gate:
            return await asyncpg.connect(**where)

    quiet = await asyncio.gather(*(opened() for _ in range(idle)))
    busy = await asyncio.gather(*(opened() for _ in range(active)))
    await busy[0].execute("SELECT 1")
    end = time.perf_counter() + seconds

    async def ask(connection: asyncpg.Connection) -> None:
        await asyncio.sleep(hash(connection) % 200 / 1000)
        while time.perf_counter() < end:
            start = time.perf_counter()
            await connection.execute("SELECT 1")
            found.append(1000 * (time.perf_counter() - start))
            await asyncio.sleep(0.2)

    await asyncio.gather(*(ask(c) for c in busy))
    await asyncio.gather(*(c.close() for c in (*quiet, *busy)))
    return found


def memory(process: int) -> float:
    """Megabytes that a process holds, at most so far."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", text)
    return int(found[1]) / 1024 if found else float("nan")


def compared(sides: Mapping[str, Side], seconds: int, rows: int) -> None:
    """Small statements and large answers, each server asked in turn."""
    names = "".join(f"{name:>12}" for name in sides)
    print(f"{'a second':40} {names}")
    for name, sql in (("SELECT 1", ONE), ("a recalled tile", TILE), ("a new number", NUMBER)):
        for protocol in ("simple", "extended", "prepared"):
            for clients in (1, 8):
                rates = [pgbench(s, sql, clients, protocol, seconds) for s in sides.values()]
                about = f"{name}, {protocol}, {clients} clients"
                print(f"{about:40} " + "".join(f"{rate:12.0f}" for rate in rates), flush=True)
    print(f"\n{f'{rows} rows x 5, seconds':40} {names}")
    for binary in (False, True):
        times = [
            delivered(side, rows, binary=binary, times=1 if name in PEERS else 3)
            for name, side in sides.items()
        ]
        print(f"{'binary' if binary else 'text':40} " + "".join(f"{t:12.2f}" for t in times))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--peers", action="store_true", help="other Python servers too")
    chosen = parser.parse_args()
    with served() as (ours, process), buenavista() if chosen.peers else nullcontext() as peer:
        sides = {"dpsql": ours, "PostgreSQL": postgres()}
        if peer is not None:
            sides["buenavista"] = peer
        pgbench(ours, TILE, 1, "simple", 1)  # the catalog is made, the tile is paid for
        compared(sides, chosen.seconds, chosen.rows)
        print(f"\nmemory so far: {memory(process):.0f} MB")
    with served() as (ours, process):
        found = asyncio.run(crowd(ours, 500, 200, chosen.seconds))
        cut = statistics.quantiles(found, n=100)
        print(
            f"500 idle and 200 active: {len(found)} statements, p50 {cut[49]:.1f} ms, "
            f"p99 {cut[98]:.1f} ms, memory {memory(process):.0f} MB"
        )


if __name__ == "__main__":
    main()
