"""The second check demands that what names a group is the same bytes wherever it is equal."""

from __future__ import annotations

import functools
from dataclasses import replace

import duckdb
import pytest
from support.corpus import SHOP, World
from support.measured import opened

from dpsql.engines.duckdb.expressions import canonical
from dpsql.engines.duckdb.guard import Guard, Unsafe
from dpsql.engines.duckdb.types import engine_type
from dpsql.policy.source import policy_type
from dpsql.policy.types import POLICY_TYPES, Kind

ID = 'TRY_CAST(t."customer_id" AS BIGINT)'
X, Y = 'TRY_CAST(t."amount" AS DOUBLE)', f"(CAST({ID} AS DOUBLE) / 3.0e0)"
FROM = f'FROM "orders" AS t WHERE {ID} IS NOT NULL'
ONE, NAN = canonical(X, Kind.DOUBLE), "CAST('NaN' AS DOUBLE)"
BY_KEY = f"SELECT {{}} AS k0, count(*) AS p0 {FROM} GROUP BY 1"
PER_UNIT = f"SELECT k AS k0, count(*) AS p0 FROM (SELECT {ID} AS u, {{}} AS k {FROM} GROUP BY {{}}) AS g GROUP BY 1"

FORMS = (
    ONE, f"CASE WHEN {ID} > 3 THEN {ONE} ELSE 0.0e0 END", f"CASE WHEN {ID} > 3 THEN {ONE} END", f"coalesce({ONE}, -1.5e0)",
    f"coalesce({ONE}, {NAN})", f"CAST({ID} AS DOUBLE)", "0.0e0", "CAST(NULL AS DOUBLE)", f"nullif({ONE}, 3.0e0)", f"TRY_CAST({X} AS VARCHAR)",
    f"TRY_CAST({X} AS BIGINT)", f"{X} > 3", canonical(f"floor({X})", Kind.DOUBLE), canonical(ONE, Kind.DOUBLE),
)  # fmt: skip
NOT_QUITE = {
    "as it is": X,
    "without NaN": f"{X} + 0.0e0",
    "without zero": f"CASE WHEN isnan({X}) THEN {NAN} ELSE {X} END",
    "plus a whole zero": f"CASE WHEN isnan({X}) THEN {NAN} ELSE {X} + 0 END",
    "plus minus zero": f"CASE WHEN isnan({X}) THEN {NAN} ELSE {X} + -0.0e0 END",
    "less zero": f"CASE WHEN isnan({X}) THEN {NAN} ELSE {X} - 0.0e0 END",
    "plus one": f"CASE WHEN isnan({X}) THEN {NAN} ELSE {X} + 1.0e0 END",
    "plus nothing": f"CASE WHEN isnan({X}) THEN {NAN} ELSE +{X} END",
    "zero first": f"CASE WHEN isnan({X}) THEN {NAN} ELSE 0.0e0 - {X} END",
    "another NaN": f"CASE WHEN isnan({X}) THEN CAST('-NaN' AS DOUBLE) ELSE {X} + 0.0e0 END",
    "its own NaN": f"CASE WHEN isnan({X}) THEN {X} ELSE {X} + 0.0e0 END",
    "NaN as text that fails": f"CASE WHEN isnan({X}) THEN TRY_CAST('NaN' AS DOUBLE) ELSE {X} + 0.0e0 END",
    "a test of another": f"CASE WHEN isnan({Y}) THEN {NAN} ELSE {X} + 0.0e0 END",
    "another value": f"CASE WHEN isnan({X}) THEN {NAN} ELSE {Y} + 0.0e0 END",
    "another test": f"CASE WHEN {X} IS NULL THEN {NAN} ELSE {X} + 0.0e0 END",
    "two cases": f"CASE WHEN {ID} > 3 THEN {NAN} WHEN isnan({X}) THEN {NAN} ELSE {X} + 0.0e0 END",
    "a case behind": f"CASE WHEN isnan({X}) THEN {NAN} WHEN {ID} > 3 THEN -0.0e0 ELSE {X} + 0.0e0 END",
    "turned around": f"(-({ONE}))",
    "times": f"({ONE} * -1.0e0)",
    "rounded": f"floor({ONE})",
    "or minus zero": f"CASE WHEN {ID} > 3 THEN {ONE} ELSE -0.0e0 END",
    "or a text's zero": f"coalesce({ONE}, CAST('-0' AS DOUBLE))",
    "or a text's NaN": f"coalesce({ONE}, CAST('-nan' AS DOUBLE))",
    "or a parameter": f"CASE WHEN {ID} > 3 THEN {ONE} ELSE $x0_ END",
    "or a parameter of its type": f"coalesce({ONE}, CAST($x0_ AS DOUBLE))",
    "a text read as a number": "TRY_CAST(TRY_CAST(t.\"channel\" AS VARCHAR) AS DOUBLE)",
    "an interval": "INTERVAL '1 month'",
    "a list": f"[{X}]",
    "a record": f"row({X}, {ID})",
    "the larger of two": f"greatest({X}, {Y})",
}  # fmt: skip


@functools.cache
def guard(world: World = SHOP) -> Guard:
    return Guard(opened(world).policy)


@pytest.mark.parametrize("form", FORMS)
def test_a_key_in_its_form_passes(form: str) -> None:
    guard().check(BY_KEY.format(form))


@pytest.mark.parametrize("what", NOT_QUITE)
def test_what_is_not_quite_the_form_does_not(what: str) -> None:
    with pytest.raises(Unsafe, match=r"bytes|parameter"):
        guard().check(BY_KEY.format(NOT_QUITE[what]))


COLLATED = (
    "{} COLLATE NOCASE", '{} COLLATE "de"', "TRY_CAST({} AS VARCHAR('nocase'))", "TRY_CAST({} AS VARCHAR(collation := 'nocase'))",
    "TRY_CAST({} AS VARCHAR(3))", "collate_nocase({})", "icu_sort_key({}, 'de')", "nfc_normalize({})", "strip_accents({})",
    "TRY_CAST({} AS TIMESTAMP WITH TIME ZONE)", "TRY_CAST({} AS TIMETZ)", "TRY_CAST({} AS JSON)", "TRY_CAST({} AS BLOB)",
)  # fmt: skip


@pytest.mark.parametrize("form", COLLATED)
def test_no_text_is_compared_but_byte_by_byte(form: str) -> None:
    """No statement gives a text a collation, or makes it a value of a type without one form."""
    text = form.format('TRY_CAST(t."channel" AS VARCHAR)')
    for statement in (BY_KEY.format(text), f"SELECT count(*) AS p0 {FROM} AND {text} IS NULL"):
        with pytest.raises(Unsafe, match=r"class COLLATE|the type|the function|not one query"):
            guard().check(statement)


INSIDE = {
    "a unit's groups": PER_UNIT.format(X, f"1, {X}"),
    "the least of a unit": PER_UNIT.format(f"TRY_CAST(min({X}) AS VARCHAR)", "1"),
    "the largest of a unit": PER_UNIT.format(f"TRY_CAST(max({X}) AS VARCHAR)", "1"),
    "the median of a unit": PER_UNIT.format(f"TRY_CAST(quantile_cont({X}, 0.5e0) AS VARCHAR)", "1"),
    "a quantile of a unit": PER_UNIT.format(f"TRY_CAST(quantile_disc({X}, 0.5e0) AS VARCHAR)", "1"),
    "the least in a window": f"SELECT count(*) AS p0 FROM (SELECT min({X}) OVER (PARTITION BY {ID}) AS k {FROM}) AS g WHERE k > 3",
    "a unit's distinct rows": f"SELECT TRY_CAST(k AS VARCHAR) AS k0, count(*) AS p0 FROM (SELECT DISTINCT {ID} AS u, {X} AS k {FROM}) AS g GROUP BY 1",
    "rows of two sides": f"SELECT k AS k0, count(*) AS p0 FROM (SELECT {ID} AS u, {ONE} AS k {FROM} UNION ALL SELECT {ID} AS u, {X} AS k {FROM}) AS g GROUP BY 1",
    "a stored column, cast afterwards": f'SELECT TRY_CAST(k AS VARCHAR) AS k0, count(*) AS p0 FROM (SELECT {ID} AS u, t."amount" AS k {FROM} GROUP BY 1, 2) AS g GROUP BY 1',
    "a stored column of distinct rows, cast afterwards": f'SELECT TRY_CAST(k AS VARCHAR) AS k0, count(*) AS p0 FROM (SELECT DISTINCT {ID} AS u, t."amount" AS k {FROM}) AS g GROUP BY 1',
    "a stored column": f'SELECT t."amount" AS k0, count(*) AS p0 {FROM} GROUP BY 1',
    "a stored unit's key, as it is": f'SELECT k AS k0, count(*) AS p0 FROM (SELECT {ID} AS u, t."amount" AS k {FROM} GROUP BY 1, 2) AS g GROUP BY 1',
    "the least stored column": f'SELECT count(*) AS p0 FROM (SELECT min(t."amount") AS k {FROM} GROUP BY {ID}) AS g WHERE k IS NULL',
}  # fmt: skip
ROUND_ABOUT = {
    "a unit's groups": PER_UNIT.format(ONE, f"1, {ONE}"),
    "the least of a unit": PER_UNIT.format(f"TRY_CAST(min({ONE}) AS VARCHAR)", "1"),
    "a least that stays one": PER_UNIT.format(f"max({ONE})", "1"),
    "a unit's distinct rows": f"SELECT TRY_CAST(k AS VARCHAR) AS k0, count(*) AS p0 FROM (SELECT DISTINCT {ID} AS u, {ONE} AS k {FROM}) AS g GROUP BY 1",
    "a stored text, cast afterwards": f'SELECT TRY_CAST(k AS VARCHAR) AS k0, count(*) AS p0 FROM (SELECT {ID} AS u, t."channel" AS k {FROM} GROUP BY 1, 2) AS g GROUP BY 1',
}  # fmt: skip


@pytest.mark.parametrize("what", INSIDE)
def test_nor_are_rows_of_a_unit_put_together_without_it(what: str) -> None:
    with pytest.raises(Unsafe, match="equal"):
        guard().check(INSIDE[what])


@pytest.mark.parametrize("what", ROUND_ABOUT)
def test_with_it_they_are(what: str) -> None:
    guard().check(ROUND_ABOUT[what])


def test_a_column_of_unknown_type_puts_rows_together_and_one_of_doubles_does_not() -> None:
    """Nothing tells the values of the former apart afterwards; the latter is a value like any other."""
    together = (
        f'SELECT count(*) AS p0 FROM (SELECT {ID} AS u, t."amount" AS k {FROM} GROUP BY 1, 2) AS g'
    )
    policy = opened(SHOP).policy
    orders = policy.tables["orders"]
    assert orders.columns["amount"].held_as_read
    columns = {n: replace(c, held_as_read=False) for n, c in orders.columns.items()}
    tables = {**policy.tables, "orders": replace(orders, columns=columns)}
    Guard(replace(policy, tables=tables)).check(together)
    with pytest.raises(Unsafe, match="equal"):
        guard().check(together)


EQUAL: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "'t'::BOOLEAN"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), ("7", "'07'::INTEGER")),
    "FLOAT": ("0.0::FLOAT", "-0.0::FLOAT"),
    "DOUBLE": ("0.0::DOUBLE", "-0.0::DOUBLE"),
    "DECIMAL": ("0.000", "-0.0", "0.00::DOUBLE"),
    "VARCHAR": ("'a'", "'a'::CHAR(9)"),
    "UUID": ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'a0eebc999c0b4ef8bb6d6bb9bd380a11'"),
    "DATE": ("'2025-01-01'", "TIMESTAMP '2025-01-01 12:00:00'"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), ("'2025-01-01 12:00:00'", "'2025-01-01T12:00:00Z'")),
    "TIMESTAMP WITH TIME ZONE": ("'2025-01-01 12:00:00+00'", "'2025-01-01 14:00:00+02'"),
    "ENUM": (),
}  # fmt: skip
"""Values of each type that dpsql reads, which are equal once they are stored."""
NAMES = {"DECIMAL": "DECIMAL(9, 3)"}


def test_every_type_of_the_engine_has_one_form_or_is_not_read() -> None:
    """A type that an engine adds is not read until somebody says what its equal values are."""
    found = duckdb.connect().execute("SELECT DISTINCT logical_type FROM duckdb_types()").fetchall()
    known = {name for (name,) in found}
    assert len(known) > 30
    samples = {"DECIMAL": "DECIMAL(9,3)", "ENUM": "ENUM('a')"}
    read = {name for name in known if policy_type(samples.get(name, name)) is not None}
    assert read == EQUAL.keys()
    for name in ("INTERVAL", "TIME", "TIME WITH TIME ZONE", "BIT", "BLOB", "DOUBLE[]", "JSON"):
        assert policy_type(name) is None


@pytest.mark.parametrize("name", sorted(set(EQUAL) - {"ENUM"}))
def test_equal_values_are_the_same_bytes_in_it(name: str) -> None:
    """In whichever order rows come; as it would be without the form: two of them differ."""
    held = NAMES.get(name, name)
    kind = POLICY_TYPES[(policy_type(held) or "").split("(")[0]]
    values = EQUAL[name]
    labels = set()
    for ordered in (values, values[::-1]):
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            connection.execute(f"CREATE TABLE t (v {held})")
            for value in ordered:
                connection.execute(f"INSERT INTO t VALUES ({value})")
            text = canonical(f"TRY_CAST(v AS {engine_type(kind)})", kind)
            table = connection.sql(f"SELECT {text} AS k0 FROM t GROUP BY 1").to_arrow_table()
        assert table.num_rows == 1
        labels.add(tuple(b and b.to_pybytes() for b in table.column(0).combine_chunks().buffers()))
    assert len(labels) == 1
