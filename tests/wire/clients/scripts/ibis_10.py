"""ibis, from an environment of its own: tables, schemas, and expressions over SQL (temporary views)."""

import json
import os

import ibis
from ibis import _

server = ibis.postgres.connect(
    host=os.environ["PGHOST"], port=int(os.environ["PGPORT"]), user=os.environ["PGVIEWER"],
    password=os.environ["PGPASSWORD"], database=os.environ["PGDATABASE"],
)  # fmt: skip


def check(name, act):
    print(json.dumps({"check": name, "saw": act()}, default=str), flush=True)


def kinds(schema):
    return [[name, str(kind)] for name, kind in schema.items()]


def grouped(table):
    return table.group_by("page").agg(n=_.count()).order_by("page").execute()["page"].tolist()


check("tables", lambda: sorted(server.list_tables()))
check("schema of a table", lambda: kinds(server.table("orders").schema()))
check("groups of a table", lambda: grouped(server.table("visits")))
check(
    "schema of a query",
    lambda: kinds(server.sql("SELECT country, continent FROM countries").schema()),
)
check(
    "rows of a query",
    lambda: (
        server.sql("SELECT country, continent FROM countries")
        .order_by("country")
        .execute()
        .values.tolist()
    ),
)
check(
    "groups of a query",
    lambda: grouped(server.sql("SELECT page, seconds FROM visits WHERE seconds > 9")),
)
check("what is left", lambda: sorted(server.list_tables()))
