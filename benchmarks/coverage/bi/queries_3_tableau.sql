-- name: tableau01 number of records
SELECT SUM(1) AS "cnt:orders" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)

-- name: tableau02 sum by dimension
SELECT "orders"."channel" AS "channel", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" GROUP BY 1

-- name: tableau03 quoted tables and ordinals
SELECT "customers"."country" AS "country", AVG(CAST("customers"."age" AS DOUBLE PRECISION)) AS "avg:age:ok"
FROM "public"."customers" "customers" WHERE "customers"."country" <> 'va' GROUP BY 1

-- name: tableau04 year and month parts
SELECT CAST(EXTRACT(YEAR FROM "orders"."placed") AS INTEGER) AS "yr:placed:ok", CAST(EXTRACT(MONTH FROM "orders"."placed") AS INTEGER) AS "mn:placed:ok", SUM("orders"."amount") AS "sum:amount:ok"
FROM "public"."orders" "orders" GROUP BY 1, 2

-- name: tableau05 truncated to month
SELECT DATE_TRUNC('MONTH', CAST("orders"."placed" AS DATE)) AS "tmn:placed:ok", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" GROUP BY 1

-- name: tableau06 truncated as a timestamp
SELECT DATE_TRUNC('DAY', CAST("visits"."started" AS TIMESTAMP)) AS "tdy:started:ok", COUNT(1) AS "cnt" FROM "public"."visits" "visits" WHERE (("visits"."started" >= TIMESTAMP '2025-01-01 00:00:00.000') AND ("visits"."started" <= TIMESTAMP '2025-01-31 23:59:59.000')) GROUP BY 1

-- name: tableau07 count distinct
SELECT COUNT(DISTINCT "orders"."customer_id") AS "ctd:customer_id:ok" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)

-- name: tableau08 filter list
SELECT "customers"."country" AS "country" FROM "public"."customers" "customers" GROUP BY 1 ORDER BY 1 ASC
-- plain:
SELECT country FROM countries ORDER BY 1

-- name: tableau09 range of a date filter
SELECT MIN("orders"."placed") AS "TEMP(none:placed:qk)(1)", MAX("orders"."placed") AS "TEMP(none:placed:qk)(2)", COUNT(1) AS "TEMP(n)(3)" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0)

-- name: tableau10 range of a number filter
SELECT MIN("visits"."seconds") AS "low", MAX("visits"."seconds") AS "high" FROM "public"."visits" "visits" HAVING COUNT(1) > 0

-- name: tableau11 IN filter
SELECT "visits"."page" AS "page", COUNT(1) AS "cnt" FROM "public"."visits" "visits" WHERE ("visits"."page" IN ('home', 'search', 'product')) GROUP BY 1

-- name: tableau12 top N by a joined subquery
SELECT "customers"."country" AS "country", COUNT(1) AS "cnt"
FROM "public"."customers" "customers"
INNER JOIN (
  SELECT "customers"."country" AS "country", COUNT(1) AS "$__alias__0"
  FROM "public"."customers" "customers" GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 3
) "t0" ON ("customers"."country" = "t0"."country")
GROUP BY 1

-- name: tableau13 percent of total
SELECT "t0"."channel" AS "channel", ("t0"."s" / SUM("t0"."s") OVER ()) AS "pcto:sum:amount"
FROM (SELECT "orders"."channel" AS "channel", SUM("orders"."amount") AS "s" FROM "public"."orders" "orders" WHERE "orders"."channel" IS NOT NULL GROUP BY 1) "t0"

-- name: tableau14 fixed level of detail
SELECT "t0"."country" AS "country", AVG("t0"."total") AS "avg:total"
FROM (
  SELECT "orders"."customer_id" AS "customer_id", "customers"."country" AS "country", SUM("orders"."amount") AS "total"
  FROM "public"."orders" "orders"
  INNER JOIN "public"."customers" "customers" ON ("orders"."customer_id" = "customers"."customer_id")
  GROUP BY 1, 2
) "t0"
WHERE "t0"."country" <> 'va'
GROUP BY 1

-- name: tableau15 level of detail joined back
SELECT "t1"."n" AS "n", SUM("orders"."amount") AS "sum:amount"
FROM "public"."orders" "orders"
INNER JOIN (SELECT "orders"."customer_id" AS "customer_id", COUNT(1) AS "n" FROM "public"."orders" "orders" GROUP BY 1) "t1" ON ("orders"."customer_id" = "t1"."customer_id")
GROUP BY 1

-- name: tableau16 calculated field
SELECT (CASE WHEN ("orders"."amount" >= 250) THEN 'large' WHEN NOT ("orders"."amount" >= 250) THEN 'small' ELSE NULL END) AS "Calculation_1", COUNT(1) AS "cnt" FROM "public"."orders" "orders" GROUP BY 1

-- name: tableau17 bins
SELECT CAST(FLOOR("customers"."age" / 5) AS INTEGER) AS "age (bin)", COUNT(1) AS "cnt" FROM "public"."customers" "customers" GROUP BY 1
-- plain:
SELECT CAST(FLOOR(age // 5) AS INTEGER), COUNT(1) FROM customers GROUP BY 1

-- name: tableau18 relative dates by interval
SELECT COUNT(1) AS "cnt" FROM "public"."orders" "orders" WHERE (("orders"."placed" >= (DATE '2025-06-01' + -3 * INTERVAL '1 MONTH')) AND ("orders"."placed" < DATE '2025-06-01'))

-- name: tableau19 quick filter on a part of a date
SELECT "orders"."channel" AS "channel", SUM("orders"."amount") AS "sum" FROM "public"."orders" "orders" WHERE (CAST(EXTRACT(YEAR FROM "orders"."placed") AS INTEGER) = 2025) GROUP BY 1

-- name: tableau20 custom SQL
SELECT "Custom SQL Query"."country" AS "country", SUM("Custom SQL Query"."amount") AS "sum:amount:ok"
FROM (
  SELECT c.country, o.amount FROM customers c JOIN orders o ON o.customer_id = c.customer_id
) "Custom SQL Query"
GROUP BY 1

-- name: tableau21 probe of a custom query
SELECT * FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country) "Custom SQL Query" LIMIT 0

-- name: tableau22 relationship with two fact tables
SELECT "t0"."country" AS "country", "t0"."orders" AS "orders", "t1"."visits" AS "visits"
FROM (
  SELECT "c"."country" AS "country", COUNT(1) AS "orders" FROM "public"."orders" "o" INNER JOIN "public"."customers" "c" ON ("o"."customer_id" = "c"."customer_id") GROUP BY 1
) "t0"
FULL JOIN (
  SELECT "c"."country" AS "country", COUNT(1) AS "visits" FROM "public"."visits" "v" INNER JOIN "public"."customers" "c" ON ("v"."customer_id" = "c"."customer_id") GROUP BY 1
) "t1" ON (("t0"."country" = "t1"."country") OR (("t0"."country" IS NULL) AND ("t1"."country" IS NULL)))

-- name: tableau23 standard deviation
SELECT "visits"."page" AS "page", STDDEV_SAMP("visits"."seconds") AS "std:seconds:ok", VAR_POP("visits"."seconds") AS "vrp:seconds" FROM "public"."visits" "visits" GROUP BY 1

-- name: tableau24 median
SELECT "visits"."page" AS "page", PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "visits"."seconds") AS "med:seconds:ok" FROM "public"."visits" "visits" GROUP BY 1
-- plain:
SELECT page, quantile_disc(seconds, 0.5)::DOUBLE FROM visits GROUP BY 1

-- name: tableau25 attribute of a dimension
SELECT "orders"."channel" AS "channel", MIN("orders"."channel") AS "min:channel", MAX("orders"."channel") AS "max:channel" FROM "public"."orders" "orders" GROUP BY 1

-- name: tableau26 set membership
SELECT (CASE WHEN (NOT ("t0"."m" IS NULL)) THEN 1 ELSE 0 END) AS "io:set", COUNT(1) AS "cnt"
FROM "public"."customers" "customers"
LEFT JOIN (SELECT "countries"."country" AS "country", 1 AS "m" FROM "public"."countries" "countries" WHERE "countries"."continent" = 'europe') "t0" ON ("customers"."country" = "t0"."country")
GROUP BY 1

-- name: tableau27 join with a public table
SELECT "countries"."continent" AS "continent", COUNT(DISTINCT "customers"."customer_id") AS "ctd" FROM "public"."customers" "customers" LEFT JOIN "public"."countries" "countries" ON ("customers"."country" = "countries"."country") GROUP BY 1

-- name: tableau28 week of year
SELECT CAST(EXTRACT(WEEK FROM "orders"."placed") AS INTEGER) AS "wk:placed:ok", COUNT(1) AS "cnt" FROM "public"."orders" "orders" GROUP BY 1

-- name: tableau29 view underlying data
SELECT "orders"."amount" AS "amount", "orders"."channel" AS "channel", "orders"."placed" AS "placed" FROM "public"."orders" "orders" WHERE ("orders"."channel" = 'web') LIMIT 10001

-- name: tableau30 quarter as text
SELECT 'Q' || CAST(EXTRACT(QUARTER FROM "orders"."placed") AS VARCHAR) AS "quarter", SUM("orders"."amount") AS "sum" FROM "public"."orders" "orders" GROUP BY 1
