"""Demo data of a small shop: customers, orders, visits and countries, the same in every run.

All values are computed by ``range()`` and ``hash()``. No person in it exists.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

CUSTOMERS, ORDERS, VISITS = 5_000, 60_000, 40_000

_MACROS = """
CREATE TEMP MACRO part(row, salt) AS (hash(row, salt) % 1000003) / 1000003.0;
CREATE TEMP MACRO skewed(row, salt) AS 1 + floor(5000 * power(part(row, salt), 1.3))::BIGINT;
CREATE TEMP MACRO bell(row, salt) AS
    part(row, salt) + part(row, salt || '2') + part(row, salt || '3') - 1.5;
CREATE TEMP MACRO day(row, salt) AS
    DATE '2024-01-01' + floor(731 * CASE
        WHEN part(row, salt) < 0.88 THEN part(row, salt || 'any')
        WHEN part(row, salt) < 0.94 THEN (305 + 60 * part(row, salt || 'winter')) / 731
        ELSE (671 + 60 * part(row, salt || 'winter')) / 731 END)::INTEGER;
"""
"""``part`` is a fraction of 0..1, ``skewed`` a customer (some occur often), ``day`` is seasonal."""

_COUNTRIES = """
CREATE TABLE countries (country VARCHAR PRIMARY KEY, region VARCHAR NOT NULL, currency VARCHAR);
INSERT INTO countries VALUES
    ('Austria', 'Alps', 'EUR'), ('Denmark', 'North', 'DKK'), ('France', 'West', 'EUR'),
    ('Germany', 'Centre', 'EUR'), ('Italy', 'South', 'EUR'), ('Poland', 'Centre', 'PLN'),
    ('Spain', 'South', 'EUR'), ('Switzerland', 'Alps', 'CHF');
"""

_CUSTOMERS = """
CREATE TABLE customers (
    customer_id BIGINT PRIMARY KEY, email VARCHAR NOT NULL, country VARCHAR NOT NULL,
    age INTEGER NOT NULL, city VARCHAR NOT NULL, joined DATE NOT NULL);
INSERT INTO customers
SELECT id, 'customer' || id || '@example.org', home.country,
    greatest(18, least(100, round(43 + 19 * bell(id, 'age') + 12 * power(part(id, 'old'), 3))))::INTEGER,
    home.cities[1 + floor(len(home.cities) * power(part(id, 'city'), 1.6))::INTEGER],
    DATE '2019-01-01' + floor(2190 * sqrt(part(id, 'joined')))::INTEGER
FROM range(1, {customers} + 1) AS numbers(id)
JOIN (VALUES
    (0.00, 0.34, 'Germany', ['Berlin', 'Hamburg', 'Munich', 'Cologne', 'Leipzig']),
    (0.34, 0.55, 'France', ['Paris', 'Lyon', 'Lille', 'Nantes']),
    (0.55, 0.68, 'Italy', ['Milan', 'Rome', 'Turin']),
    (0.68, 0.79, 'Spain', ['Madrid', 'Barcelona', 'Valencia']),
    (0.79, 0.88, 'Poland', ['Warsaw', 'Krakow', 'Gdansk']),
    (0.88, 0.94, 'Austria', ['Vienna', 'Graz', 'Linz']),
    (0.94, 0.98, 'Switzerland', ['Zurich', 'Basel']),
    (0.98, 1.01, 'Denmark', ['Copenhagen', 'Aarhus'])
) AS home(low, high, country, cities)
ON part(id, 'country') >= low AND part(id, 'country') < high
ORDER BY id;
"""

_ORDERS = """
CREATE TABLE orders (
    order_id BIGINT PRIMARY KEY, customer_id BIGINT NOT NULL REFERENCES customers,
    placed DATE NOT NULL, amount DOUBLE, channel VARCHAR);
INSERT INTO orders
SELECT id, skewed(id, 'buyer'), day(id, 'placed'),
    CASE WHEN part(id, 'unpaid') < 0.01 THEN NULL
         ELSE round(least(900, exp(3.4 + 1.9 * bell(id, 'amount'))), 2) END,
    CASE WHEN part(id, 'channel') < 0.58 THEN 'web' WHEN part(id, 'channel') < 0.85 THEN 'shop'
         WHEN part(id, 'channel') < 0.96 THEN 'phone' END
FROM range(1, {orders} + 1) AS numbers(id) ORDER BY id;
"""

_VISITS = """
CREATE TABLE visits (
    visit_id BIGINT PRIMARY KEY, customer_id BIGINT NOT NULL REFERENCES customers,
    started TIMESTAMP NOT NULL, seconds INTEGER NOT NULL, page VARCHAR NOT NULL);
INSERT INTO visits
SELECT id, skewed(id, 'visitor'),
    day(id, 'started') + INTERVAL 1 SECOND * floor(
        86399 * greatest(0, least(1, 0.62 + 0.28 * bell(id, 'hour'))))::BIGINT,
    least(3600, 5 + floor(exp(4.6 + 1.8 * bell(id, 'seconds'))))::INTEGER,
    CASE WHEN part(id, 'page') < 0.36 THEN 'home' WHEN part(id, 'page') < 0.58 THEN 'search'
         WHEN part(id, 'page') < 0.84 THEN 'product' WHEN part(id, 'page') < 0.94 THEN 'basket'
         ELSE 'checkout' END
FROM range(1, {visits} + 1) AS numbers(id) ORDER BY id;
"""


def write_demo_data(path: Path) -> None:
    """Write the database file. There must be no file at this path."""
    sizes = {"customers": CUSTOMERS, "orders": ORDERS, "visits": VISITS}
    with duckdb.connect(str(path)) as connection:
        connection.execute(_MACROS)
        for statements in (_COUNTRIES, _CUSTOMERS, _ORDERS, _VISITS):
            connection.execute(statements.format(**sizes))
