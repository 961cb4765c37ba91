-- name: powerbi01 card
select count(*) as "a0" from "public"."orders" as "$Table" limit 1000001

-- name: powerbi02 nested projection
select "rows"."channel" as "channel", sum("rows"."amount") as "a0"
from (select "channel", "amount" from "public"."orders" "$Table") "rows"
group by "channel"
limit 1000001

-- name: powerbi03 nested with underscores
select "_"."channel", "_"."a0"
from (
  select "rows"."channel" as "channel", sum("rows"."amount") as "a0"
  from (select "_"."channel", "_"."amount" from "public"."orders" "_" where "_"."placed" >= timestamp '2025-01-01 00:00:00') "rows"
  group by "channel"
) "_"
where not "_"."a0" is null
limit 1000001

-- name: powerbi04 top 1001 groups
select "_"."country", "_"."a0", "_"."o0"
from (
  select "rows"."country" as "country", count(*) as "a0", count(*) as "o0"
  from (select "country" from "public"."customers") "rows" group by "country"
) "_"
order by "_"."o0" desc, "_"."country"
limit 1001

-- name: powerbi05 slicer values
select "_"."country" from (select distinct "country" from "public"."customers" "$Table") "_" order by "_"."country" limit 101
-- plain:
select country from countries order by 1

-- name: powerbi06 slicer of another table
select "page" from "public"."visits" "$Table" group by "page" order by "page" limit 101

-- name: powerbi07 date range slicer
select min("placed") as "a0", max("placed") as "a1" from "public"."orders" "$Table"

-- name: powerbi08 star join
select "$Inner"."country" as "c0", sum("$Outer"."amount") as "a0"
from "public"."orders" "$Outer"
left outer join "public"."customers" "$Inner" on ("$Outer"."customer_id" = "$Inner"."customer_id")
group by "$Inner"."country"
limit 1000001

-- name: powerbi09 two dimensions
select "continent" as "c0", "channel" as "c1", count(*) as "a0"
from (
  select "o"."channel", "p"."continent"
  from "public"."orders" "o"
  inner join "public"."customers" "c" on "o"."customer_id" = "c"."customer_id"
  inner join "public"."countries" "p" on "c"."country" = "p"."country"
) "basetable0"
group by "continent", "channel"
limit 1000001

-- name: powerbi10 filter on text
select count(*) as "a0" from "public"."customers" "$Table" where "$Table"."country" = 'de' and "$Table"."country" is not null

-- name: powerbi11 nulls beside values
select count(*) as "a0" from "public"."orders" "$Table" where ("$Table"."channel" in ('web', 'shop') or "$Table"."channel" is null)

-- name: powerbi12 between dates
select sum("amount") as "a0" from "public"."orders" where "placed" between date '2024-03-01' and date '2024-03-31'

-- name: powerbi13 timestamp cast
select count(*) as "a0" from "public"."visits" where "started" >= '2025-01-01 00:00:00'::timestamp and "started" < '2025-02-01 00:00:00'::timestamp

-- name: powerbi14 date hierarchy
select extract(year from "placed") as "c0", extract(quarter from "placed") as "c1", count("amount") as "a0"
from "public"."orders" group by extract(year from "placed"), extract(quarter from "placed")

-- name: powerbi15 average guarded
select case when count("amount") > 0 then sum("amount") / count("amount") else null end as "a0" from "public"."orders"

-- name: powerbi16 distinct count by group
select "channel", count(distinct "customer_id") as "a0" from "public"."orders" where "channel" is not null group by "channel" order by "channel" limit 1001

-- name: powerbi17 measure with a filter
select "country", sum(case when "channel" = 'web' then "amount" end) as "web", sum(case when "channel" = 'shop' then "amount" end) as "shop"
from "public"."orders" inner join "public"."customers" using ("customer_id") where "country" <> 'va' group by "country" limit 1001

-- name: powerbi18 coalesced key
select coalesce("channel", '(Blank)') as "c0", sum("amount") as "a0" from "public"."orders" group by coalesce("channel", '(Blank)') order by 1

-- name: powerbi19 totals with rollup
select "channel", "page", count(*) as "a0"
from (select "o"."channel", "v"."page" from "public"."orders" "o" join "public"."visits" "v" on "o"."customer_id" = "v"."customer_id") "t"
where "channel" is not null
group by rollup("channel", "page")

-- name: powerbi20 grouping sets
select "country", "channel", sum("amount") as "a0"
from "public"."orders" join "public"."customers" using ("customer_id")
where "channel" in ('web', 'shop') and "country" in ('de', 'us')
group by grouping sets (("country", "channel"), ("country"), ())

-- name: powerbi21 schema probe
select * from (select "country", "age" from "public"."customers") "_" limit 0

-- name: powerbi22 schema probe of a query
select "t"."channel", "t"."n" from (select "channel", count(*) as "n" from "public"."orders" group by "channel") "t" limit 0

-- name: powerbi23 table preview
select "$Table"."customer_id" as "customer_id", "$Table"."amount" as "amount" from "public"."orders" "$Table" limit 1000

-- name: powerbi24 semi join by a public table
select "channel", count(*) as "a0" from "public"."orders" "o"
where exists (select 1 from "public"."customers" "c" where "c"."customer_id" = "o"."customer_id" and "c"."age" > 50)
group by "channel" limit 1001

-- name: powerbi25 in subquery
select count(*) as "a0" from "public"."customers" where "country" in (select "country" from "public"."countries" where "continent" = 'asia')

-- name: powerbi26 customers without orders
select "country", count(*) as "a0" from "public"."customers" "c"
where not exists (select * from "public"."orders" "o" where "o"."customer_id" = "c"."customer_id")
group by "country" having count(*) > 0

-- name: powerbi27 year over year
select "y", "a0", "a0" - lag("a0") over (order by "y") as "a1"
from (select extract(year from "placed") as "y", sum("amount") as "a0" from "public"."orders" group by 1) "_"
order by "y"

-- name: powerbi28 rank of groups
select "country", "a0", rank() over (order by "a0" desc) as "r"
from (select "country", sum("amount") as "a0" from "public"."orders" join "public"."customers" using ("customer_id") where "country" <> 'va' group by "country") "_"
order by "r" limit 5

-- name: powerbi29 two dates as months
select to_char("placed", 'YYYY-MM') as "c0", count(*) as "a0" from "public"."orders" group by to_char("placed", 'YYYY-MM') order by 1
-- plain:
select strftime(placed, '%Y-%m'), count(*) from orders group by 1 order by 1

-- name: powerbi30 concatenated key
select "country" || ' / ' || "channel" as "c0", count(*) as "a0" from "public"."orders" join "public"."customers" using ("customer_id") where "channel" is not null group by 1
