"""A small policy with every declaration that is verified, and data that keeps or breaks each."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

POLICY = """
source: {engine: duckdb, path: small.duckdb}
data_version: 1
units:
  person: {table: people, key: person_id}
tables:
  people:
    unit: person
    columns:
      person_id: {type: bigint}
      country: {type: text, values_from: countries.country}
  orders:
    unit: person
    key: order_id
    foreign_keys: [{columns: person_id, references: people}]
    max_rows_per_unit: 5
    columns:
      order_id: {type: bigint}
      person_id: {type: bigint}
      code: {type: text}
      amount: {type: double, range: [0, 100], nullable: true}
  items:
    unit: person
    foreign_keys:
      - {columns: code, references: orders, key: code}
      - {columns: country, references: countries}
    max_rows_per_unit: 10
    columns:
      code: {type: text}
      country: {type: text}
      price: {type: integer, range: [0, 10]}
  profiles:
    unit: person
    foreign_keys: [{columns: person_id, references: people}]
    max_rows_per_unit: 1
    columns:
      person_id: {type: bigint}
      age: {type: integer, range: [0, 100]}
  notes:
    unit: person
    foreign_keys: [{columns: code, references: orders, key: code}]
    max_rows_per_unit: 1
    columns:
      code: {type: text}
  refunds:
    unit: person
    foreign_keys:
      - {columns: person_id, references: people}
      - {columns: order_id, references: orders, key: order_id, same_unit: true}
    max_rows_per_unit: 5
    columns:
      person_id: {type: bigint}
      order_id: {type: bigint}
      paid: {type: integer, range: [0, 100]}
  countries:
    public: true
    key: country
accounts:
  dataset: {epsilon: 1e9, delta: 1e-5, composition: basic}
roles:
  analyst:
    password: analyst
    epsilon: 1e9
    session: {epsilon: 1e9}
    query: {epsilon: 1e8}
"""
DATA = """
CREATE TABLE countries (country VARCHAR, size BIGINT);
INSERT INTO countries VALUES ('at', 9), ('de', 84);
CREATE TABLE people (person_id BIGINT, country VARCHAR);
INSERT INTO people SELECT i, ['at', 'de'][1 + i % 2] FROM range(1, 41) AS r(i);
CREATE TABLE orders (order_id BIGINT, person_id BIGINT, code VARCHAR, amount DOUBLE);
INSERT INTO orders SELECT i * 10 + j, i, 'o' || (i * 10 + j), i + j FROM range(1, 41) AS r(i), range(3) AS s(j);
CREATE TABLE items (code VARCHAR, country VARCHAR, price INTEGER);
INSERT INTO items SELECT code, 'de', 1 + hash(code, j) % 10 FROM orders, range(2) AS s(j);
CREATE TABLE profiles (person_id BIGINT, age INTEGER);
INSERT INTO profiles SELECT i, 20 + i FROM range(1, 31) AS r(i);
CREATE TABLE notes (code VARCHAR);
INSERT INTO notes SELECT code FROM orders WHERE order_id % 10 = 1;
CREATE TABLE refunds (person_id BIGINT, order_id BIGINT, paid INTEGER);
INSERT INTO refunds SELECT person_id, order_id, 1 + order_id % 50 FROM orders WHERE order_id % 3 = 0;
"""
BROKEN = {
    "unit key": "INSERT INTO people SELECT person_id, 'de' FROM people WHERE person_id <= 7",
    "table key": "INSERT INTO orders SELECT order_id, 3, code || 'x', 1 FROM orders WHERE person_id = 3",
    "referenced key": "UPDATE orders SET code = 'o11' WHERE person_id = 2",
    "referenced key of others": "UPDATE orders SET code = 'o11' WHERE order_id = 20",
    "one row per unit": "INSERT INTO profiles VALUES (5, 30), (5, 31)",
    "one row per unit by a path": "INSERT INTO notes VALUES ('o10'), ('o12')",
    "same unit": "UPDATE refunds SET person_id = 39 WHERE person_id = 2",
    "public key": "INSERT INTO countries VALUES ('de', 85)",
}
"""By what it breaks."""
NOBODYS = """
INSERT INTO people VALUES (NULL, 'at'), (NULL, 'at');
INSERT INTO orders VALUES (NULL, 1, NULL, 7), (NULL, 2, NULL, 8), (9001, NULL, 'p', 9), (9002, 777, 'q', 10);
INSERT INTO items VALUES (NULL, 'de', 1), ('nowhere', 'de', 2), ('p', 'de', 3);
INSERT INTO profiles VALUES (NULL, 1), (NULL, 2);
INSERT INTO refunds VALUES (NULL, 20, 3), (777, 9002, 4), (5, NULL, 5), (5, 9001, 6), (5, 123456, 7);
INSERT INTO notes VALUES (NULL), (NULL), ('nowhere'), ('nowhere');
"""
"""Rows of no unit and keys that are NULL: they break nothing."""


def alone(*tables: str) -> str:
    """The policy of these tables and the countries, which have a key but nothing leads there."""
    head, rest = POLICY.split("tables:\n")
    listed, tail = rest.split("accounts:\n")
    parts = {part.split(":")[0].strip(): part for part in re.split(r"(?m)^(?=  \w)", listed)}
    kept = "".join(parts[name] for name in (*tables, "countries"))
    kept = kept.replace("      - {columns: country, references: countries}\n", "")
    return f"{head}tables:\n{kept}accounts:\n{tail}"


def written(folder: Path, *changes: str, policy: str = POLICY) -> Path:
    """The policy beside its data, changed so."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(folder / "small.duckdb")) as connection:
        for sql in (DATA, *changes):
            connection.execute(sql)
    path = folder / "policy.yaml"
    path.write_text(policy)
    return path
