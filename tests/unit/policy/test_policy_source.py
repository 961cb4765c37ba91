"""The policy against its source."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from policy_text import AGE, FIXTURES, small
from support.services import noon

from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.policy import against_source
from dpsql.policy.against_source import _exactly_comparable, compare
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.policy.source import (
    SourceDescription,
    TableDescription,
    declared_as,
    policy_type,
)
from dpsql.policy.types import Kind
from dpsql.price.priced import Chosen
from dpsql.service import Service

SHOP = {
    "customers": TableDescription(
        {
            "customer_id": "BIGINT",
            "email": "VARCHAR",
            "country": "ENUM('fr', 'de')",
            "age": "UTINYINT",
            "city": "VARCHAR",
        },
        unique=(frozenset({"customer_id"}),),
    ),
    "orders": TableDescription(
        {
            "customer_id": "DECIMAL(18,0)",
            "amount": "DECIMAL(12,2)",
            "placed": "DATE",
            "channel": "VARCHAR",
        }
    ),
    "visits": TableDescription(
        {
            "customer_id": "HUGEINT",
            "started": "TIMESTAMP_NS",
            "seconds": "INTEGER",
            "page": "VARCHAR",
            "more": "BLOB",
        }
    ),
    "countries": TableDescription(
        {
            "country": "VARCHAR",
            "area": "FLOAT",
            "since": "TIMESTAMP WITH TIME ZONE",
        },
        frozenset({"country"}),
    ),
}


def _as_written(policy: Policy) -> Policy:
    """Without what was found of the types of the source."""
    tables = {
        name: replace(
            table, columns={n: replace(c, held_as_read=False) for n, c in table.columns.items()}
        )
        for name, table in policy.tables.items()
    }
    return replace(policy, tables=tables)


def test_columns_of_the_very_type_need_no_cast() -> None:
    filled = compare(load(FIXTURES / "shop.yaml"), SourceDescription(SHOP))
    held = {
        (table.name, column.name)
        for table in filled.tables.values()
        for column in table.columns.values()
        if column.held_as_read
    }
    # customer_id is no BIGINT in orders and visits, which refer to that of customers
    assert held == {
        ("customers", "email"), ("customers", "city"), ("orders", "placed"), ("orders", "channel"),
        ("visits", "page"), ("countries", "country"),
    }  # fmt: skip


def test_columns_of_values_that_may_not_fit_are_nullable() -> None:
    filled = compare(load(FIXTURES / "shop.yaml"), SourceDescription(SHOP))
    assert filled.tables["visits"].columns["customer_id"].nullable, "it is a HUGEINT"
    assert not filled.tables["orders"].columns["customer_id"].nullable, "DECIMAL(18,0) fits"


def mismatches(policy: Policy, **tables: TableDescription) -> list[str]:
    with pytest.raises(SourceMismatch) as caught:
        compare(policy, SourceDescription({**SHOP, **tables}))
    return [line.split(": ", 1)[1] for line in caught.value.problems]


def test_public_tables_get_their_columns() -> None:
    policy = load(FIXTURES / "shop.yaml")
    filled = compare(policy, SourceDescription(SHOP))
    columns = filled.tables["countries"].columns
    assert {name: (c.declared, c.kind, c.nullable) for name, c in columns.items()} == {
        "country": ("text", Kind.TEXT, False),
        "area": ("real", Kind.DOUBLE, True),
        "since": ("timestamptz", Kind.TIMESTAMP, True),
    }
    assert _as_written(filled).tables["orders"] == policy.tables["orders"]
    assert filled.version == policy.version
    assert compare(filled, SourceDescription(SHOP)) == filled


def test_a_foreign_key_to_a_missing_table() -> None:
    policy = load(FIXTURES / "shop.yaml")
    rest = {name: there for name, there in SHOP.items() if name != "customers"}
    with pytest.raises(SourceMismatch) as caught:
        compare(policy, SourceDescription(rest))
    assert len(caught.value.problems) == 1


def test_missing_tables_and_columns_are_named() -> None:
    policy = load(FIXTURES / "shop.yaml")
    columns = {"customer": "BIGINT", "amount": "DOUBLE", "placed": "DATE", "channel": "VARCHAR"}
    description = {**SHOP, "orders": TableDescription(columns)}
    description["visit"] = description.pop("visits")
    with pytest.raises(SourceMismatch) as caught:
        compare(policy, SourceDescription(description))
    path = FIXTURES / "shop.yaml"
    assert caught.value.problems == (
        (
            f"{path}:23:7: table orders of the source has no column customer_id; "
            'did you mean "customer"?'
        ),
        f'{path}:28:3: the source has no table visits; did you mean "visit"?',
    )


@pytest.mark.parametrize(
    ("mine", "theirs", "exact"),
    [
        ("INTEGER", "BIGINT", True), ("HUGEINT", "SMALLINT", True), ("DECIMAL(9,0)", "BIGINT", True),
        ("FLOAT", "DOUBLE", True), ("VARCHAR", "ENUM('a', 'b')", True), ("BIGINT", "DOUBLE", False),
        ("DECIMAL(9,2)", "DECIMAL(12,4)", False), ("TIMESTAMP", "TIMESTAMP_NS", False),
        ("VARCHAR", "UUID", False), ("HUGEINT", "DECIMAL(38,0)", False),
    ],
)  # fmt: skip
def test_keys_are_of_types_that_are_compared_exactly(mine: str, theirs: str, exact: bool) -> None:
    assert _exactly_comparable(mine, theirs) is _exactly_comparable(theirs, mine) is exact


def test_types_must_fit() -> None:
    columns = {
        "customer_id": "VARCHAR",
        "amount": "BLOB",
        "placed": "TIMESTAMP",
        "channel": "VARCHAR",
    }
    assert mismatches(load(FIXTURES / "shop.yaml"), orders=TableDescription(columns)) == [
        (
            "column orders.customer_id is VARCHAR in the source, which is not bigint; "
            "write `type: text`"
        ),
        (
            "column orders.amount is BLOB in the source, which is not double; no policy type is like "
            "it; let a view of the source cast it: CAST(.. AS VARCHAR); or remove the column"
        ),
        (
            "column orders.placed is TIMESTAMP in the source, which is not date; "
            "write `type: timestamp`"
        ),
    ]


def test_a_unit_key_that_the_source_contradicts() -> None:
    policy = load(FIXTURES / "shop.yaml")
    customers = SHOP["customers"]
    wider = (frozenset({"customer_id", "city"}),)
    (line,) = mismatches(policy, customers=replace(customers, unique=wider))
    assert line == (
        "(customer_id) is a key of table customers in the policy, but in the source only "
        "(customer_id, city) is unique: several rows may share it; write `units: {customer: {key: "
        "customer_id}}`, without `table`, or declare the constraint in the source"
    )
    both = replace(customers, unique=(*wider, frozenset({"customer_id"})))
    none = replace(customers, unique=())
    elsewhere = replace(customers, unique=(frozenset({"email", "city"}),))
    for allowed in (both, none, elsewhere):
        compare(policy, SourceDescription({**SHOP, "customers": allowed}))


TIMED = """
source: {engine: duckdb, path: timed.duckdb}
data_version: "1"
units: {person: {table: people, key: id}}
tables:
  people: {unit: person, columns: {id: {type: timestamp}}}
  visits:
    unit: person
    max_rows_per_unit: 2
    foreign_keys: [{columns: id, references: people}]
    columns: {id: {type: timestamp}, x: {type: double, range: [-10, 10]}}
accounts: {dataset: {epsilon: 1e9, delta: 0, composition: basic}}
roles: {analyst: {epsilon: 1e9, query: {epsilon: 1e6}}}
"""


def _summed(place: Path, rows: int) -> tuple[float, float]:
    """A sum with so many rows of a person beside a person whose key is 100 ns later; and its bound."""
    place.mkdir()
    with duckdb.connect(str(place / "timed.duckdb")) as connection:
        connection.execute("CREATE TABLE people (id TIMESTAMP_NS)")
        connection.execute("CREATE TABLE visits (id TIMESTAMP_NS, x DOUBLE)")
        for nanoseconds, x, count in ((10**12 + 100, 10, rows), (10**12 + 200, -10, 2)):
            key = f"make_timestamp_ns({nanoseconds})"
            connection.execute(f"INSERT INTO visits SELECT {key}, {x} FROM range({count})")
    (place / "policy.yaml").write_text(TIMED)
    with Service.open(place / "policy.yaml", clock=noon) as service:
        session = service.session()
        (part,) = session.prepare("SELECT SUM(x) FROM visits").parts
        (total,) = session.execute("SELECT SUM(x) FROM visits").table.column(0).to_pylist()
        (item,) = part.noised
        assert not isinstance(item, Chosen)
        return total, float(item.sensitivity.l1 * item.grain)


def test_a_key_of_a_unit_of_which_several_values_are_read_as_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceMismatch, match="which dpsql reads with less precision"):
        _summed(tmp_path / "refused", 6)
    monkeypatch.setattr(against_source, "reads_alike", lambda _: False)  # the planted fault
    (there, most), (without, _) = _summed(tmp_path / "six", 6), _summed(tmp_path / "none", 0)
    assert there - without > most + 1


def test_declared_keys_that_the_source_contradicts() -> None:
    policy = load(FIXTURES / "far.yaml")
    types = {"bigint": "BIGINT", "integer": "INTEGER", "smallint": "SMALLINT", "text": "VARCHAR"}
    described = {
        name: TableDescription(
            {c.name: types.get(c.declared, c.declared.upper()) for c in table.columns.values()}
        )
        for name, table in policy.tables.items()
    }
    assert _as_written(compare(policy, SourceDescription(described))) == policy
    versions = (frozenset({"order_id", "priority"}),)
    described["orders"] = replace(described["orders"], unique=versions)
    with pytest.raises(SourceMismatch) as caught:
        compare(policy, SourceDescription(described))
    (line,) = caught.value.problems
    assert "(order_id) is a key of table orders" in line


def test_names_into_public_tables_are_checked_once_their_columns_are_known() -> None:
    policy = small(
        (", columns: {country: {type: text}}", ", key: [name]"),
        (
            AGE,
            (
                "age: {type: text, values_from: countries.contry}\n"
                "      area: {type: text, values_from: countries.area}"
            ),
        ),
        (
            "[{columns: customer_id, references: customers}]",
            (
                "[{columns: customer_id, references: customers},"
                " {columns: customer_id, references: countries, key: number}]"
            ),
        ),
    )
    customers = TableDescription({"customer_id": "BIGINT", "age": "VARCHAR", "area": "UUID"})
    orders = TableDescription({"customer_id": "BIGINT", "amount": "DOUBLE"})
    assert mismatches(policy, customers=customers, orders=orders) == [
        (
            'table customers names "contry", which is not a column of countries; '
            'did you mean "country"?'
        ),
        "values_from of column customers.area has type double, not text; name a column that fits",
        (
            'table orders names "number", which is not a column of countries; '
            "the columns are: area, country, since"
        ),
        (
            'table countries names "name", which is not a column of countries; '
            "the columns are: area, country, since"
        ),
    ]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("INTERVAL", "let a view of the source give seconds: epoch(..)"),
        ("INTEGER[]", "let a view of the source give each part a column of its own"),
        ("MAP(VARCHAR, INTEGER)", "let a view of the source give each part a column of its own"),
        ("TIME", "let a view of the source give the seconds since midnight: epoch(..)"),
        ("TIME WITH TIME ZONE", "let a view of the source give the seconds since midnight"),
        ("BLOB", "let a view of the source cast it: CAST(.. AS VARCHAR)"),
    ],
)
def test_no_column_of_a_public_table_is_missing_in_silence(held: str, said: str) -> None:
    there = TableDescription({"country": "VARCHAR", "x": held})
    (line,) = mismatches(load(FIXTURES / "shop.yaml"), countries=there)
    assert line.startswith(
        f"column countries.x is {held} in the source, which dpsql does not read: "
    )
    assert said in line
    assert line.endswith("; or leave it out: write the others under `columns:`")


@pytest.mark.parametrize(
    ("declared", "held", "shown"),
    [
        ("integer", "BIGINT", "bigint"),
        ("smallint", "HUGEINT", "bigint"),
        ("smallint", "UTINYINT", "smallint"),
        ("real", "DOUBLE", "double"),
        ("uuid", "VARCHAR", "text"),
        ("uuid", "UUID", "uuid"),
        ("decimal(9, 2)", "DOUBLE", "double"),
        ("decimal(9, 2)", "DECIMAL(7,1)", "decimal(9, 2)"),
        ("decimal(9, 2)", "DECIMAL(7,3)", "decimal(7, 3)"),
        ("decimal(9, 2)", "INTEGER", "double"),
        ("decimal", "DECIMAL(12,2)", "decimal(12, 2)"),
        ("timestamptz", "TIMESTAMP", "timestamptz"),
        ("double", "DECIMAL(12,2)", "double"),
    ],
)
def test_a_type_is_at_least_as_wide_as_that_of_the_source(
    declared: str, held: str, shown: str
) -> None:
    """Else a value that is released could have no place in the type that clients are told."""
    assert declared_as(declared, held) == shown


def test_a_public_table_that_is_missing_or_unreadable() -> None:
    policy = load(FIXTURES / "shop.yaml")
    assert mismatches(policy, countries=TableDescription({"shape": "GEOMETRY"})) == [
        (
            "column countries.shape is GEOMETRY in the source, which dpsql does not read: no policy "
            "type is like it; let a view of the source cast it: CAST(.. AS VARCHAR); or leave it "
            "out: write the others under `columns:`"
        ),
        'table customers names "country", which is not a column of countries; there are no columns',
    ]
    rest = {name: there for name, there in SHOP.items() if name != "countries"}
    with pytest.raises(SourceMismatch) as caught:
        compare(policy, SourceDescription(rest))
    assert len(caught.value.problems) == 1
    with pytest.raises(SourceMismatch) as caught:
        compare(policy, SourceDescription({}))
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    ("held", "declared"),
    [
        ("TIMESTAMP_S", "timestamp"),
        ("TIMESTAMP WITH TIME ZONE", "timestamptz"),
        ("TIME", None),
        ("INTERVAL", None),
        ("ENUM('a(', 'b')", "text"),
        ("uuid", "uuid"),
        ("INTEGER[]", None),
        ("STRUCT(a INTEGER)", None),
        ("TINYINT", "smallint"),
        ("DECIMAL(38, 10)", "decimal(38, 10)"),
    ],
)
def test_engine_types(held: str, declared: str | None) -> None:
    assert policy_type(held) == declared


def test_both_ends_of_a_foreign_key_are_of_one_type_there() -> None:
    policy = load(FIXTURES / "far.yaml")
    assert policy.tables["lineitem"].foreign_keys, "the fixture leads along keys"
    key = policy.tables["lineitem"].foreign_keys[0]
    child = dict.fromkeys(policy.tables["lineitem"].columns, "VARCHAR")
    parent = dict.fromkeys(policy.tables[key.references].columns, "UUID")
    rest = {
        name: TableDescription(dict.fromkeys(table.columns, "BIGINT"))
        for name, table in policy.tables.items()
    }
    there = {**rest, "lineitem": TableDescription(child)}
    there[key.references] = TableDescription(parent)
    with pytest.raises(SourceMismatch) as caught:
        compare(policy, SourceDescription(there))
    assert "give both one type there" in str(caught.value)
