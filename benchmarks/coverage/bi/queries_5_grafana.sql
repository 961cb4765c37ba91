-- name: grafana01 time series by five minutes
-- ordered
SELECT floor(extract(epoch from started)/300)*300 AS "time", count(*) AS "visits"
FROM visits
WHERE started BETWEEN '2025-03-01T00:00:00Z' AND '2025-03-01T06:00:00Z'
GROUP BY 1
HAVING count(*) > 0
ORDER BY 1
-- plain:
SELECT floor(extract(epoch from started)/300)*300, count(*) FROM visits
WHERE started BETWEEN TIMESTAMP '2025-03-01 00:00:00' AND TIMESTAMP '2025-03-01 06:00:00' GROUP BY 1 ORDER BY 1

-- name: grafana02 time series by the hour
-- ordered
SELECT date_trunc('hour', started) AS "time", avg(seconds) AS "seconds"
FROM visits
WHERE started >= '2025-03-01' AND started < '2025-03-04'
GROUP BY 1 HAVING count(*) > 2 ORDER BY 1

-- name: grafana03 time filter by epochs
SELECT count(*) FROM visits WHERE extract(epoch from started) >= 1735689600 AND extract(epoch from started) <= 1738367999

-- name: grafana04 to_timestamp of a group
SELECT to_timestamp(floor(extract(epoch from started)/86400)*86400) AS "time", count(*) AS value
FROM visits WHERE started >= '2025-05-01' AND started < '2025-05-08' GROUP BY 1 ORDER BY 1
-- plain:
SELECT date_trunc('day', started) AT TIME ZONE 'UTC', count(*) FROM visits WHERE started >= '2025-05-01' AND started < '2025-05-08' GROUP BY 1

-- name: grafana05 metric column
SELECT date_trunc('day', started) AS "time", page AS metric, count(*) AS value
FROM visits WHERE started >= '2025-05-01' AND started < '2025-05-08' GROUP BY 1, 2 ORDER BY 1, 2

-- name: grafana06 variable of values
SELECT DISTINCT page FROM visits ORDER BY page

-- name: grafana07 variable of names
SELECT country AS __text, country AS __value FROM countries ORDER BY 1

-- name: grafana08 stat panel
SELECT count(distinct customer_id) AS "visitors" FROM visits WHERE started >= '2025-01-01'

-- name: grafana09 gauge
SELECT 100.0 * count(*) FILTER (WHERE page = 'checkout') / NULLIF(count(*), 0) AS "conversion" FROM visits

-- name: grafana10 percentiles
SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS p50 FROM visits

-- name: grafana11 epoch in milliseconds
SELECT CAST(extract(epoch from date_trunc('day', started)) * 1000 AS BIGINT) AS "time", count(*) AS n
FROM visits WHERE started >= '2025-05-01' AND started < '2025-05-08' GROUP BY 1 ORDER BY 1

-- name: grafana12 date_bin
SELECT date_bin('15 minutes', started, TIMESTAMP '2024-01-01') AS "time", count(*) AS n
FROM visits WHERE started >= '2025-05-01' AND started < '2025-05-02' GROUP BY 1 HAVING count(*) > 0
-- plain:
SELECT time_bucket(INTERVAL '15 minutes', started, TIMESTAMP '2024-01-01'), count(*)
FROM visits WHERE started >= '2025-05-01' AND started < '2025-05-02' GROUP BY 1

-- name: grafana13 moving average
-- ordered
SELECT "time", avg(n) OVER (ORDER BY "time" ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS n
FROM (SELECT date_trunc('day', started) AS "time", count(*) AS n FROM visits WHERE started >= '2025-05-01' AND started < '2025-06-01' GROUP BY 1) AS t
ORDER BY "time"

-- name: grafana14 running total
-- ordered
SELECT date_trunc('month', placed) AS "time", sum(sum(amount)) OVER (ORDER BY date_trunc('month', placed)) AS revenue
FROM orders GROUP BY 1 ORDER BY 1

-- name: grafana15 CTE
WITH daily AS (
  SELECT placed AS d, count(*) AS n FROM orders WHERE placed >= '2025-01-01' GROUP BY placed
)
SELECT avg(n) AS mean, max(n) AS most FROM daily WHERE n > 0

-- name: grafana16 heat map
SELECT extract(dow from started) AS day, extract(hour from started) AS hour, count(*) AS n FROM visits GROUP BY 1, 2

-- name: grafana17 heat map of values
SELECT date_trunc('month', placed) AS "time", width_bucket(amount, 0, 500, 10) AS bucket, count(*) AS n FROM orders WHERE amount IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 0
-- plain:
SELECT date_trunc('month', placed), CASE WHEN amount >= 500 THEN 11 ELSE floor(amount / 50)::INT + 1 END, count(*) FROM orders WHERE amount IS NOT NULL GROUP BY 1, 2

-- name: grafana18 table panel
SELECT c.country, count(*) AS orders, sum(o.amount) AS revenue, avg(o.amount) AS mean
FROM orders o JOIN customers c ON c.customer_id = o.customer_id WHERE c.country <> 'va' GROUP BY c.country ORDER BY revenue DESC LIMIT 10

-- name: grafana19 two series with UNION ALL
SELECT date_trunc('month', placed) AS "time", 'orders' AS metric, count(*) AS value FROM orders GROUP BY 1
UNION ALL
SELECT date_trunc('month', placed), 'revenue', sum(amount) FROM orders GROUP BY 1
ORDER BY 1

-- name: grafana20 above the average
SELECT count(*) AS n FROM orders WHERE amount > (SELECT avg(amount) FROM orders)

-- name: grafana21 histogram
SELECT round(seconds / 600.0) * 600 AS bucket, count(*) FROM visits GROUP BY 1 ORDER BY 1
-- plain:
SELECT round(seconds / 600.0::DOUBLE) * 600, count(*) FROM visits GROUP BY 1

-- name: grafana22 gaps filled
SELECT d.day AS "time", COALESCE(t.n, 0) AS n
FROM generate_series(TIMESTAMP '2025-05-01', TIMESTAMP '2025-05-07', INTERVAL '1 day') AS d(day)
LEFT JOIN (SELECT date_trunc('day', started) AS day, count(*) AS n FROM visits GROUP BY 1) AS t ON t.day = d.day
ORDER BY 1

-- name: grafana23 several aggregates
SELECT count(*) AS n, count(amount) AS known, sum(amount) AS total, avg(amount) AS mean, stddev(amount) AS spread FROM orders

-- name: grafana24 week over week
SELECT sum(CASE WHEN placed >= DATE '2025-06-08' THEN 1 ELSE 0 END) AS this_week, sum(CASE WHEN placed < DATE '2025-06-08' THEN 1 ELSE 0 END) AS last_week
FROM orders WHERE placed >= DATE '2025-06-01' AND placed < DATE '2025-06-15'

-- name: grafana25 latest rows
SELECT started AS "time", page, seconds FROM visits ORDER BY started DESC LIMIT 100

-- name: grafana26 largest customers
SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id ORDER BY total DESC LIMIT 10

-- name: grafana27 engaged customers by month
SELECT "time", count(*) AS engaged
FROM (SELECT customer_id, date_trunc('month', started) AS "time", count(*) AS n FROM visits GROUP BY customer_id, date_trunc('month', started)) AS t
WHERE n >= 3 GROUP BY "time" ORDER BY "time"

-- name: grafana28 first orders by month
SELECT date_trunc('month', first) AS "time", count(*) AS new_customers
FROM (SELECT customer_id, min(placed) AS first FROM orders GROUP BY customer_id) AS t GROUP BY 1 ORDER BY 1

-- name: grafana29 latest order of each customer
SELECT channel, count(*) AS n
FROM (SELECT customer_id, channel, row_number() OVER (PARTITION BY customer_id ORDER BY placed DESC, amount DESC, channel) AS place FROM orders) AS t
WHERE place = 1 GROUP BY channel
-- plain:
SELECT channel, count(*) AS n
FROM (SELECT customer_id, channel, row_number() OVER (PARTITION BY customer_id ORDER BY placed DESC, amount DESC NULLS FIRST, channel NULLS LAST) AS place FROM orders) AS t
WHERE place = 1 GROUP BY channel

-- name: grafana30 active customers in the last thirty days
SELECT count(DISTINCT customer_id) AS active FROM visits WHERE started > CURRENT_DATE - INTERVAL '30 days' AND started <= CURRENT_DATE
