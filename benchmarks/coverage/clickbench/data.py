"""A table like ClickBench's hits, generated: the columns its queries use, skewed as the web is."""

from __future__ import annotations

from pathlib import Path

import duckdb

HITS = """
CREATE TABLE hits AS
WITH draws AS (
  SELECT i,
    hash(i, 1) % 1000003 / 1000003.0 AS a, hash(i, 2) % 1000003 / 1000003.0 AS b,
    hash(i, 3) % 1000003 / 1000003.0 AS c, hash(i, 4) % 1000003 / 1000003.0 AS d,
    hash(i, 5) % 1000003 / 1000003.0 AS e, hash(i, 6) % 1000003 / 1000003.0 AS f
  FROM range({rows}) AS r(i)),
drawn AS (
  SELECT i, a, b, c, d, e, f,
    CAST(floor({rows} / 20 * pow(a, 1.6)) AS BIGINT) AS person,
    CAST(floor(250 * pow(b, 4)) AS INTEGER) AS page,
    CAST(floor(90 * pow(c, 4)) AS INTEGER) AS phrase,
    TIMESTAMP '2013-07-01 00:00:00' + to_seconds(CAST(floor(d * 2678400) AS BIGINT)) AS moment
  FROM draws)
SELECT
  CAST(hash(i, 7) >> 1 AS BIGINT) AS WatchID,
  CAST(CASE WHEN page % 9 = 0 THEN '' ELSE 'Page ' || page % 70
    || CASE WHEN page % 4 = 0 THEN ' - Google' ELSE '' END END AS VARCHAR) AS Title,
  moment AS EventTime,
  CAST(moment AS DATE) AS EventDate,
  CAST(CASE WHEN e < 0.6 THEN 62 ELSE 100 + floor(40 * f * f) END AS INTEGER) AS CounterID,
  CAST(CAST(hash(person // 8, 8) % 4294967296 AS BIGINT) - 2147483648 AS INTEGER) AS ClientIP,
  CAST(1 + floor(60 * pow(hash(person, 9) % 1000003 / 1000003.0, 3)) AS INTEGER) AS RegionID,
  CAST(hash(person, 10) >> 1 AS BIGINT) AS UserID,
  CAST('http://' || ['example.org', 'www.google.com', 'shop.example.net', 'news.example.com'][1 + page % 4]
    || '/' || page AS VARCHAR) AS URL,
  CAST(CASE WHEN hash(i, 11) % 3 = 0 THEN ''
    ELSE 'https://www.site' || page % 25 || '.example/from/' || page END AS VARCHAR) AS Referer,
  CAST(hash(i, 12) % 8 = 0 AS SMALLINT) AS IsRefresh,
  CAST([0, 1024, 1280, 1366, 1920, 2560][1 + CAST(hash(person, 13) % 6 AS INTEGER)] AS SMALLINT) AS ResolutionWidth,
  CAST([-1, 0, 1, 2, 6, 6, 7, 9][1 + CAST(hash(i, 14) % 8 AS INTEGER)] AS SMALLINT) AS TraficSourceID,
  CAST(CASE WHEN f < 0.3 THEN 2 WHEN f < 0.4 THEN 3 ELSE 0 END AS SMALLINT) AS SearchEngineID,
  CAST(CASE WHEN f >= 0.4 THEN '' ELSE 'phrase ' || phrase END AS VARCHAR) AS SearchPhrase,
  CAST(CASE WHEN hash(i, 15) % 20 = 0 THEN 1 + floor(30 * c * c) ELSE 0 END AS SMALLINT) AS AdvEngineID,
  CAST(hash(i, 16) % 6 = 0 AS SMALLINT) AS IsLink,
  CAST(hash(i, 17) % 40 = 0 AS SMALLINT) AS IsDownload,
  CAST(hash(i, 18) % 12 = 0 AS SMALLINT) AS DontCountHits,
  CAST(1000 + page AS BIGINT) AS URLHash,
  CAST(5000 + page % 25 AS BIGINT) AS RefererHash,
  CAST(100 * (1 + hash(i, 19) % 20) AS SMALLINT) AS WindowClientWidth,
  CAST(100 * (1 + hash(i, 20) % 12) AS SMALLINT) AS WindowClientHeight,
  CAST(CASE WHEN hash(person, 21) % 3 = 0 THEN 1 + hash(person, 22) % 8 ELSE 0 END AS SMALLINT) AS MobilePhone,
  CAST(CASE WHEN hash(person, 21) % 3 = 0 THEN 'model ' || hash(person, 22) % 40 ELSE '' END AS VARCHAR) AS MobilePhoneModel
FROM drawn
"""


def make(path: Path, scale: float) -> None:
    """``scale`` rows; the same every time."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(HITS.format(rows=int(scale)))
        connection.execute("CREATE TABLE visitors AS SELECT DISTINCT UserID FROM hits")
