"""The list of declarations that claims assume is closed, and each is verified, enforced or named."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.declared import written

import dpsql
from dpsql.declarations.requirements import DECLARATIONS, requirements
from dpsql.engines.duckdb.engine import DuckDB
from dpsql.engines.duckdb.write import write
from dpsql.policy import model
from dpsql.policy.load import load

PACKAGE = Path(dpsql.__file__).parent
FOLDERS = (
    "plan", "bound", "price", "rewrite", "declarations", "policy", "sql", "checks", "engines", "reuse",
)  # fmt: skip
OTHERS = {
    "dpsql.plan.cells": "columns of public tables are read as the policy declares them",
    "dpsql.plan.clamped": "notes say what is declared, and no noise depends on them",
    "dpsql.plan.declared": "ends that the owner lets stand for extremes are public",
    "dpsql.price.notes": "the factor in a note, which no noise depends on",
}
"""What else is said of declarations, and why nothing need be verified for it."""
_ASSUMPTION = re.compile(r"Assumes:(?! nothing)(.*?)(?=\n *Argument:|\Z)", re.DOTALL)
_DECLARED = re.compile(r"declare|unique|not NULL|max_rows|fan-out")


def assuming(about: re.Pattern[str]) -> Iterator[str]:
    """The modules with a claim that assumes something of which a word is found."""
    for folder in FOLDERS:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            nodes = ast.walk(ast.parse(file.read_text()))
            kinds = (ast.Module, ast.FunctionDef, ast.ClassDef)
            texts = [ast.get_docstring(n) or "" for n in nodes if isinstance(n, kinds)]
            if any(about.search(said) for text in texts for said in _ASSUMPTION.findall(text)):
                yield ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")  # fmt: skip


def test_every_assumption_about_the_data_is_of_a_listed_declaration() -> None:
    listed = {module for d in DECLARATIONS for module in d.assumed_by}
    found = set(assuming(_DECLARED))
    assert len(found) > 8
    assert found <= listed | OTHERS.keys()
    assert OTHERS.keys() <= found


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=lambda d: d.name)
def test_each_says_what_makes_it_true(declaration: object) -> None:
    (one,) = [d for d in DECLARATIONS if d is declaration]
    for module in one.assumed_by:
        importlib.import_module(module)
    if one.how == "trusted":
        assert not one.assumed_by, "no claim rests on what only the owner can know"
        assert one.requirements is None
        return
    module, _, name = one.by.rpartition(".")
    assert hasattr(importlib.import_module(module), name) or importlib.import_module(one.by)
    assert one.assumed_by
    verified_in_data = one.by == "dpsql.engines.verify.verify"
    assert (one.requirements is not None) == verified_in_data


def test_names_are_told_apart() -> None:
    names = [d.name for d in DECLARATIONS]
    assert len(set(names)) == len(names)


SAID_OF_DATA = {
    (model.Column, "declared"): "column type",
    (model.Column, "kind"): "column type",
    (model.Column, "nullable"): "not nullable",
    (model.Column, "identifier"): "identifier",
    (model.Column, "range"): "range",
    (model.Column, "values"): "values",
    (model.Column, "values_from"): "values",
    (model.Column, "extremes"): None,
    (model.Column, "max_length"): "range",
    (model.ForeignKey, "columns"): "path to a unit",
    (model.ForeignKey, "references"): "referenced key",
    (model.ForeignKey, "key"): "referenced key",
    (model.ForeignKey, "same_unit"): "same unit",
    (model.Table, "unit"): "public table",
    (model.Table, "key"): "table key",
    (model.Table, "foreign_keys"): "referenced key",
    (model.Table, "max_rows_per_unit"): "one row per unit",
    (model.Table, "max_rows_per_group"): "rows per group",
    (model.Table, "path"): "path to a unit",
    (model.Table, "unit_columns"): "unit key",
    (model.Unit, "table"): "unit key",
    (model.Unit, "key"): "unit key",
    (model.Unit, "group_size"): "group size",
}
"""What each part of a policy says of the data; ``extremes`` says what to answer, not what is there."""
NAMES = {
    "name", "columns", "description", "account", "fan_outs", "content", "held_as_read", "computed",
}  # fmt: skip
"""``fan_outs`` and ``content`` are looked up of public tables, ``held_as_read`` and ``computed`` are read from
the catalog of the source: nobody declares them."""


def test_every_part_of_a_policy_that_speaks_of_data_is_listed() -> None:
    """A new key of tables, columns or units needs a declaration, or a reason here."""
    parts = {
        (of, name)
        for of in (model.Column, model.ForeignKey, model.Table, model.Unit)
        for name in of.__dataclass_fields__
        if name not in NAMES or of is model.ForeignKey
    }
    assert parts == SAID_OF_DATA.keys()
    names = {d.name for d in DECLARATIONS}
    assert {n for n in SAID_OF_DATA.values() if n is not None} <= names


def test_each_is_required_once_and_a_constraint_spares_the_look(tmp_path: Path) -> None:
    path = written(tmp_path)
    engine = DuckDB(tmp_path / "small.duckdb", model.Limits())
    policy, source = load(path), engine.describe()
    engine.close()
    needed = requirements(policy, source)
    assert len({write(n.broken) for n in needed}) == len(needed)
    assert [(n.declaration, n.table) for n in needed] == [
        ("unit key", "people"), ("table key", "orders"), ("table key", "countries"),
        ("referenced key", "orders"), ("one row per unit", "profiles"),
        ("one row per unit", "notes"), ("same unit", "refunds"),
    ]  # fmt: skip
    (tmp_path / "constrained").mkdir()
    changes = ("CREATE TABLE p (person_id BIGINT PRIMARY KEY)", "INSERT INTO p SELECT person_id FROM people", "DROP TABLE people", "ALTER TABLE p RENAME TO people", "ALTER TABLE people ADD COLUMN country VARCHAR")  # fmt: skip
    path = written(tmp_path / "constrained", *changes)
    engine = DuckDB(tmp_path / "constrained" / "small.duckdb", model.Limits())
    spared = requirements(load(path), engine.describe())
    engine.close()
    assert {n.question for n in needed} - {n.question for n in spared} == {needed[0].question}
