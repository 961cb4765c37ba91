"""The list of keys as documentation."""

import json
import runpy

import pytest

from dpsql.policy import key_shapes, keys, schema
from dpsql.policy.schema import main
from dpsql.policy.types import Kind


def count(record: key_shapes.Record) -> int:
    inner = 0
    for key in record.keys:
        match key.shape:
            case key_shapes.Record() as shape:
                inner += count(shape)
            case key_shapes.Named(item=key_shapes.Record()) | key_shapes.Listed() as shape:
                inner += count(shape.item)
            case _:
                pass
    return len(record.keys) + inner


def test_the_table_has_a_row_per_key() -> None:
    head, rule, *rows = main(["--markdown"]).splitlines()
    assert set(rule) == {"|", "-"}
    assert len(rows) == count(keys.POLICY)
    assert all(row.count("|") == head.count("|") for row in rows)
    assert (
        "| `tables.<table>.columns.<column>.type` | type | required | the type of its values |"
        in rows
    )
    assert any("`roles.<role>.epsilon` | number above 0 to 1000000000 |" in row for row in rows)


def test_every_key_says_what_it_is_for() -> None:
    for record in (keys.POLICY, keys.TABLE, keys.COLUMN, keys.ROLE, keys.UNIT, keys.LIMITS):
        assert all(key.about for key in record.keys)


def test_the_module_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert schema.__file__ is not None
    monkeypatch.setattr("sys.argv", ["schema"])
    runpy.run_path(schema.__file__, run_name="__main__")
    assert json.loads(capsys.readouterr().out) == schema.schema()


def test_kinds() -> None:
    assert {kind for kind in Kind if kind.numeric} == {Kind.INTEGER, Kind.DOUBLE}
    assert {kind for kind in Kind if kind.temporal} == {Kind.DATE, Kind.TIMESTAMP}
