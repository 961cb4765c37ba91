"""The way from private tables to their unit."""

import pytest
from policy_text import AGE, FIXTURES, SMALL, problems, small

from dpsql.policy.load import load
from dpsql.policy.model import ForeignKey

LINES = """\
  lines:
    unit: customer
    {keys}
    columns: {{order_id: {{type: bigint}}, line: {{type: bigint}}, buyer: {{type: bigint}}}}
accounts:"""
WITH_KEY = ("    max_rows_per_unit: 50\n", "    max_rows_per_unit: 50\n    key: order_id\n")
ORDER_ID = ("amount: {type: double}", "order_id: {type: bigint}")


def lines(keys: str) -> tuple[tuple[str, str], ...]:
    return (("accounts:", LINES.format(keys=keys)), WITH_KEY, ORDER_ID)


def test_the_tables_of_a_shop() -> None:
    tables = load(FIXTURES / "shop.yaml").tables
    assert tables["customers"].unit_columns == tables["customers"].key == ("customer_id",)
    assert tables["customers"].max_rows_per_unit == 1
    for name, rows in (("orders", 50), ("visits", 200)):
        assert tables[name].unit_columns == ("customer_id",)
        assert (tables[name].path, tables[name].max_rows_per_unit) == ((), rows)
    assert tables["countries"].public
    assert load(FIXTURES / "shop.yaml").units["customer"].group_size == 1


def test_far_tables() -> None:
    policy = load(FIXTURES / "far.yaml")
    tables = policy.tables
    assert policy.units["customer"].key == ("region", "number")
    assert tables["customer"].unit_columns == ("region", "number")
    assert tables["orders"].path == ()
    assert tables["orders"].unit_columns == ("customer_region", "customer_number")
    to_orders = ForeignKey(("order_id",), "orders", ("order_id",))
    assert tables["lineitem"].path == (to_orders,)
    assert tables["lineitem"].unit_columns == ("customer_region", "customer_number")
    to_line = ForeignKey(("order_id", "line"), "lineitem", ("order_id", "line"))
    assert tables["returns"].path == (to_line, to_orders)
    assert tables["returns"].max_rows_per_unit == tables["lineitem"].max_rows_per_unit == 150
    assert tables["lineitem"].max_rows_per_group == 20
    to_customer, beside = tables["refunds"].foreign_keys
    assert (to_customer.same_unit, beside.same_unit) == (False, True)
    assert tables["refunds"].path == ()
    assert tables["refunds"].unit_columns == ("customer_region", "customer_number")


def test_rows_as_units() -> None:
    policy = load(FIXTURES / "rows.yaml")
    assert policy.units["visit"].is_row
    table = policy.tables["visits"]
    assert (table.unit_columns, table.path, table.key) == ((), (), ())
    assert table.max_rows_per_unit == 1


def test_a_column_may_be_called_row() -> None:
    policy = small(
        ("key: customer_id}", "key: [row]}"),
        ("customer_id: {type: bigint}\n      age", "row: {type: bigint}\n      age"),
    )
    assert policy.units["customer"].key == ("row",)
    assert policy.tables["orders"].unit_columns == ("customer_id",)


def test_a_direct_foreign_key_is_shorter_than_one_through_another_table() -> None:
    direct = "{columns: buyer, references: customers}"
    through = "{columns: order_id, references: orders}"
    policy = small(*lines(f"foreign_keys: [{through}, {direct}]\n    max_rows_per_unit: 9"))
    assert policy.tables["lines"].path == ()
    assert policy.tables["lines"].unit_columns == ("buyer",)


def test_a_unique_foreign_key_bounds_the_rows() -> None:
    key = "key: order_id\n    foreign_keys: [{columns: order_id, references: orders}]"
    assert small(*lines(key)).tables["lines"].max_rows_per_unit == 50
    one = "key: buyer\n    foreign_keys: [{columns: buyer, references: customers}]"
    assert small(*lines(one)).tables["lines"].max_rows_per_unit == 1


def test_another_key_of_the_unit_table_leads_over_that_table() -> None:
    policy = small(
        (AGE, "email: {type: bigint}"),
        ("references: customers}]", "references: customers, key: email}]"),
    )
    link = ForeignKey(("customer_id",), "customers", ("email",))
    assert policy.tables["orders"].path == (link,)
    assert policy.tables["orders"].unit_columns == ("customer_id",)


def test_foreign_keys_within_a_table_and_between_public_ones() -> None:
    policy = small(
        (AGE, "friend: {type: bigint}"),
        (
            "    unit: customer\n    columns",
            (
                "    unit: customer\n    foreign_keys: [{columns: friend, references: customers}]\n"
                "    columns"
            ),
        ),
        (
            "accounts:",
            (
                "  ports: {public: true, foreign_keys: [{columns: c, references: countries, "
                "key: country}]}\naccounts:"
            ),
        ),
    )
    assert policy.tables["customers"].path == ()
    assert policy.tables["ports"].foreign_keys[0].columns == ("c",)


def test_values_from_a_table_whose_name_has_a_dot() -> None:
    policy = small(
        ("  countries:", "  geo.countries:"),
        (AGE, "age: {type: text, values_from: geo.countries.country}"),
    )
    column = policy.tables["customers"].columns["age"]
    assert column.values_from == ("geo.countries", "country")


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (
            (
                "foreign_keys: [{columns: line, references: lines, key: line}, "
                "{columns: order_id, references: islands, key: i}]"
            ),
            "its foreign keys (to lines, islands) lead in a circle",
        ),
        (
            "foreign_keys: [{columns: order_id, references: islands, key: i}]",
            "its foreign keys lead to islands and end there",
        ),
        (
            (
                "foreign_keys: [{columns: order_id, references: islands, key: i}, "
                "{columns: line, references: both, key: i}]"
            ),
            "its foreign keys lead to islands, both and end there",
        ),
    ],
)
def test_why_there_is_no_path(keys: str, why: str) -> None:
    ends = (
        "  islands:\n    unit: customer\n    foreign_keys: [{columns: i, references: both, "
        "key: i}]\n    columns: {i: {type: bigint}}\n"
        "  both:\n    unit: customer\n    foreign_keys: [{columns: i, references: islands, "
        "key: i}, {columns: i, references: public, key: i}]\n    columns: {i: {type: bigint}}\n"
        "  public: {public: true, columns: {i: {type: bigint}}}\n"
    )
    found = problems(("accounts:", ends + LINES.format(keys=keys)))
    assert any(why in line for line in found), found


def test_two_units_in_one_policy() -> None:
    policy = small(
        ("units: {", "units: {visit: {table: visits, key: row}, "),
        (
            "accounts:",
            (
                "  visits: {unit: visit, foreign_keys: [{columns: who, references: customers}], "
                "columns: {who: {type: bigint}}}\naccounts:"
            ),
        ),
    )
    assert policy.tables["visits"].unit_columns == ()
    assert policy.tables["orders"].unit_columns == ("customer_id",)


def test_the_fixture_text_is_the_one_of_the_bad_policies() -> None:
    assert SMALL in (FIXTURES / "bad" / "two_documents.yaml").read_text()
