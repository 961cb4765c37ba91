"""Units without a table: the key stands on the tables that name the unit."""

from dataclasses import replace

from policy_text import FIXTURES

from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.policy.against_source import compare
from dpsql.policy.load import load
from dpsql.policy.model import ForeignKey, Policy, Unit
from dpsql.policy.source import SourceDescription, TableDescription
from dpsql.policy.types import Kind

RATINGS = load(FIXTURES / "ratings.yaml")
TYPES = {"bigint": "BIGINT", "integer": "INTEGER", "smallint": "SMALLINT", "text": "VARCHAR"}


def described(**changes: str) -> SourceDescription:
    """The source of the fixture; ``table__column`` has another type."""
    tables = {
        table.name: TableDescription(
            {
                c.name: changes.get(
                    f"{table.name}__{c.name}", TYPES.get(c.declared, c.declared.upper())
                )
                for c in table.columns.values()
            }
        )
        for table in RATINGS.tables.values()
    }
    return SourceDescription(tables)


def mismatches(source: SourceDescription, policy: Policy = RATINGS) -> list[str]:
    try:
        compare(policy, source)
    except SourceMismatch as error:
        return [line.split(": ", 1)[1] for line in error.problems]
    return []


def test_a_unit_without_a_table_says_so() -> None:
    assert RATINGS.units == {
        "student": Unit("student", None, ("s",)),
        "pupil": Unit("pupil", None, ("school", "number")),
    }
    assert not any(unit.is_row for unit in RATINGS.units.values())


def test_tables_hold_the_key_or_lead_to_one_that_does() -> None:
    tables = RATINGS.tables
    held = {name: t.unit_columns for name, t in tables.items() if t.unit and not t.path}
    assert held == {
        "ratings": ("s",),
        "logins": ("who",),
        "profiles": ("s",),
        "marks": ("school", "number"),
        "absences": ("place", "pupil"),
    }
    assert tables["replies"].path == (ForeignKey(("rating",), "ratings", ("rating",)),)
    assert tables["replies"].unit_columns == ("s",)
    rows = {name: t.max_rows_per_unit for name, t in tables.items() if t.unit}
    assert rows == {
        "ratings": 40, "logins": 12, "profiles": 1, "replies": 80, "marks": 10, "absences": 8,
    }  # fmt: skip


def test_rows_may_lack_the_key() -> None:
    assert RATINGS.tables["ratings"].columns["s"].nullable


def test_the_source_may_store_keys_in_several_widths() -> None:
    assert mismatches(described(ratings__s="DECIMAL(18,0)", logins__who="UTINYINT")) == []
    assert mismatches(described(absences__place="ENUM('east', 'north')")) == []


def test_the_source_stores_keys_in_one_form() -> None:
    assert mismatches(described(absences__place="UUID")) == [
        (
            "marks.school is VARCHAR and absences.place is UUID in the source, and both are the key "
            "of unit pupil; give both one type there"
        )
    ]
    assert mismatches(described(marks__school="UUID", absences__place="UUID")) == []


def test_the_source_stores_no_keys_finer_than_they_are_compared() -> None:
    table = RATINGS.tables["profiles"]
    column = replace(table.columns["year"], name="s", declared="timestamp", kind=Kind.TIMESTAMP)
    policy = replace(
        RATINGS,
        tables={"profiles": replace(table, columns={**table.columns, "s": column})},
    )
    (line,) = mismatches(described(profiles__s="TIMESTAMP_NS"), policy)
    assert line == (
        "profiles.s is the key of unit student and TIMESTAMP_NS in the source, which dpsql reads "
        "with less range or precision; make it BIGINT, VARCHAR or TIMESTAMP there"
    )


def test_the_source_stores_no_keys_that_are_read_as_null() -> None:
    for held in ("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(19,0)"):
        (line,) = mismatches(described(ratings__s=held))
        assert line.startswith(f"ratings.s is the key of unit student and {held} in the source")


def test_a_key_that_the_source_lacks_is_told_once() -> None:
    there = described()
    columns = {n: c for n, c in there.tables["logins"].columns.items() if n != "who"}
    lines = mismatches(SourceDescription({**there.tables, "logins": TableDescription(columns)}))
    assert len(lines) == 1
    rest = {name: table for name, table in there.tables.items() if name != "logins"}
    assert len(mismatches(SourceDescription(rest))) == 1
