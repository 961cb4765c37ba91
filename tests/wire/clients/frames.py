"""Data frames: pandas over SQLAlchemy, polars over connectorx and ADBC, ADBC itself, psycopg 2."""

from __future__ import annotations

from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import pandas as pd
import polars as pl
import psycopg2
import sqlalchemy as sa
from sides import Side, checks, plain, shape, state

PAGES = "SELECT page, count(*) AS n FROM visits GROUP BY page ORDER BY page"
PUBLIC = "SELECT country, continent, population FROM countries ORDER BY country"
psycopg_2, pandas = checks("psycopg 2"), checks("pandas")
polars, flight = checks("polars"), checks("ADBC")


@psycopg_2
def rows_and_types(side: Side) -> Any:
    connection = psycopg2.connect(side.dsn)
    cursor = connection.cursor()
    cursor.execute("SELECT page, count(*), sum(seconds) FROM visits GROUP BY 1 ORDER BY 1")
    seen = [(d[0], d[1]) for d in cursor.description]
    found = shape(cursor.fetchall(), 1)
    connection.close()
    return seen, found


@psycopg_2
def parameters_in_the_text(side: Side) -> Any:
    connection = psycopg2.connect(side.dsn)
    cursor = connection.cursor()
    cursor.execute("SELECT country FROM countries WHERE continent = %s ORDER BY 1", ("asia",))
    found = plain(cursor.fetchall())
    connection.close()
    return found


@psycopg_2
def a_server_side_cursor(side: Side) -> Any:
    connection = psycopg2.connect(side.dsn)
    cursor = connection.cursor("named")
    cursor.itersize = 2
    cursor.execute(PUBLIC)
    found = plain(cursor)
    connection.close()
    return found


@psycopg_2
def copy_expert(side: Side) -> Any:
    import io

    connection = psycopg2.connect(side.dsn)
    out = io.StringIO()
    connection.cursor().copy_expert(f"COPY ({PUBLIC}) TO STDOUT WITH CSV HEADER", out)
    connection.close()
    return out.getvalue()


@psycopg_2
def errors_abort_the_transaction(side: Side) -> Any:
    connection = psycopg2.connect(side.dsn)
    cursor = connection.cursor()
    found = [
        state(lambda: cursor.execute("SELECT * FROM nowhere")),
        state(lambda: cursor.execute("SELECT 1")),
    ]
    connection.close()
    return found


@pandas
def read_sql(side: Side) -> Any:
    engine = sa.create_engine(side.url("postgresql+psycopg"))
    frame = pd.read_sql(PAGES, engine)
    engine.dispose()
    return list(frame.columns), [str(t) for t in frame.dtypes], list(frame["page"])


@pandas
def read_sql_in_chunks(side: Side) -> Any:
    engine = sa.create_engine(side.url("postgresql+psycopg2"))
    with engine.connect() as connection:
        parts = [
            part.values.tolist() for part in pd.read_sql(sa.text(PUBLIC), connection, chunksize=4)
        ]
    engine.dispose()
    return parts


@pandas
def read_sql_table(side: Side) -> Any:
    engine = sa.create_engine(side.url("postgresql+psycopg"))
    frame = pd.read_sql_table("countries", engine).sort_values("country")
    engine.dispose()
    return [str(t) for t in frame.dtypes], frame.values.tolist()


@polars
def read_database_uri_with_connectorx(side: Side) -> Any:
    frame = pl.read_database_uri(PAGES, side.url("postgresql"), engine="connectorx")
    return dict(zip(frame.columns, map(str, frame.dtypes), strict=True)), frame["page"].to_list()


@polars
def read_database_uri_with_adbc(side: Side) -> Any:
    frame = pl.read_database_uri(PUBLIC, side.url("postgresql"), engine="adbc")
    return dict(zip(frame.columns, map(str, frame.dtypes), strict=True)), plain(frame.rows())


@polars
def read_database(side: Side) -> Any:
    engine = sa.create_engine(side.url("postgresql+psycopg"))
    frame = pl.read_database(PUBLIC, engine)
    engine.dispose()
    return dict(zip(frame.columns, map(str, frame.dtypes), strict=True)), plain(frame.rows())


@flight
def arrow_tables(side: Side) -> Any:
    with adbc.connect(side.url("postgresql")) as c, c.cursor() as cursor:
        cursor.execute(PAGES)
        table = cursor.fetch_arrow_table()
    return [(f.name, str(f.type)) for f in table.schema], table.column("page").to_pylist()


@flight
def arrow_with_parameters(side: Side) -> Any:
    with adbc.connect(side.url("postgresql")) as c, c.cursor() as cursor:
        cursor.execute("SELECT country FROM countries WHERE population > $1 ORDER BY 1", (100,))
        return cursor.fetch_arrow_table().to_pylist()


@flight
def nulls_and_dates(side: Side) -> Any:
    with adbc.connect(side.url("postgresql")) as c, c.cursor() as cursor:
        cursor.execute(
            "SELECT DATE '2024-02-29' AS d, TIMESTAMP '2024-01-01 10:00:00' AS t, NULL::int4 AS z"
        )
        table = cursor.fetch_arrow_table()
        return [str(t) for t in table.schema.types], table.to_pylist()


@flight
def get_objects(side: Side) -> Any:
    with adbc.connect(side.url("postgresql")) as c:
        found = (
            c.adbc_get_objects(depth="columns", db_schema_filter="public").read_all().to_pylist()
        )
    return [
        (t["table_name"], sorted(col["column_name"] for col in t["table_columns"]))
        for catalog in found
        for schema in catalog["catalog_db_schemas"]
        for t in sorted(schema["db_schema_tables"], key=lambda t: t["table_name"])
        if t["table_type"] == "table"
    ]


@flight
def table_schema(side: Side) -> Any:
    with adbc.connect(side.url("postgresql")) as c:
        schema = c.adbc_get_table_schema("orders")
    return [(f.name, str(f.type)) for f in schema]


@flight
def a_table_that_is_not_there(side: Side) -> Any:
    with adbc.connect(side.url("postgresql")) as c, c.cursor() as cursor:
        return state(lambda: cursor.execute("SELECT * FROM nowhere"))
