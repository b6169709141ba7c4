--
-- hits_tables.sql
--	One wide table in the manner of ClickBench: views of pages of many web sites.
--
-- Scale 1 has a million rows of 105 columns: 60 of int2, 20 of int4, 20 texts of which most are
-- empty or have few values, two of int8, and three times.  Sites, users, pages and phrases are skewed.
--

\set hits 'round(1000000 * :scale)::int8'
\set users 'round(150000 * :scale)::int8'

-- Columns that no query needs are numbered: a small number has 2 to 41 values, a whole one up to a
-- million, and a text is empty in most rows, or one of a few words.
SELECT format($$
	CREATE TABLE hits AS
		SELECT i AS id, user_id,
			-- nearly in order
			timestamptz '2024-07-01 00:00+00' + (i * 2678400.0 / %1$s + draw(i, %2$s, 600)) * interval '1 second' AS at,
			date '2024-07-01' + (i * 31 / %1$s)::int AS day,
			timestamp '2024-07-01 00:00' + draw(i, %2$s + 1, 2678400) * interval '1 second' AS sent,
			'http://' || (ARRAY['news', 'shop', 'video', 'mail', 'maps', 'forum'])[1 + site %% 6] || site || '.example/'
				|| CASE WHEN page < 20 THEN '' ELSE 'item/' || page || '?from=' || draw(page, %2$s + 2, 50) END AS url,
			CASE WHEN draw(i, %2$s + 3, 3) > 0 THEN 'https://www.' || (ARRAY['google', 'search', 'portal'])
				[1 + skewed(i, %2$s + 4, 3)] || skewed(i, %2$s + 5, 40) || '.example/q/'
				|| substr(md5(skewed(i, %2$s + 6, 100000)::text), 1, 10) ELSE '' END AS referer,
			'Page ' || substr(md5(page::text), 1, 6) || ' of site ' || site AS title,
			CASE WHEN draw(i, %2$s + 7, 8) = 0 THEN (ARRAY['cheap', 'new', 'best', 'used', 'old'])[1 + draw(phrase, 1, 5)] || ' '
				|| (ARRAY['shoes', 'cars', 'flats', 'recipes', 'films', 'jobs'])[1 + draw(phrase, 2, 6)] || ' ' || phrase
				ELSE '' END AS search_phrase,
			CASE WHEN draw(user_id, %2$s + 8, 10) = 0 THEN 'model ' || skewed(user_id, %2$s + 9, 60) ELSE '' END AS phone_model,
			site::int AS site_id, draw(user_id, %2$s + 10, 1 << 30)::int AS client_ip,
			skewed(user_id, %2$s + 11, 5000)::int AS region_id, hashint8(page + site) AS url_hash,
			CASE WHEN draw(i, %2$s + 12, 40) = 0 THEN 1 + skewed(i, %2$s + 12, 20) ELSE 0 END::int2 AS engine,
			(600 + 8 * skewed(user_id, %2$s + 13, 200))::int2 AS width,
			(draw(user_id, %2$s + 14, 100) < 20)::int::int2 AS is_mobile,
			(draw(i, %2$s + 15, 100) < 5)::int::int2 AS is_refresh,
			%3$s
		FROM (SELECT i, 1 + skewed(i, %2$s + 16, %4$s) AS user_id, skewed(i, %2$s + 17, 6000) AS site,
				skewed(i, %2$s + 18, 50000) AS page, skewed(i, %2$s + 19, 30000) AS phrase
			FROM generate_series(1, %1$s) AS i) AS r$$,
	:hits, :seed, more, :users)
FROM (SELECT string_agg(
		CASE WHEN k <= 56 THEN format('%s(i, %s, %s)::int2 AS small_%s', CASE k % 4 WHEN 0 THEN 'skewed' ELSE 'draw' END,
						:seed + k, 2 + k % 40, k)
			WHEN k <= 72 THEN format('draw(i, %s, %s)::int4 AS whole_%s', :seed + k, 10 ^ (k % 7), k - 56)
			ELSE format($$CASE draw(i, %s, %s) WHEN 0 THEN 'word ' || skewed(i, %s, 30) ELSE '' END AS text_%s$$,
						:seed + k, k - 70, :seed + 100 + k, k - 72) END, ', ' ORDER BY k) AS more
	FROM generate_series(1, 87) AS k) AS m
\gexec

ALTER TABLE hits ADD PRIMARY KEY (site_id, day, user_id, id);
VACUUM ANALYZE;
