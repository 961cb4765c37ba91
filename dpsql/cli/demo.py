"""``dpsql demo``: writes a small shop with a policy, and says what to type next."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dpsql.cli import answer, terminal
from dpsql.cli.exits import ANSWERED
from dpsql.diagnostics.refusal import PolicyError
from dpsql.engines.duckdb import demo_data
from dpsql.service import Service

POLICY = """\
# What may be learnt about this shop, and by whom. Every number here is the owner's choice.
source: {engine: duckdb, path: shop.duckdb}
data_version: "2026-11-01"  # change it whenever the data changes: stored answers then no longer serve

units:
  customer: {table: customers, key: customer_id}  # who is protected: with all their rows, in all tables

tables:
  customers:
    unit: customer
    columns:
      customer_id: {type: bigint, identifier: true}
      email: {type: text, identifier: true}  # never a group key, never shown
      country: {type: text, values_from: countries.country}
      age: {type: integer, range: [18, 100]}
      city: {type: text}  # no public values: small cities do not appear
      joined: {type: date, range: [2019-01-01, 2024-12-31]}

  orders:
    unit: customer  # reached through the foreign key
    key: order_id
    foreign_keys: [{columns: [customer_id], references: customers}]
    max_rows_per_unit: 30
    columns:
      order_id: {type: bigint, identifier: true}
      customer_id: {type: bigint, identifier: true}
      placed: {type: date, range: [2024-01-01, 2025-12-31]}
      amount: {type: double, range: [0, 250], nullable: true}
      channel: {type: text, values: [web, shop, phone], nullable: true}

  visits:
    unit: customer
    key: visit_id
    foreign_keys: [{columns: [customer_id], references: customers}]
    max_rows_per_unit: 20
    columns:
      visit_id: {type: bigint, identifier: true}
      customer_id: {type: bigint, identifier: true}
      started: {type: timestamp, range: ["2024-01-01 00:00:00", "2025-12-31 23:59:59"]}
      seconds: {type: integer, range: [0, 900]}
      page: {type: text, values: [home, search, product, basket, checkout]}

  countries: {public: true}  # answered exactly and for free

accounts:
  dataset: {epsilon: 50, delta: 1e-5}

roles:
  analyst:
    epsilon: 20
    delta: 1e-6
    per: month
    session: {epsilon: 10}
    query: {share: 5%}  # of what a session may spend: it has 20 questions
    max_groups_per_unit: 8
"""

EXAMPLES = (
    """\
SELECT country, COUNT(*) AS customers, AVG(age) AS age
FROM customers GROUP BY country ORDER BY customers DESC""",
    """\
SELECT channel, SUM(amount) AS revenue
FROM orders GROUP BY channel""",
    """\
SELECT date_trunc('quarter', placed) AS quarter, COUNT(DISTINCT customer_id) AS buyers
FROM orders GROUP BY quarter ORDER BY quarter""",
    """\
SELECT city, COUNT(*) AS customers
FROM customers GROUP BY city ORDER BY customers DESC LIMIT 8""",
    """\
SELECT page, COUNT(*) AS visits, AVG(seconds) AS seconds
FROM visits WHERE started >= '2025-01-01' GROUP BY page""",
)
"""First queries about the data; the README shows them."""


def run(chosen: argparse.Namespace) -> int:
    """Write the files, unless they exist: a ledger beside them must keep its data."""
    folder: Path = chosen.folder
    data, policy = folder / "shop.duckdb", folder / "policy.yaml"
    if data.exists() and policy.exists():
        sys.stdout.write(f"{folder} already holds the demo; nothing was changed.\n")
    elif data.exists() or policy.exists():
        there = data if data.exists() else policy
        raise PolicyError(f"{there} is in the way; name another folder: dpsql demo DIR")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        demo_data.write_demo_data(data)
        policy.write_text(POLICY, encoding="utf-8")
        sys.stdout.write(
            f"Wrote {data}: {demo_data.CUSTOMERS:,} customers, {demo_data.ORDERS:,} orders, "
            f"{demo_data.VISITS:,} visits.\n"
            f"Wrote {policy}: what may be learnt about them.\n"
        )
    if chosen.ask:
        _ask(policy)
    sys.stdout.write(_next(policy))
    return ANSWERED


def _ask(policy: Path) -> None:
    with Service.open(policy) as service:
        session = service.session()
        for sql in EXAMPLES:
            sys.stdout.write(f"\n{sql}\n\n")
            reply = session.execute(sql, intervals=True)
            terminal.show(answer.answer_table(reply))
            terminal.say(answer.footer(reply), sys.stdout)


def _next(policy: Path) -> str:
    return f"""
Ask something:
  dpsql query --policy {policy} \\
    "{" ".join(EXAMPLES[0].split())}"

See what it costs and how it is protected, before asking:
  dpsql explain --policy {policy} \\
    "{" ".join(EXAMPLES[1].split())}"

See what is left:
  dpsql budget --policy {policy}
"""
