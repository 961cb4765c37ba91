-- name: superset01 big number
SELECT COUNT(*) AS count FROM public.orders LIMIT 50000

-- name: superset02 big number with a metric label
SELECT SUM(amount) AS "SUM(amount)" FROM orders WHERE placed >= DATE '2025-01-01' AND placed < DATE '2026-01-01' LIMIT 50000

-- name: superset03 big number with a trend line
-- ordered
SELECT DATE_TRUNC('month', placed) AS __timestamp, SUM(amount) AS "SUM(amount)"
FROM public.orders
WHERE placed >= TO_DATE('2024-01-01', 'YYYY-MM-DD') AND placed < TO_DATE('2025-01-01', 'YYYY-MM-DD')
GROUP BY DATE_TRUNC('month', placed)
ORDER BY __timestamp
LIMIT 50000
-- plain:
SELECT DATE_TRUNC('month', placed) AS __timestamp, SUM(amount) FROM orders
WHERE placed < DATE '2025-01-01' GROUP BY 1 ORDER BY 1

-- name: superset04 table with a groupby
SELECT country AS country, COUNT(*) AS count FROM public.customers GROUP BY country ORDER BY count DESC LIMIT 10000

-- name: superset05 virtual data set
SELECT channel AS channel, COUNT(*) AS count
FROM (SELECT customer_id, channel, amount, placed FROM orders) AS virtual_table
GROUP BY channel
ORDER BY count DESC
LIMIT 1000

-- name: superset06 virtual data set with a join
SELECT country AS country, SUM(amount) AS "SUM(amount)", COUNT(DISTINCT customer_id) AS "COUNT_DISTINCT(customer_id)"
FROM (
  SELECT o.customer_id, o.amount, o.placed, c.country
  FROM orders o
  JOIN customers c ON o.customer_id = c.customer_id
) AS virtual_table
WHERE placed >= '2024-06-01' AND placed < '2025-06-01'
GROUP BY country
ORDER BY "SUM(amount)" DESC
LIMIT 10000

-- name: superset07 line chart with a series limit
SELECT DATE_TRUNC('month', o.placed) AS __timestamp, o.channel AS channel, COUNT(*) AS count
FROM public.orders AS o
JOIN (
  SELECT channel AS channel__, COUNT(*) AS mme_inner__
  FROM public.orders
  WHERE placed >= '2024-01-01' AND placed < '2025-01-01' AND channel IS NOT NULL
  GROUP BY channel
  ORDER BY mme_inner__ DESC
  LIMIT 2
) AS series_limit ON o.channel = series_limit.channel__
WHERE o.placed >= '2024-01-01' AND o.placed < '2025-01-01'
GROUP BY DATE_TRUNC('month', o.placed), o.channel
ORDER BY count DESC
LIMIT 50000

-- name: superset08 time grain of a day
SELECT DATE_TRUNC('day', started) AS __timestamp, COUNT(*) AS count
FROM visits
WHERE started >= TO_TIMESTAMP('2025-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND started < TO_TIMESTAMP('2025-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('day', started)
ORDER BY count DESC
LIMIT 50000
-- plain:
SELECT DATE_TRUNC('day', started), COUNT(*) FROM visits
WHERE started >= '2025-02-01' AND started < '2025-03-01' GROUP BY 1

-- name: superset09 time grain of an hour
SELECT DATE_TRUNC('hour', started) AS __timestamp, COUNT(*) AS count, AVG(seconds) AS "AVG(seconds)"
FROM visits
WHERE started >= '2025-03-01 00:00:00' AND started < '2025-03-03 00:00:00'
GROUP BY DATE_TRUNC('hour', started)
HAVING COUNT(*) > 0
LIMIT 10000

-- name: superset10 week grain
SELECT DATE_TRUNC('week', started) AS __timestamp, page AS page, COUNT(*) AS count
FROM visits
GROUP BY DATE_TRUNC('week', started), page
LIMIT 50000

-- name: superset11 filter values
SELECT DISTINCT country AS country FROM public.customers ORDER BY country ASC LIMIT 1000
-- plain:
SELECT DISTINCT country FROM countries ORDER BY 1

-- name: superset12 filter values by GROUP BY
SELECT channel AS channel FROM public.orders GROUP BY channel LIMIT 1000

-- name: superset13 range of a time filter
SELECT MIN(placed) AS min, MAX(placed) AS max FROM public.orders LIMIT 1

-- name: superset14 range of a number filter
SELECT MIN(age) AS min, MAX(age) AS max FROM customers

-- name: superset15 pie
SELECT channel AS channel, SUM(amount) AS "SUM(amount)" FROM orders WHERE channel IN ('web', 'shop') GROUP BY channel ORDER BY "SUM(amount)" DESC LIMIT 100

-- name: superset16 histogram bins
SELECT FLOOR(age / 10.0) * 10 AS age__bin, COUNT(*) AS count FROM customers GROUP BY FLOOR(age / 10.0) * 10 ORDER BY 1
-- plain:
SELECT FLOOR(age / 10.0)::DOUBLE * 10, COUNT(*) FROM customers GROUP BY 1

-- name: superset17 pivot table
SELECT country AS country, channel AS channel, SUM(amount) AS "SUM(amount)", COUNT(*) AS count
FROM (SELECT * FROM orders JOIN customers USING (customer_id)) AS virtual_table
GROUP BY country, channel
ORDER BY count DESC
LIMIT 50000

-- name: superset18 custom SQL metric
SELECT country AS country, SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS "Share of pensioners"
FROM customers
WHERE country IN ('de', 'us', 'fr')
GROUP BY country
LIMIT 1000

-- name: superset19 adhoc filters
SELECT page AS page, COUNT(*) AS count FROM visits
WHERE (seconds >= 60) AND (page NOT IN ('basket')) AND ((started >= '2024-07-01' AND started < '2025-01-01'))
GROUP BY page ORDER BY count DESC LIMIT 10000

-- name: superset20 LIKE filter
SELECT country AS country, COUNT(*) AS count FROM customers WHERE (city LIKE 'city 1%') GROUP BY country LIMIT 1000

-- name: superset21 having filter
SELECT country AS country, COUNT(*) AS count FROM customers GROUP BY country HAVING (COUNT(*) > 180) ORDER BY count DESC LIMIT 10000

-- name: superset22 row count of a table chart
SELECT COUNT(*) AS rowcount
FROM (SELECT channel AS channel, COUNT(*) AS count FROM orders GROUP BY channel LIMIT 1000) AS rowcount_qry
LIMIT 1000

-- name: superset23 totals of a table chart
SELECT COUNT(*) AS count, SUM(amount) AS "SUM(amount)" FROM orders WHERE placed >= '2024-01-01' LIMIT 1000

-- name: superset24 percent metrics
SELECT page AS page, COUNT(*) AS count, COUNT(*) / SUM(COUNT(*)) OVER () AS "%count" FROM visits GROUP BY page LIMIT 1000

-- name: superset25 box plot
-- near: 0.05
SELECT channel AS channel, AVG(amount) AS mean, MIN(amount) AS low, MAX(amount) AS high FROM orders WHERE channel IS NOT NULL GROUP BY channel LIMIT 1000

-- name: superset26 median
SELECT country AS country, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS median_age FROM customers WHERE country <> 'va' GROUP BY country LIMIT 1000
-- plain:
SELECT country, quantile_disc(age, 0.5)::DOUBLE FROM customers GROUP BY country

-- name: superset27 calendar heat map
SELECT DATE_TRUNC('day', placed) AS __timestamp, COUNT(*) AS count FROM orders WHERE placed >= '2025-01-01' AND placed < '2025-02-01' GROUP BY DATE_TRUNC('day', placed) LIMIT 50000

-- name: superset28 bubble chart
SELECT p.continent AS series, c.country AS entity, AVG(c.age) AS x, COUNT(*) AS size
FROM customers c JOIN countries p ON c.country = p.country
GROUP BY p.continent, c.country
HAVING COUNT(*) > 0
LIMIT 1000

-- name: superset29 raw records
SELECT customer_id AS customer_id, amount AS amount, placed AS placed FROM orders LIMIT 1000

-- name: superset30 SQL Lab preview of a public table
SELECT * FROM public.countries LIMIT 100
