-- name: metabase01 count
SELECT COUNT(*) AS "count" FROM "public"."orders"

-- name: metabase02 count by month
-- ordered
SELECT DATE_TRUNC('month', "public"."orders"."placed") AS "placed", COUNT(*) AS "count"
FROM "public"."orders"
GROUP BY DATE_TRUNC('month', "public"."orders"."placed")
ORDER BY DATE_TRUNC('month', "public"."orders"."placed") ASC

-- name: metabase03 cast to date
-- ordered
SELECT CAST("public"."visits"."started" AS DATE) AS "started", COUNT(*) AS "count"
FROM "public"."visits"
WHERE "public"."visits"."started" >= TIMESTAMP '2025-04-01 00:00:00' AND "public"."visits"."started" < TIMESTAMP '2025-05-01 00:00:00'
GROUP BY CAST("public"."visits"."started" AS DATE)
ORDER BY CAST("public"."visits"."started" AS DATE) ASC

-- name: metabase04 joined table with its alias
SELECT "Customers"."country" AS "Customers__country", SUM("public"."orders"."amount") AS "sum"
FROM "public"."orders"
LEFT JOIN "public"."customers" AS "Customers" ON "public"."orders"."customer_id" = "Customers"."customer_id"
GROUP BY "Customers"."country"
ORDER BY "Customers"."country" ASC

-- name: metabase05 nested question
SELECT AVG("source"."count") AS "avg"
FROM (
  SELECT DATE_TRUNC('month', "public"."orders"."placed") AS "placed", COUNT(*) AS "count"
  FROM "public"."orders"
  GROUP BY DATE_TRUNC('month', "public"."orders"."placed")
) AS "source"

-- name: metabase06 filter after summarize
-- ordered
SELECT "source"."country" AS "country", "source"."count" AS "count"
FROM (
  SELECT "public"."customers"."country" AS "country", COUNT(*) AS "count"
  FROM "public"."customers" GROUP BY "public"."customers"."country"
) AS "source"
WHERE "source"."count" > 180
ORDER BY "source"."count" DESC, "source"."country" ASC
LIMIT 1048575

-- name: metabase07 distinct values
SELECT "public"."orders"."channel" AS "channel" FROM "public"."orders" GROUP BY "public"."orders"."channel" ORDER BY "public"."orders"."channel" ASC LIMIT 5000

-- name: metabase08 distinct count
SELECT COUNT(DISTINCT "public"."orders"."customer_id") AS "count" FROM "public"."orders" WHERE "public"."orders"."channel" = 'web'

-- name: metabase09 bins
-- ordered
SELECT FLOOR(("public"."customers"."age" / 12.5)) * 12.5 AS "age", COUNT(*) AS "count"
FROM "public"."customers"
GROUP BY FLOOR(("public"."customers"."age" / 12.5)) * 12.5
ORDER BY FLOOR(("public"."customers"."age" / 12.5)) * 12.5 ASC
-- plain:
SELECT FLOOR(age / 12.5::DOUBLE) * 12.5::DOUBLE AS a, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1

-- name: metabase10 bins from a start
SELECT FLOOR(((amount - 0.0) / 50.0)) * 50.0 + 0.0 AS amount, COUNT(*) AS count FROM orders WHERE amount IS NOT NULL GROUP BY 1 ORDER BY 1
-- plain:
SELECT FLOOR(amount / 50) * 50, COUNT(*) FROM orders WHERE amount IS NOT NULL GROUP BY 1

-- name: metabase11 share of rows that match
SELECT CAST(SUM(CASE WHEN "public"."orders"."channel" = 'web' THEN 1 ELSE 0.0 END) AS FLOAT) / NULLIF(COUNT(*), 0) AS "share" FROM "public"."orders"

-- name: metabase12 cumulative count
-- ordered
SELECT "source"."placed", SUM("source"."n") OVER (ORDER BY "source"."placed" ASC ROWS UNBOUNDED PRECEDING) AS "count"
FROM (
  SELECT DATE_TRUNC('month', "public"."orders"."placed") AS "placed", COUNT(*) AS "n"
  FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."placed")
) AS "source"
ORDER BY "source"."placed" ASC

-- name: metabase13 standard deviation and variance
SELECT STDDEV_POP("public"."customers"."age") AS "stddev", VAR_POP("public"."customers"."age") AS "var" FROM "public"."customers"

-- name: metabase14 relative dates
SELECT COUNT(*) AS "count" FROM "public"."orders"
WHERE "public"."orders"."placed" >= CAST((CAST(NOW() AS timestamp) + (INTERVAL '-30 day')) AS date)
  AND "public"."orders"."placed" < CAST(NOW() AS date)

-- name: metabase15 hour of day
SELECT CAST(EXTRACT(hour FROM "public"."visits"."started") AS integer) AS "started", COUNT(*) AS "count"
FROM "public"."visits" GROUP BY CAST(EXTRACT(hour FROM "public"."visits"."started") AS integer)

-- name: metabase16 day of week with an offset
SELECT (CAST(EXTRACT(dow FROM "public"."orders"."placed") AS integer) + 1) AS "placed", COUNT(*) AS "count"
FROM "public"."orders" GROUP BY (CAST(EXTRACT(dow FROM "public"."orders"."placed") AS integer) + 1)
-- plain:
SELECT (CAST(EXTRACT(dow FROM placed) AS integer) + 1), COUNT(*) FROM orders GROUP BY 1

-- name: metabase17 custom column
SELECT CASE WHEN "public"."customers"."age" < 30 THEN 'under 30' WHEN "public"."customers"."age" < 50 THEN '30 to 49' ELSE '50 and over' END AS "Age group", COUNT(*) AS "count"
FROM "public"."customers"
GROUP BY CASE WHEN "public"."customers"."age" < 30 THEN 'under 30' WHEN "public"."customers"."age" < 50 THEN '30 to 49' ELSE '50 and over' END
ORDER BY "count" DESC

-- name: metabase18 week starting on a Sunday
SELECT (DATE_TRUNC('week', ("public"."orders"."placed" + INTERVAL '1 day')) + INTERVAL '-1 day') AS "placed", COUNT(*) AS "count"
FROM "public"."orders"
GROUP BY (DATE_TRUNC('week', ("public"."orders"."placed" + INTERVAL '1 day')) + INTERVAL '-1 day')

-- name: metabase19 explicit join of two questions
SELECT "a"."channel" AS "channel", "a"."count" AS "orders", "b"."buyers" AS "buyers"
FROM (SELECT "public"."orders"."channel" AS "channel", COUNT(*) AS "count" FROM "public"."orders" GROUP BY "public"."orders"."channel") AS "a"
INNER JOIN (SELECT "public"."orders"."channel" AS "channel", COUNT(DISTINCT "public"."orders"."customer_id") AS "buyers" FROM "public"."orders" GROUP BY "public"."orders"."channel") AS "b"
ON "a"."channel" = "b"."channel"

-- name: metabase20 case-insensitive contains
SELECT COUNT(*) AS "count" FROM "public"."customers" WHERE (LOWER("public"."customers"."city") LIKE '%ity 1%')

-- name: metabase21 is empty
SELECT COUNT(*) AS "count" FROM "public"."orders" WHERE ("public"."orders"."channel" IS NULL OR "public"."orders"."channel" = '')

-- name: metabase22 two metrics by quarter
SELECT DATE_TRUNC('quarter', "public"."orders"."placed") AS "placed", SUM("public"."orders"."amount") AS "sum", AVG("public"."orders"."amount") AS "avg"
FROM "public"."orders" GROUP BY DATE_TRUNC('quarter', "public"."orders"."placed") ORDER BY 1

-- name: metabase23 median
-- near: 0.1
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "public"."orders"."amount") AS "median" FROM "public"."orders"

-- name: metabase24 fingerprint of a column
SELECT MIN("public"."orders"."placed") AS "min", MAX("public"."orders"."placed") AS "max" FROM "public"."orders"

-- name: metabase25 fingerprint of a number
SELECT COUNT(*) AS "count", MIN("public"."customers"."age") AS "min", MAX("public"."customers"."age") AS "max", AVG("public"."customers"."age") AS "avg" FROM "public"."customers"

-- name: metabase26 native query with an optional filter
SELECT country, COUNT(*) FROM customers WHERE 1=1 AND age > 30 GROUP BY country ORDER BY 2 DESC

-- name: metabase27 orders per customer
SELECT "source"."count" AS "count", COUNT(*) AS "customers"
FROM (SELECT "public"."orders"."customer_id" AS "customer_id", COUNT(*) AS "count" FROM "public"."orders" GROUP BY "public"."orders"."customer_id") AS "source"
GROUP BY "source"."count" ORDER BY "source"."count" ASC

-- name: metabase28 comparison with the period before
-- ordered
SELECT "m", "count", LAG("count", 1) OVER (ORDER BY "m" ASC) AS "before", ("count" - LAG("count", 1) OVER (ORDER BY "m" ASC)) * 1.0 / NULLIF(LAG("count", 1) OVER (ORDER BY "m" ASC), 0) AS "change"
FROM (SELECT DATE_TRUNC('month', placed) AS "m", COUNT(*) AS "count" FROM orders GROUP BY 1) AS "source"
ORDER BY "m" ASC

-- name: metabase29 segment and metric
SELECT "public"."orders"."channel" AS "channel", SUM(CASE WHEN "public"."orders"."amount" > 100 THEN "public"."orders"."amount" ELSE 0.0 END) AS "big"
FROM "public"."orders" WHERE "public"."orders"."channel" IS NOT NULL
GROUP BY "public"."orders"."channel" ORDER BY "big" DESC LIMIT 10

-- name: metabase30 table preview
SELECT "public"."customers"."customer_id" AS "customer_id", "public"."customers"."country" AS "country", "public"."customers"."age" AS "age"
FROM "public"."customers" LIMIT 2000
