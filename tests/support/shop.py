"""The world of fixtures/policies/shop.yaml without its data: enough for every pure stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa

from dpsql import pipeline
from dpsql.diagnostics.refusal import Refused
from dpsql.engines.duckdb.engine import Constants
from dpsql.engines.public_groups import PublicEnumerator
from dpsql.policy.against_source import source_columns
from dpsql.policy.load import load
from dpsql.policy.source import TableDescription
from dpsql.price.priced import PricedPlan
from dpsql.price.request import Request
from dpsql.service import own_tables
from dpsql.sql.bind import Bound, bind
from dpsql.sql.bind.context import Catalog
from dpsql.sql.parse import Source, parse

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
COUNTRIES = TableDescription({"country": "VARCHAR", "name": "VARCHAR", "continent": "VARCHAR",
                              "inhabitants": "BIGINT"})  # fmt: skip
NOW = datetime(2025, 6, 1, 12)  # noqa: DTZ001 (naive by design)


@cache
def catalog(policy: str = "policies/shop.yaml") -> Catalog:
    """What an analyst sees of a policy; its public tables have the columns of the demo data."""
    loaded = load(FIXTURES / policy)
    tables = {
        name: replace(table, columns=table.columns or source_columns(COUNTRIES))
        for name, table in loaded.tables.items()
    }
    codes = {("countries", "country"): ("AT", "DE", "FR", "IT", "NL")}
    return Catalog(replace(loaded, tables=tables), NOW, frozenset((*tables, *loaded.views)), codes)


ANALYST = Request(Fraction(1, 10), Fraction(1, 10**8))
PURE = Request(Fraction(1, 2), Fraction(0))


def bound(sql: str, parameters: Sequence[object] = ()) -> Bound:
    """The bound query."""
    return bind(parse(Source(sql, parameters=parameters)), catalog())  # type: ignore[arg-type]


def priced(
    sql: str,
    parameters: Sequence[object] = (),
    *,
    policy: str = "policies/shop.yaml",
    request: Request = ANALYST,
    dialect: str = "postgres",
) -> PricedPlan:
    """The whole line of pure stages, over dpsql's own tables too, as a session asks it."""
    source = Source(sql, dialect, parameters)  # type: ignore[arg-type]

    def ask(asked: Source) -> PricedPlan:
        own = own_tables.asked_for(asked)
        seen = own_tables.catalog(catalog(policy), asked) if own else catalog(policy)
        plan = pipeline.make_plan(asked, seen, evaluator())
        return pipeline.price_plan(plan, asked, request)

    return pipeline.with_suggestion(ask, source, catalog(policy))


def outcome(sql: str, parameters: Sequence[object] = (), **options: object) -> PricedPlan | Refused:
    """The priced plan, or why there is none."""
    try:
        return priced(sql, parameters, **options)  # type: ignore[arg-type]
    except Refused as refused:
        return refused


def refusal(sql: str, parameters: Sequence[object] = (), **options: object) -> Refused | None:
    """Why the query is not answered, or None."""
    found = outcome(sql, parameters, **options)
    return found if isinstance(found, Refused) else None


class _Countries:
    """The public table, without any private one."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:")
        self._connection.execute(
            "CREATE TABLE countries AS SELECT * FROM (VALUES ('AT', 'Austria', 'Europe', 9), ('DE', 'Germany', 'Europe', 84),"
            " ('FR', 'France', 'Europe', 68), ('IT', 'Italy', 'Europe', 59), ('NL', 'Netherlands', 'Europe', 18))"
            " AS v(country, name, continent, inhabitants)"
        )

    def read_public(self, sql: str) -> pa.Table:
        return self._connection.sql(sql).to_arrow_table()


@cache
def evaluator() -> PublicEnumerator:
    """What lists public groups, without any data of the source."""
    return PublicEnumerator(Constants(), _Countries())
