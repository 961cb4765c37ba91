"""SQLAlchemy 2: reflection and queries, over three drivers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sides import CHECKS, Side, plain, shape

DRIVERS = ("psycopg", "psycopg2", "pg8000")


def check(function: Callable[[sa.Engine], Any]) -> Callable[[sa.Engine], Any]:
    """The same check over each driver."""
    for driver in DRIVERS:

        def run(side: Side, driver: str = driver) -> Any:
            with _engine(side, driver) as engine:
                return function(engine)

        CHECKS[f"SQLAlchemy 2 with {driver}", function.__name__.replace("_", " ")] = run
    return function


@contextmanager
def _engine(side: Side, driver: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(side.url(f"postgresql+{driver}"))
    try:
        yield engine
    finally:
        engine.dispose()


@check
def tables_and_schemas(engine: sa.Engine) -> Any:
    look = sa.inspect(engine)
    return (
        sorted(look.get_table_names()), look.get_view_names(), sorted(look.get_schema_names()),
        look.has_table("orders"), look.has_table("nowhere"), look.default_schema_name,
    )  # fmt: skip


@check
def columns(engine: sa.Engine) -> Any:
    look = sa.inspect(engine)
    return {
        table: [
            (c["name"], str(c["type"]), c["nullable"], c["default"], c["comment"])
            for c in look.get_columns(table)
        ]
        for table in ("countries", "customers", "orders", "visits")
    }


@check
def keys_and_indexes(engine: sa.Engine) -> Any:
    look = sa.inspect(engine)
    return [
        (
            look.get_pk_constraint(table), look.get_foreign_keys(table), look.get_indexes(table),
            look.get_unique_constraints(table), look.get_check_constraints(table),
        )
        for table in ("customers", "orders")
    ]  # fmt: skip


@check
def comments(engine: sa.Engine) -> Any:
    return sa.inspect(engine).get_table_comment("orders")


@check
def queries_over_reflected_tables(engine: sa.Engine) -> Any:
    meta = sa.MetaData()
    meta.reflect(engine)
    orders, customers = meta.tables["orders"], meta.tables["customers"]
    query = (
        sa.select(orders.c.channel, sa.func.count().label("n"), sa.func.avg(orders.c.amount))
        .join_from(orders, customers)
        .where(customers.c.age > 20)
        .group_by(orders.c.channel)
        .order_by(orders.c.channel)
        .limit(3)
    )
    with engine.connect() as connection:
        found = connection.execute(query)
        return list(found.keys()), shape(found)


@check
def parameters_and_public_tables(engine: sa.Engine) -> Any:
    text = sa.text("SELECT country, population FROM countries WHERE population > :n ORDER BY 1")
    with engine.connect() as connection:
        return plain(connection.execute(text, {"n": 100}))


@check
def streams(engine: sa.Engine) -> Any:
    with engine.connect().execution_options(stream_results=True, max_row_buffer=3) as connection:
        found = connection.execute(sa.text("SELECT country FROM countries ORDER BY 1"))
        return plain(found)


@check
def parameters_in_the_place_of_constants(engine: sa.Engine) -> Any:
    """Units, formats and intervals, which SQLAlchemy sends as values."""
    visits = sa.table("visits", sa.column("started", sa.DateTime))
    started = visits.c.started
    month = sa.func.date_trunc("month", started).label("month")
    later = started > dt.datetime(2025, 6, 1)  # noqa: DTZ001
    length = sa.cast(dt.timedelta(days=10, hours=5), sa.Interval)
    with engine.connect() as connection:
        by_month = sa.select(month, sa.func.count()).where(later)
        found = shape(connection.execute(by_month.group_by(sa.text("1")).order_by(sa.text("1"))), 1)
        count = sa.select(sa.func.count()).select_from(visits)
        for condition in (
            sa.func.to_char(started, "YYYY-MM") > "2024-07",
            started > dt.datetime(2025, 6, 1) - length,  # noqa: DTZ001
        ):
            found += shape(connection.execute(count.where(condition)))
    return found
