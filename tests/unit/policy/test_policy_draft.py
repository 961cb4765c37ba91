"""Drafts: refused until the owner has decided, and then a policy."""

from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.against_source import compare
from dpsql.policy.draft import Suggestions, draft
from dpsql.policy.guess import GuessedUnit, guess_holders, guess_unit
from dpsql.policy.load import parse
from dpsql.policy.model import DataSource, ForeignKey, Policy
from dpsql.policy.source import SourceDescription, TableDescription

PATH = Path("/data/policy.yaml")
SOURCE = DataSource("duckdb", Path("shop.duckdb"))
SHOP = SourceDescription(
    {
        "customers": TableDescription(
            {"customer_id": "BIGINT", "email": "VARCHAR", "age": "INTEGER", "photo": "BLOB"},
            frozenset({"email"}),
            (frozenset({"customer_id"}),),
        ),
        "orders": TableDescription(
            {
                "order_id": "BIGINT",
                "customer_id": "BIGINT",
                "amount": "DECIMAL(12,2)",
                "placed": "TIMESTAMP",
                "day": "DATE",
            },
            unique=(frozenset({"order_id"}),),
        ),
        "Order Lines": TableDescription(
            {"order_id": "BIGINT", "no": "INTEGER", "größe\n": "INTEGER"},
            unique=(frozenset({"order_id", "no"}),),
        ),
        "returns": TableDescription(
            {"order_id": "BIGINT", "no": "INTEGER", "reason": "VARCHAR"},
            unique=(frozenset({"order_id", "no"}),),
            foreign_keys=(ForeignKey(("order_id", "no"), "Order Lines", ("order_id", "no")),),
        ),
        "countries": TableDescription({"name": "VARCHAR"}),
    }
)


def read(text: str) -> Policy:
    return parse(text, PATH, "policy.yaml")


def filled(text: str) -> str:
    return text.replace("max_rows_per_unit:  #", "max_rows_per_unit: 7  #").replace(
        "    # public: true ", "    public: true  #"
    )


def without_odd_name(source: SourceDescription) -> SourceDescription:
    tables = dict(source.tables)
    tables["Order Lines"] = TableDescription(
        {"order_id": "BIGINT", "no": "INTEGER", "größe": "INTEGER"},
        unique=(frozenset({"order_id", "no"}),),
    )
    return SourceDescription(tables)


def test_a_draft_asks_and_then_loads() -> None:
    shop = without_odd_name(SHOP)
    text = draft(shop, SOURCE)
    with pytest.raises(PolicyError) as caught:
        read(text)
    said = "\n".join(caught.value.problems)
    assert said.count('"max_rows_per_unit" in table') == 3
    assert "table countries is neither public nor has a unit" in said
    policy = compare(read(filled(text)), shop)
    assert policy.units["customer"].key == ("customer_id",)
    assert policy.tables["orders"].unit_columns == ("customer_id",)
    assert [key.references for key in policy.tables["Order Lines"].path] == ["orders"]
    assert policy.tables["customers"].columns["email"].identifier
    assert not policy.tables["customers"].columns["email"].nullable
    assert "photo" not in policy.tables["customers"].columns
    assert "read from the data" not in text
    assert '# photo is left out: it is "BLOB", which dpsql does not read:' in text
    assert "#   no policy type is like it; let a view of the source cast it" in text


def test_a_name_that_cannot_be_one_is_quoted_and_then_refused() -> None:
    with pytest.raises(PolicyError) as caught:
        read(filled(draft(SHOP, SOURCE)))
    (line,) = caught.value.problems
    assert "is not text" in line


def test_suggested_bounds_are_marked() -> None:
    bounds = {
        ("customers", "age"): (18, 99),
        ("customers", "email"): ("a", "z"),
        ("orders", "amount"): (Fraction(1, 2), Fraction(10**20)),
        ("orders", "placed"): (
            datetime.fromisoformat("2024-01-01"),
            datetime.fromisoformat("2024-01-02 03:04:05.000006"),
        ),
        ("orders", "day"): (date(2024, 1, 1), date(2024, 1, 2)),
    }
    text = draft(without_odd_name(SHOP), SOURCE, Suggestions(bounds))
    assert text.count("# read from the data") == 4
    assert "What is marked `read from the data` is private." in text
    policy = read(filled(text))
    for (table, column), bound in bounds.items():
        if column != "email":
            assert policy.tables[table].columns[column].range == bound


def test_several_ways_are_shown() -> None:
    deals = TableDescription(
        {"buyer": "BIGINT", "seller": "BIGINT"},
        foreign_keys=(
            ForeignKey(("buyer",), "customers", ("customer_id",)),
            ForeignKey(("seller",), "customers", ("customer_id",)),
        ),
    )
    text = draft(SourceDescription({**without_odd_name(SHOP).tables, "deals": deals}), SOURCE)
    assert "# or, if this says whose row it is: {columns: [seller]" in text
    assert read(filled(text)).tables["deals"].unit_columns == ("buyer",)


def test_one_row_per_unit_needs_no_bound() -> None:
    cards = TableDescription({"customer_id": "BIGINT"}, unique=(frozenset({"customer_id"}),))
    tables = {"customers": SHOP.tables["customers"], "cards": cards}
    policy = read(draft(SourceDescription(tables), SOURCE))
    assert policy.tables["cards"].max_rows_per_unit == 1


def test_guessed_units() -> None:
    def guess(**tables: TableDescription) -> GuessedUnit | None:
        return guess_unit(SourceDescription(tables))

    users = TableDescription({"id": "BIGINT"})
    events = TableDescription({"user_id": "BIGINT"})
    boxes = TableDescription({"id": "BIGINT"}, unique=(frozenset({"id"}),))
    pair = TableDescription({"a": "BIGINT", "b": "BIGINT"}, unique=(frozenset({"a", "b"}),))
    assert guess(events=events, users=users) == GuessedUnit("user", "users", ("id",))
    assert guess(boxes=boxes, users=users, events=events) == GuessedUnit("user", "users", ("id",))
    assert guess(boxes=boxes) == GuessedUnit("boxe", "boxes", ("id",))
    assert guess(pair=pair, events=events) == GuessedUnit("user", None, ("user_id",))
    assert guess(pair=pair) is None


def flat(**tables: dict[str, str]) -> SourceDescription:
    """Tables as files have them: without constraints."""
    return SourceDescription({name: TableDescription(columns) for name, columns in tables.items()})


RATINGS = flat(
    ratings={"id": "BIGINT", "student_id": "INTEGER", "stars": "INTEGER"},
    logins={"student": "BIGINT", "device": "VARCHAR"},
    badges={"student": "VARCHAR", "name": "VARCHAR"},
    rooms={"id": "BIGINT"},
)


def test_people_who_are_told_by_a_column_need_no_table() -> None:
    text = draft(RATINGS, SOURCE)
    assert "  student: {key: [student]}" in text, "the name that most tables use"
    assert "    unit_key: [student_id]  # a guess from the name" in text
    assert text.count("FILL IN: most rows of one student") == 2
    rows = text.replace("max_rows_per_unit:  #", "max_rows_per_unit: 7  #")
    policy = compare(read(rows.replace("    # public: true ", "    public: true  #")), RATINGS)
    assert policy.units["student"].table is None
    held = {t.name: t.unit_columns for t in policy.tables.values() if not t.public}
    assert held == {"ratings": ("student_id",), "logins": ("student",)}
    assert policy.tables["ratings"].key == (), "no constraint says that it is one"


@pytest.mark.parametrize(
    ("tables", "unit"),
    [
        ({"ratings": {"userId": "VARCHAR"}}, GuessedUnit("user", None, ("userId",))),
        ({"ratings": {"user_agent": "VARCHAR", "stars": "INTEGER"}}, None),
        ({"ratings": {"student": "DOUBLE"}}, None),
        ({"ratings": {"student": "UBIGINT"}}, None),
        ({"students": {"id": "BIGINT"}}, GuessedUnit("student", None, ("id",))),
        ({"boxes": {"id": "BIGINT", "owner": "UUID"}}, GuessedUnit("owner", None, ("owner",))),
        (
            {"a": {"buyer_no": "BIGINT", "user_id": "BIGINT"}, "b": {"user": "BIGINT"}},
            GuessedUnit("user", None, ("user_id",)),
        ),
        (
            {"users": {"id": "BIGINT"}, "events": {"user_id": "BIGINT"}},
            GuessedUnit("user", "users", ("id",)),
        ),
    ],
)
def test_who_is_guessed_from_names(
    tables: dict[str, dict[str, str]], unit: GuessedUnit | None
) -> None:
    assert guess_unit(flat(**tables)) == unit


def test_a_key_of_another_sort_of_thing_is_not_the_unit_s() -> None:
    source = flat(students={"id": "BIGINT"}, rooms={"id": "BIGINT"})
    unit = guess_unit(source)
    assert unit == GuessedUnit("student", None, ("id",))
    assert guess_holders(source, unit) == {"students": ("id",)}


def test_keys_that_were_seen_to_repeat_are_units_without_a_table() -> None:
    source = flat(customers={"customer_id": "BIGINT"}, orders={"customer_id": "BIGINT"})
    assert guess_unit(source) == GuessedUnit("customer", "customers", ("customer_id",))
    seen = Suggestions(
        repeated=frozenset({("customers", "customer_id")}), rows={"customers": 3, "orders": 9}
    )
    text = draft(source, SOURCE, seen)
    policy = read(text)
    assert policy.units["customer"].table is None
    assert [t.max_rows_per_unit for t in policy.tables.values()] == [3, 9]
    assert text.count("# read from the data") == 2


def test_a_table_that_leads_to_one_with_the_key() -> None:
    ratings = TableDescription(
        {"rating_id": "BIGINT", "user_id": "BIGINT"}, unique=(frozenset({"rating_id"}),)
    )
    source = SourceDescription(
        {"ratings": ratings, "replies": TableDescription({"rating_id": "BIGINT"})}
    )
    rows = draft(source, SOURCE).replace("max_rows_per_unit:  #", "max_rows_per_unit: 7  #")
    policy = read(rows)
    assert policy.tables["ratings"].key == ("rating_id",)
    assert [step.references for step in policy.tables["replies"].path] == ["ratings"]
    assert policy.tables["replies"].unit_columns == ("user_id",)


def test_a_source_without_keys_is_left_to_its_owner() -> None:
    visits = SourceDescription({"visits": TableDescription({"page": "VARCHAR"})})
    text = draft(visits, SOURCE)
    with pytest.raises(PolicyError):
        read(text)
    text = text.replace("  # visit: {", "  visit: {").replace(
        "    # unit: ..        ", "    unit: visit  # "
    )
    text = text.replace("key: row}    (", "key: row}  # (")
    assert read(text).units["visit"].is_row
