--
-- analysts_queries.sql
--	What analysts ask of the tables of analysts_tables.sql.
--
-- In this and the other files of queries, a line "-- NAME (KEYS): TEXT" begins one.  KEYS are the
-- columns of its ORDER BY, or empty.  The result must not depend on the order of ties: sums are of
-- whole numbers or numeric, or of fractions that float8 adds exactly.
--

-- funnel (day): how many sessions reach each step, by day
SELECT date_trunc('day', started) AS day, count(*) AS sessions, sum(searched) AS searched, sum(added) AS added, sum(bought) AS bought
FROM (SELECT session_id, min(at) AS started, max((kind = 'search')::int) AS searched,
		max((kind = 'add')::int) AS added, max((kind = 'buy')::int) AS bought
	FROM events GROUP BY session_id) AS s
GROUP BY day ORDER BY day;

-- sessions_of_events (visits): new visits after half an hour without an event
SELECT visits, count(*) AS customers
FROM (SELECT customer_id, sum(begins) AS visits
	FROM (SELECT customer_id, (at - lag(at) OVER (PARTITION BY customer_id ORDER BY at) > interval '30 minutes')::int AS begins
		FROM events WHERE customer_id IS NOT NULL) AS gaps
	GROUP BY customer_id) AS v
GROUP BY visits ORDER BY visits;

-- top_products (product_id, place): the three best lines of each product
SELECT product_id, place, order_id, line, amount
FROM (SELECT product_id, order_id, line, price * quantity AS amount,
		row_number() OVER (PARTITION BY product_id ORDER BY price * quantity DESC, order_id, line) AS place
	FROM order_lines) AS r
WHERE place <= 3 ORDER BY product_id, place;

-- last_order (): the last order of each customer
SELECT DISTINCT ON (customer_id) customer_id, id, created_at, total
FROM orders ORDER BY customer_id, created_at DESC, id;

-- retention (cohort, month): customers by the month in which they come back
SELECT cohort, month, count(DISTINCT customer_id) AS customers
FROM (SELECT customer_id, date_trunc('month', created_at) AS month,
		min(date_trunc('month', created_at)) OVER (PARTITION BY customer_id) AS cohort
	FROM orders) AS o
GROUP BY cohort, month ORDER BY cohort, month;

-- duplicates (email): customers with the same address but for case
SELECT lower(email) AS email, count(*) AS customers, min(id) AS first
FROM customers GROUP BY lower(email) HAVING count(*) > 1 ORDER BY lower(email);

-- newest_of_duplicates (): one event of each page and session
SELECT session_id, page, id
FROM (SELECT session_id, page, id, row_number() OVER (PARTITION BY session_id, page ORDER BY at DESC, id) AS place FROM events) AS r
WHERE place = 1;

-- rollup (country, device, kind): totals of all levels
SELECT country, device, kind, count(*) AS events, count(DISTINCT session_id) AS sessions
FROM events GROUP BY ROLLUP (country, device, kind) ORDER BY country, device, kind;

-- rollup_of_join (city, status): likewise, of a join
SELECT city, status, count(*) AS orders, sum(total) AS total
FROM orders JOIN customers ON customers.id = customer_id
GROUP BY ROLLUP (city, status) ORDER BY city, status;

-- visitors (day): different customers by day
SELECT date_trunc('day', at) AS day, count(DISTINCT customer_id) AS customers, count(DISTINCT session_id) AS sessions
FROM events GROUP BY day ORDER BY day;

-- visitors_by_hour (hour, kind): likewise, in many groups
SELECT date_trunc('hour', at) AS hour, kind, count(DISTINCT session_id) AS sessions
FROM events GROUP BY hour, kind ORDER BY hour, kind;

-- all_pages (): how many pages there are
SELECT count(DISTINCT page) AS pages, count(DISTINCT payload ->> 'tag') AS tags FROM events;

-- percentiles (kind): medians and tails
SELECT kind, percentile_disc(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY seconds) AS seconds
FROM events GROUP BY kind ORDER BY kind;

-- basket (status): medians of orders
SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY total) AS median, mode() WITHIN GROUP (ORDER BY currency) AS currency
FROM orders GROUP BY status ORDER BY status;

-- running_total (customer_id, created_at, id): what each customer has spent so far
SELECT customer_id, created_at, id, sum(total) OVER (PARTITION BY customer_id ORDER BY created_at, id) AS so_far
FROM orders ORDER BY customer_id, created_at, id;

-- moving_average (day): seven days
SELECT day, sum(orders) OVER (ORDER BY day ROWS 6 PRECEDING) AS orders, sum(total) OVER (ORDER BY day ROWS 6 PRECEDING) AS total
FROM (SELECT date_trunc('day', created_at) AS day, count(*) AS orders, sum(total) AS total FROM orders GROUP BY day) AS d
ORDER BY day;

-- gaps (gap, id): the longest times between orders of a customer
SELECT id, created_at - before AS gap
FROM (SELECT id, created_at, lag(created_at) OVER (PARTITION BY customer_id ORDER BY created_at, id) AS before FROM orders) AS o
WHERE before IS NOT NULL ORDER BY gap DESC, id LIMIT 1000;

-- shares (country, sessions, page): pages by their part of a country
SELECT country, page, sessions, rank() OVER (PARTITION BY country ORDER BY sessions DESC) AS place,
	sessions * 100 / sum(sessions) OVER (PARTITION BY country) AS percent
FROM (SELECT country, page, count(DISTINCT session_id) AS sessions FROM events GROUP BY country, page) AS p
ORDER BY country, sessions DESC, page;

-- deciles (decile): customers by what they spend
SELECT decile, count(*) AS customers, min(spent) AS least, max(spent) AS most
FROM (SELECT customer_id, sum(total) AS spent, ntile(10) OVER (ORDER BY sum(total), customer_id) AS decile
	FROM orders GROUP BY customer_id) AS s
GROUP BY decile ORDER BY decile;

-- export_events (at, id): all columns in the order of time
SELECT * FROM events ORDER BY at, id;

-- export_customers (name, id): by name
SELECT * FROM customers ORDER BY name, id;

-- export_orders (city, name, created_at, id): a join by text and time
SELECT city, name, created_at, orders.id, total, status
FROM orders JOIN customers ON customers.id = customer_id ORDER BY city, name, created_at, orders.id;

-- page_of_events (seconds, id): the slowest thousand
SELECT id, page, seconds FROM events ORDER BY seconds DESC NULLS LAST, id LIMIT 1000;

-- deep_page (at, id): a page far behind
SELECT * FROM (SELECT id, at, page FROM events ORDER BY at DESC, id LIMIT 100 OFFSET 200000) AS p ORDER BY at DESC, id;

-- by_expression (quotient, id): ordered by a field of a document
SELECT id, (payload ->> 'q')::int AS quotient FROM events ORDER BY (payload ->> 'q')::int, id;

-- by_document (): groups of documents
SELECT payload, count(*) AS events FROM events GROUP BY payload;

-- tags (events, tag): groups of a field
SELECT payload ->> 'tag' AS tag, count(*) AS events, count(DISTINCT customer_id) AS customers
FROM events GROUP BY tag ORDER BY events DESC, tag;

-- order_sums (order_id): a group of each order
SELECT order_id, sum(quantity * price * (1 - coalesce(discount, 0))) AS total, count(*) AS lines
FROM order_lines GROUP BY order_id ORDER BY order_id;

-- bought_together (order_id): pairs of lines of an order
SELECT a.order_id, count(*) AS pairs, sum(a.price * b.quantity) AS total
FROM order_lines AS a JOIN order_lines AS b USING (order_id) GROUP BY a.order_id ORDER BY a.order_id;

-- large_orders (total, id): orders of more than six lines
SELECT o.id, c.name, o.total
FROM orders AS o JOIN customers AS c ON c.id = o.customer_id
WHERE o.id IN (SELECT order_id FROM order_lines GROUP BY order_id HAVING count(*) > 6)
ORDER BY o.total DESC, o.id LIMIT 100;

-- without_orders (id): customers who have bought nothing
SELECT id, name FROM customers AS c WHERE NOT EXISTS (SELECT FROM orders WHERE customer_id = c.id) ORDER BY id;

-- both_ways (): visitors who buy
SELECT customer_id FROM events WHERE customer_id IS NOT NULL INTERSECT SELECT customer_id FROM orders;

-- all_names (name): a union
SELECT city AS name FROM customers UNION SELECT page FROM events UNION SELECT status FROM orders ORDER BY name;

-- distinct_rows (): what a session has looked at
SELECT DISTINCT session_id, kind, page FROM events;

-- distinct_texts (referrer): where sessions come from
SELECT DISTINCT referrer FROM sessions ORDER BY referrer;

-- first_and_last (session_id): the first and the last page of each session
SELECT DISTINCT session_id, first_value(page) OVER w AS first, last_value(page) OVER w AS last
FROM events WINDOW w AS (PARTITION BY session_id ORDER BY at, id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
ORDER BY session_id;

-- paths (customers, path): what customers do in a session
SELECT path, count(*) AS customers
FROM (SELECT session_id, string_agg(kind, ' > ' ORDER BY at, id) AS path FROM events GROUP BY session_id) AS p
GROUP BY path ORDER BY customers DESC, path LIMIT 100;

-- orders_by_country (country, month): a chain of joins
SELECT s.country, date_trunc('month', o.created_at) AS month, count(*) AS orders, count(DISTINCT o.customer_id) AS customers
FROM sessions AS s JOIN orders AS o ON o.customer_id = s.customer_id
WHERE s.device = 'tablet' AND o.status = 'open'
GROUP BY s.country, month ORDER BY s.country, month;

-- score_groups (score): groups with NaN and NULL
SELECT score, count(*) AS customers FROM customers GROUP BY score ORDER BY score;

-- neighbours (id): customers next to each other by name
SELECT id, lag(id) OVER (ORDER BY name, id) AS before, lead(id) OVER (ORDER BY name, id) AS behind FROM customers ORDER BY id;
