"""Policies as text for tests, and what is wrong with them."""

from pathlib import Path

from dpsql.diagnostics.refusal import PolicyError
from dpsql.policy.load import parse
from dpsql.policy.model import Policy

FIXTURES = Path(__file__).parents[3] / "fixtures" / "policies"

SMALL = """\
source: {path: shop.duckdb}
data_version: 1
units: {customer: {table: customers, key: customer_id}}
tables:
  customers:
    unit: customer
    columns:
      customer_id: {type: bigint}
      age: {type: integer, range: [18, 100]}
  orders:
    unit: customer
    foreign_keys: [{columns: customer_id, references: customers}]
    max_rows_per_unit: 50
    columns:
      customer_id: {type: bigint}
      amount: {type: double}
  countries: {public: true, columns: {country: {type: text}}}
accounts: {dataset: {epsilon: 4, delta: 1e-6}}
roles: {analyst: {}}
"""
AGE = "age: {type: integer, range: [18, 100]}"


def small(*changes: tuple[str, str]) -> Policy:
    """The small policy with some of its text replaced."""
    return parse(text(*changes), Path("/data/policy.yaml"), "policy.yaml")


def text(*changes: tuple[str, str]) -> str:
    body = SMALL
    for old, new in changes:
        assert body.count(old) == 1, old
        body = body.replace(old, new)
    return body


def problems(*changes: tuple[str, str]) -> list[str]:
    """What is wrong with the small policy after the changes, without places."""
    try:
        small(*changes)
    except PolicyError as error:
        return [line.split(": ", 1)[1] for line in error.problems]
    return []
