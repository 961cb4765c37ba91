-- name: q00
SELECT COUNT(*) FROM hits

-- name: q01
SELECT COUNT(*) FROM hits WHERE AdvEngineID <> 0

-- name: q02
SELECT SUM(AdvEngineID), COUNT(*), AVG(ResolutionWidth) FROM hits

-- name: q03
SELECT AVG(UserID) FROM hits

-- name: q04
SELECT COUNT(DISTINCT UserID) FROM hits

-- name: q05
SELECT COUNT(DISTINCT SearchPhrase) FROM hits

-- name: q06
SELECT MIN(EventDate), MAX(EventDate) FROM hits

-- name: q07
SELECT AdvEngineID, COUNT(*)
FROM hits
WHERE AdvEngineID <> 0
GROUP BY AdvEngineID
ORDER BY COUNT(*) DESC

-- name: q08
-- ties: 2
SELECT RegionID, COUNT(DISTINCT UserID) AS u
FROM hits
GROUP BY RegionID
ORDER BY u DESC
LIMIT 10

-- name: q09
-- ties: 3
SELECT RegionID, SUM(AdvEngineID), COUNT(*) AS c, AVG(ResolutionWidth), COUNT(DISTINCT UserID)
FROM hits
GROUP BY RegionID
ORDER BY c DESC
LIMIT 10

-- name: q10
-- ties: 2
SELECT MobilePhoneModel, COUNT(DISTINCT UserID) AS u
FROM hits
WHERE MobilePhoneModel <> ''
GROUP BY MobilePhoneModel
ORDER BY u DESC
LIMIT 10

-- name: q11
-- ties: 3
SELECT MobilePhone, MobilePhoneModel, COUNT(DISTINCT UserID) AS u
FROM hits
WHERE MobilePhoneModel <> ''
GROUP BY MobilePhone, MobilePhoneModel
ORDER BY u DESC
LIMIT 10

-- name: q12
-- ties: 2
SELECT SearchPhrase, COUNT(*) AS c
FROM hits
WHERE SearchPhrase <> ''
GROUP BY SearchPhrase
ORDER BY c DESC
LIMIT 10

-- name: q13
-- ties: 2
SELECT SearchPhrase, COUNT(DISTINCT UserID) AS u
FROM hits
WHERE SearchPhrase <> ''
GROUP BY SearchPhrase
ORDER BY u DESC
LIMIT 10

-- name: q14
-- ties: 3
SELECT SearchEngineID, SearchPhrase, COUNT(*) AS c
FROM hits
WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, SearchPhrase
ORDER BY c DESC
LIMIT 10

-- name: q15
-- ties: 2
SELECT UserID, COUNT(*)
FROM hits
GROUP BY UserID
ORDER BY COUNT(*) DESC
LIMIT 10

-- name: q16
-- ties: 3
SELECT UserID, SearchPhrase, COUNT(*)
FROM hits
GROUP BY UserID, SearchPhrase
ORDER BY COUNT(*) DESC
LIMIT 10

-- name: q17
SELECT UserID, SearchPhrase, COUNT(*)
FROM hits
GROUP BY UserID, SearchPhrase
LIMIT 10

-- name: q18
-- ties: 4
SELECT UserID, EXTRACT(MINUTE FROM EventTime) AS m, SearchPhrase, COUNT(*)
FROM hits
GROUP BY UserID, m, SearchPhrase
ORDER BY COUNT(*) DESC
LIMIT 10

-- name: q19
SELECT UserID FROM hits WHERE UserID = 435090932899640449

-- name: q20
SELECT COUNT(*) FROM hits WHERE URL LIKE '%google%'

-- name: q21
-- ties: 3
SELECT SearchPhrase, MIN(URL), COUNT(*) AS c
FROM hits
WHERE URL LIKE '%google%' AND SearchPhrase <> ''
GROUP BY SearchPhrase
ORDER BY c DESC
LIMIT 10

-- name: q22
-- ties: 4
SELECT SearchPhrase, MIN(URL), MIN(Title), COUNT(*) AS c, COUNT(DISTINCT UserID)
FROM hits
WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> ''
GROUP BY SearchPhrase
ORDER BY c DESC
LIMIT 10

-- name: q23
SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10

-- name: q24
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime LIMIT 10

-- name: q25
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10

-- name: q26
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10

-- name: q27
SELECT CounterID, AVG(LENGTH(URL)) AS l, COUNT(*) AS c
FROM hits
WHERE URL <> ''
GROUP BY CounterID
HAVING COUNT(*) > 200
ORDER BY l DESC
LIMIT 25

-- name: q28
SELECT REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS k,
       AVG(LENGTH(Referer)) AS l, COUNT(*) AS c, MIN(Referer)
FROM hits
WHERE Referer <> ''
GROUP BY k
HAVING COUNT(*) > 200
ORDER BY l DESC
LIMIT 25

-- name: q29
SELECT SUM(ResolutionWidth),
       SUM(ResolutionWidth + 1),
       SUM(ResolutionWidth + 2),
       SUM(ResolutionWidth + 3),
       SUM(ResolutionWidth + 4),
       SUM(ResolutionWidth + 5),
       SUM(ResolutionWidth + 6),
       SUM(ResolutionWidth + 7),
       SUM(ResolutionWidth + 8),
       SUM(ResolutionWidth + 9),
       SUM(ResolutionWidth + 10),
       SUM(ResolutionWidth + 11),
       SUM(ResolutionWidth + 12),
       SUM(ResolutionWidth + 13),
       SUM(ResolutionWidth + 14),
       SUM(ResolutionWidth + 15),
       SUM(ResolutionWidth + 16),
       SUM(ResolutionWidth + 17),
       SUM(ResolutionWidth + 18),
       SUM(ResolutionWidth + 19),
       SUM(ResolutionWidth + 20),
       SUM(ResolutionWidth + 21),
       SUM(ResolutionWidth + 22),
       SUM(ResolutionWidth + 23),
       SUM(ResolutionWidth + 24),
       SUM(ResolutionWidth + 25),
       SUM(ResolutionWidth + 26),
       SUM(ResolutionWidth + 27),
       SUM(ResolutionWidth + 28),
       SUM(ResolutionWidth + 29),
       SUM(ResolutionWidth + 30),
       SUM(ResolutionWidth + 31),
       SUM(ResolutionWidth + 32),
       SUM(ResolutionWidth + 33),
       SUM(ResolutionWidth + 34),
       SUM(ResolutionWidth + 35),
       SUM(ResolutionWidth + 36),
       SUM(ResolutionWidth + 37),
       SUM(ResolutionWidth + 38),
       SUM(ResolutionWidth + 39),
       SUM(ResolutionWidth + 40),
       SUM(ResolutionWidth + 41),
       SUM(ResolutionWidth + 42),
       SUM(ResolutionWidth + 43),
       SUM(ResolutionWidth + 44),
       SUM(ResolutionWidth + 45),
       SUM(ResolutionWidth + 46),
       SUM(ResolutionWidth + 47),
       SUM(ResolutionWidth + 48),
       SUM(ResolutionWidth + 49),
       SUM(ResolutionWidth + 50),
       SUM(ResolutionWidth + 51),
       SUM(ResolutionWidth + 52),
       SUM(ResolutionWidth + 53),
       SUM(ResolutionWidth + 54),
       SUM(ResolutionWidth + 55),
       SUM(ResolutionWidth + 56),
       SUM(ResolutionWidth + 57),
       SUM(ResolutionWidth + 58),
       SUM(ResolutionWidth + 59),
       SUM(ResolutionWidth + 60),
       SUM(ResolutionWidth + 61),
       SUM(ResolutionWidth + 62),
       SUM(ResolutionWidth + 63),
       SUM(ResolutionWidth + 64),
       SUM(ResolutionWidth + 65),
       SUM(ResolutionWidth + 66),
       SUM(ResolutionWidth + 67),
       SUM(ResolutionWidth + 68),
       SUM(ResolutionWidth + 69),
       SUM(ResolutionWidth + 70),
       SUM(ResolutionWidth + 71),
       SUM(ResolutionWidth + 72),
       SUM(ResolutionWidth + 73),
       SUM(ResolutionWidth + 74),
       SUM(ResolutionWidth + 75),
       SUM(ResolutionWidth + 76),
       SUM(ResolutionWidth + 77),
       SUM(ResolutionWidth + 78),
       SUM(ResolutionWidth + 79),
       SUM(ResolutionWidth + 80),
       SUM(ResolutionWidth + 81),
       SUM(ResolutionWidth + 82),
       SUM(ResolutionWidth + 83),
       SUM(ResolutionWidth + 84),
       SUM(ResolutionWidth + 85),
       SUM(ResolutionWidth + 86),
       SUM(ResolutionWidth + 87),
       SUM(ResolutionWidth + 88),
       SUM(ResolutionWidth + 89)
FROM hits

-- name: q30
-- ties: 3
SELECT SearchEngineID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth)
FROM hits
WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, ClientIP
ORDER BY c DESC
LIMIT 10

-- name: q31
-- ties: 3
SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth)
FROM hits
WHERE SearchPhrase <> ''
GROUP BY WatchID, ClientIP
ORDER BY c DESC
LIMIT 10

-- name: q32
-- ties: 3
SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth)
FROM hits
GROUP BY WatchID, ClientIP
ORDER BY c DESC
LIMIT 10

-- name: q33
-- ties: 2
SELECT URL, COUNT(*) AS c
FROM hits
GROUP BY URL
ORDER BY c DESC
LIMIT 10

-- name: q34
-- ties: 3
SELECT 1, URL, COUNT(*) AS c
FROM hits
GROUP BY 1, URL
ORDER BY c DESC
LIMIT 10

-- name: q35
-- ties: 5
SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, COUNT(*) AS c
FROM hits
GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3
ORDER BY c DESC
LIMIT 10

-- name: q36
-- ties: 2
SELECT URL, COUNT(*) AS PageViews
FROM hits
WHERE CounterID = 62
  AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND DontCountHits = 0 AND IsRefresh = 0 AND URL <> ''
GROUP BY URL
ORDER BY PageViews DESC
LIMIT 10

-- name: q37
-- ties: 2
SELECT Title, COUNT(*) AS PageViews
FROM hits
WHERE CounterID = 62
  AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND DontCountHits = 0 AND IsRefresh = 0 AND Title <> ''
GROUP BY Title
ORDER BY PageViews DESC
LIMIT 10

-- name: q38
-- ties: 2
SELECT URL, COUNT(*) AS PageViews
FROM hits
WHERE CounterID = 62
  AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND IsRefresh = 0 AND IsLink <> 0 AND IsDownload = 0
GROUP BY URL
ORDER BY PageViews DESC
LIMIT 10 OFFSET 10

-- name: q39
-- ties: 6
SELECT TraficSourceID, SearchEngineID, AdvEngineID,
       CASE WHEN (SearchEngineID = 0 AND AdvEngineID = 0) THEN Referer ELSE '' END AS Src,
       URL AS Dst, COUNT(*) AS PageViews
FROM hits
WHERE CounterID = 62
  AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND IsRefresh = 0
GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, Src, Dst
ORDER BY PageViews DESC
LIMIT 10 OFFSET 10

-- name: q40
-- ties: 3
SELECT URLHash, EventDate, COUNT(*) AS PageViews
FROM hits
WHERE CounterID = 62
  AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND IsRefresh = 0 AND TraficSourceID IN (-1, 6) AND RefererHash = 5001
GROUP BY URLHash, EventDate
ORDER BY PageViews DESC
LIMIT 10 OFFSET 10

-- name: q41
-- ties: 3
SELECT WindowClientWidth, WindowClientHeight, COUNT(*) AS PageViews
FROM hits
WHERE CounterID = 62
  AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31'
  AND IsRefresh = 0 AND DontCountHits = 0 AND URLHash = 1000
GROUP BY WindowClientWidth, WindowClientHeight
ORDER BY PageViews DESC
LIMIT 10 OFFSET 10

-- name: q42
SELECT DATE_TRUNC('minute', EventTime) AS M, COUNT(*) AS PageViews
FROM hits
WHERE CounterID = 62
  AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15'
  AND IsRefresh = 0 AND DontCountHits = 0
GROUP BY DATE_TRUNC('minute', EventTime)
ORDER BY DATE_TRUNC('minute', EventTime)
LIMIT 10 OFFSET 1000
-- plain:
SELECT M, COUNT(CounterID) AS PageViews
FROM (SELECT unnest(generate_series(TIMESTAMP '2013-07-01', TIMESTAMP '2013-07-31 23:59:00', INTERVAL '1 minute')) AS M) AS minutes
LEFT JOIN (
  SELECT DATE_TRUNC('minute', EventTime) AS M, CounterID FROM hits
  WHERE CounterID = 62
    AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15'
    AND IsRefresh = 0 AND DontCountHits = 0) AS views USING (M)
GROUP BY M
ORDER BY M
LIMIT 10 OFFSET 1000
