--
-- analysts_tables.sql
--	Tables as analysts of a shop have them: events of its web site, sessions, customers, orders
--	and their lines.
--
-- Scale 1 has 3 million events and 3 million lines.  Customers and products are skewed, some columns
-- depend on each other, and there are NULLs, NaN and jsonb.
--

\set events 'round(3000000 * :scale)::int8'
\set sessions 'round(400000 * :scale)::int8'
\set customers 'round(150000 * :scale)::int8'
\set orders 'round(750000 * :scale)::int8'
\set products 'round(20000 * :scale)::int8'

CREATE FUNCTION person(i int8, salt int8) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ARRAY['Anna', 'Björn', 'Chloé', 'Dmitri', 'Élodie', 'Fatma', 'Göran', 'Hana', 'Ines', 'João', 'Kai', 'Łukasz'])
		[1 + draw(i, salt, 12)] || ' ' ||
	initcap(translate(substr(md5(i::text || salt), 1, 5 + draw(i, salt + 1, 6)::int), '0123456789', 'aeioulmnrs'));

CREATE TABLE customers AS
	SELECT i AS id, person(i, :seed) AS name,
		(ARRAY['Berlin', 'Paris', 'Lyon', 'Praha', 'Kraków', 'Malmö', 'Oslo', 'Porto', 'Graz', 'Bern'])
			[1 + skewed(i, :seed + 2, 10)] AS city,
		CASE WHEN draw(i, :seed + 3, 5) > 0 THEN (ARRAY['new', 'regular', 'gold', 'lost'])[1 + skewed(i, :seed + 3, 4)] END
			AS segment,
		CASE draw(i, :seed + 4, 50) WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN NULL ELSE draw(i, :seed + 5, 1000) / 10.0 END
			AS score,
		date '2021-01-01' + draw(i, :seed + 6, 1500)::int AS joined,
		person(i, :seed) || draw(i, :seed + 7, 1000) || '@example.com' AS email
	FROM generate_series(1, :customers) AS i;

CREATE TABLE orders AS
	SELECT i AS id, 1 + skewed(i, :seed + 10, :customers) AS customer_id,
		-- nearly in order
		timestamptz '2023-01-01 00:00+00' + i * (63072000.0 / :orders) * interval '1 second'
			+ draw(i, :seed + 11, 3600) * interval '1 second' AS created_at,
		(ARRAY['shipped', 'paid', 'open', 'returned', 'cancelled'])[1 + skewed(i, :seed + 12, 5)] AS status,
		(ARRAY['EUR', 'CZK', 'PLN', 'SEK'])[1 + skewed(i, :seed + 13, 4)]::char(3) AS currency,
		(draw(i, :seed + 14, 5000000) / 100.0)::numeric(12, 2) AS total,
		CASE WHEN draw(i, :seed + 15, 3) = 0 THEN 'please ring at ' || person(i, :seed + 16) END AS note
	FROM generate_series(1, :orders) AS i;

CREATE TABLE order_lines AS
	SELECT o AS order_id, l AS line, 1 + skewed(o * 10 + l, :seed + 20, :products) AS product_id,
		1 + skewed(o * 10 + l, :seed + 21, 12)::int AS quantity,
		(draw(o * 10 + l, :seed + 22, 100000) / 100.0)::numeric(10, 2) AS price,
		CASE WHEN draw(o * 10 + l, :seed + 23, 4) = 0 THEN (draw(o, :seed + 24, 30) / 100.0)::numeric(3, 2) END AS discount
	FROM generate_series(1, :orders) AS o, generate_series(1, 1 + draw(o, :seed + 25, 7)) AS l;

CREATE TABLE sessions AS
	SELECT i AS id, CASE WHEN draw(i, :seed + 30, 3) > 0 THEN 1 + skewed(i, :seed + 31, :customers) END AS customer_id,
		timestamptz '2024-10-01 00:00+00' + draw(i, :seed + 32, 7776000) * interval '1 second' AS started,
		(ARRAY['phone', 'desktop', 'tablet'])[1 + skewed(i, :seed + 33, 3)] AS device,
		(ARRAY['DE', 'FR', 'CZ', 'PL', 'SE', 'NO', 'PT', 'AT', 'CH'])[1 + skewed(i, :seed + 34, 9)]::char(2) AS country,
		'https://' || (ARRAY['search', 'mail', 'news', 'social'])[1 + skewed(i, :seed + 35, 4)] || '.example/'
			|| substr(md5(draw(i, :seed + 36, 5000)::text), 1, 12) AS referrer
	FROM generate_series(1, :sessions) AS i;

-- The events of a session are near each other, and its country and device are repeated.
CREATE TABLE events AS
	SELECT e.i AS id, s.id AS session_id, s.customer_id, s.country, s.device,
		s.started + draw(e.i, :seed + 40, 1800) * interval '1 second' AS at,
		(ARRAY['view', 'search', 'add', 'checkout', 'buy'])[1 + skewed(e.i, :seed + 41, 5)] AS kind,
		'/' || (ARRAY['shoes', 'books', 'toys', 'garden'])[1 + draw(e.i, :seed + 42, 4)] || '/'
			|| skewed(e.i, :seed + 43, :products) AS page,
		CASE draw(e.i, :seed + 44, 200) WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN NULL ELSE draw(e.i, :seed + 45, 100000) / 100.0 END
			AS seconds,
		jsonb_build_object('q', draw(e.i, :seed + 46, 1000), 'ab', draw(s.id, :seed + 47, 2) = 0,
						   'tag', 'tag ' || skewed(e.i, :seed + 48, 300)) AS payload
	FROM generate_series(1, :events) AS e(i) JOIN sessions AS s ON s.id = 1 + draw(e.i / 3, :seed + 49, :sessions);

ALTER TABLE customers ADD PRIMARY KEY (id);
ALTER TABLE orders ADD PRIMARY KEY (id);
ALTER TABLE sessions ADD PRIMARY KEY (id);
CREATE INDEX ON orders (customer_id);
CREATE INDEX ON events (session_id);
VACUUM ANALYZE;
