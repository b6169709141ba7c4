--
-- hits_queries.sql
--	Questions of one wide table, in the manner of ClickBench.
--

-- engines (hits, engine): groups of the rows that have one
SELECT engine, count(*) AS hits FROM hits WHERE engine <> 0 GROUP BY engine ORDER BY hits DESC, engine;

-- different_users (): distinct numbers
SELECT count(DISTINCT user_id) AS users FROM hits;

-- different_phrases (): distinct texts, most of them empty
SELECT count(DISTINCT search_phrase) AS phrases, count(DISTINCT title) AS titles FROM hits;

-- regions (users, region_id): the ten with most users
SELECT region_id, sum(engine) AS engines, count(*) AS hits, avg(width) AS width, count(DISTINCT user_id) AS users
FROM hits GROUP BY region_id ORDER BY users DESC, region_id LIMIT 10;

-- models (users, phone_model): distinct users of a text
SELECT is_mobile, phone_model, count(DISTINCT user_id) AS users
FROM hits WHERE phone_model <> '' GROUP BY is_mobile, phone_model ORDER BY users DESC, phone_model, is_mobile LIMIT 10;

-- phrases (hits, search_phrase): the most frequent
SELECT search_phrase, count(*) AS hits FROM hits WHERE search_phrase <> ''
GROUP BY search_phrase ORDER BY hits DESC, search_phrase LIMIT 10;

-- users_of_phrases (users, engine, search_phrase): with distinct users
SELECT engine, search_phrase, count(DISTINCT user_id) AS users
FROM hits GROUP BY engine, search_phrase ORDER BY users DESC, engine, search_phrase LIMIT 10;

-- phrases_of_minutes (hits, user_id, minute, search_phrase): nearly as many groups as rows
SELECT user_id, extract(minute FROM at)::int AS minute, search_phrase, count(*) AS hits
FROM hits GROUP BY user_id, minute, search_phrase ORDER BY hits DESC, user_id, minute, search_phrase LIMIT 10;

-- searches (hits, search_phrase): texts within texts
SELECT search_phrase, min(url) AS url, min(title) AS title, count(*) AS hits, count(DISTINCT user_id) AS users
FROM hits WHERE title LIKE '%1%' AND referer LIKE '%google%' AND search_phrase <> ''
GROUP BY search_phrase ORDER BY hits DESC, search_phrase LIMIT 10;

-- newest_rows (at, id): few whole rows
SELECT * FROM hits WHERE url LIKE '%shop%' ORDER BY at DESC, id LIMIT 10;

-- phrases_in_order (search_phrase, at): the first of the alphabet
SELECT search_phrase, at FROM hits WHERE search_phrase <> '' ORDER BY search_phrase, at LIMIT 1000;

-- referers (length, site): groups of an expression of texts
SELECT regexp_replace(referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS site, avg(length(referer)) AS length, count(*) AS hits,
	min(referer) AS first
FROM hits WHERE referer <> '' GROUP BY site HAVING count(*) > 100 ORDER BY length DESC, site;

-- pages (hits, url): groups of long texts
SELECT url, count(*) AS hits FROM hits GROUP BY url ORDER BY hits DESC, url LIMIT 10;

-- addresses (hits, client_ip): groups of expressions that depend on each other
SELECT client_ip, client_ip - 1 AS one, client_ip - 2 AS two, count(*) AS hits
FROM hits GROUP BY client_ip, client_ip - 1, client_ip - 2 ORDER BY hits DESC, client_ip LIMIT 10;

-- clients (hits, id, client_ip): a group of each row
SELECT id, client_ip, count(*) AS hits, sum(is_refresh) AS refreshed, avg(width) AS width
FROM hits GROUP BY id, client_ip ORDER BY hits DESC, id, client_ip LIMIT 10;

-- pages_of_sites (views, url): a page far down of a report of some sites
SELECT * FROM (SELECT url, count(*) AS views FROM hits
	WHERE site_id < 40 AND day BETWEEN '2024-07-03' AND '2024-07-28' AND is_refresh = 0
	GROUP BY url ORDER BY views DESC, url LIMIT 10 OFFSET 1000) AS p ORDER BY views DESC, url;

-- minutes (minute): views by time
SELECT date_trunc('minute', at) AS minute, count(*) AS views, count(DISTINCT client_ip) AS clients
FROM hits WHERE day BETWEEN '2024-07-10' AND '2024-07-20' GROUP BY minute ORDER BY minute;

-- small_numbers (hits, small_7, small_8, whole_3): groups of small numbers
SELECT small_7, small_8, whole_3, count(*) AS hits, max(width) AS width
FROM hits GROUP BY small_7, small_8, whole_3 ORDER BY hits DESC, small_7, small_8, whole_3;

-- rows_by_time (sent, id): all columns by a timestamp
SELECT * FROM hits ORDER BY sent, id;

-- rows_by_user (user_id, id): all columns by a number
SELECT * FROM hits ORDER BY user_id, id;

-- rows_by_page (url, id): all columns by a text
SELECT * FROM hits ORDER BY url, id;

-- visits_of_users (user_id, visit): the order of the views of each user
SELECT user_id, id, url, row_number() OVER (PARTITION BY user_id ORDER BY sent, id) AS visit FROM hits ORDER BY user_id, visit;
