--
-- tpch_tables.sql
--	Tables of a wholesale business, with columns, sizes and distributions like
--	those of TPC-H, but with other data.
--
-- The psql variable "scale" is 1 for 1.5 million orders with 6 million items.  The same
-- scale gives the same rows.
--

\set orders 'round(1500000 * :scale)::int8'
\set customers 'round(150000 * :scale)::int8'
\set parts 'round(200000 * :scale)::int8'
\set suppliers 'round(10000 * :scale)::int8'

-- Returns a number from 0 to n - 1 for row i, evenly distributed and different for each
-- seed.
CREATE FUNCTION draw(i int8, seed int8, n int8) RETURNS int8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (hashint8extended(i, seed) & 9007199254740991) % n;

CREATE FUNCTION words(i int8, seed int8) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ARRAY['quiet', 'bold', 'late', 'regular', 'even', 'slow', 'final', 'dark'])[1 + draw(i, seed, 8)]
	|| ' ' ||
	(ARRAY['deposits', 'requests', 'packages', 'ideas', 'accounts', 'courts', 'pearls'])[1 + draw(i, seed + 1, 7)]
	|| ' ' ||
	(ARRAY['sleep', 'nag', 'haggle', 'wake', 'boost', 'detect', 'cajole', 'use', 'doze'])[1 + draw(i, seed + 2, 9)]
	|| ' ' || substr(md5(i::text || seed), 1, (draw(i, seed + 3, 20))::int);

CREATE TABLE region AS
	SELECT i::int AS r_regionkey,
		(ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])[1 + i]::char(25) AS r_name
	FROM generate_series(0, 4) AS i;
CREATE TABLE nation AS
	SELECT i::int AS n_nationkey, ('NATION ' || to_char(i, 'FM00'))::char(25) AS n_name,
		(i % 5)::int AS n_regionkey
	FROM generate_series(0, 24) AS i;
CREATE TABLE supplier AS
	SELECT i::int AS s_suppkey, ('Supplier#' || to_char(i, 'FM000000000'))::char(25) AS s_name,
		draw(i, 1, 25)::int AS s_nationkey,
		((draw(i, 2, 1100000) - 99999) / 100.0)::numeric(15, 2) AS s_acctbal,
		words(i, 10)::varchar(101) AS s_comment
	FROM generate_series(1, :suppliers) AS i;
CREATE TABLE customer AS
	SELECT i::int AS c_custkey, ('Customer#' || to_char(i, 'FM000000000'))::varchar(25) AS c_name,
		draw(i, 3, 25)::int AS c_nationkey,
		(10 + draw(i, 3, 25) || '-' || 100 + draw(i, 4, 900) || '-' || 1000 + draw(i, 5, 9000))::char(15) AS c_phone,
		((draw(i, 6, 1100000) - 99999) / 100.0)::numeric(15, 2) AS c_acctbal,
		(ARRAY['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'])[1 + draw(i, 7, 5)]::char(10) AS c_mktsegment,
		words(i, 20)::varchar(117) AS c_comment
	FROM generate_series(1, :customers) AS i;
CREATE TABLE part AS
	SELECT i::int AS p_partkey, words(i, 30)::varchar(55) AS p_name,
		('Brand#' || 1 + draw(i, 31, 5) || 1 + draw(i, 32, 5))::char(10) AS p_brand,
		((ARRAY['STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO'])[1 + draw(i, 33, 6)] || ' ' ||
		 (ARRAY['TIN', 'NICKEL', 'BRASS', 'STEEL', 'COPPER'])[1 + draw(i, 34, 5)])::varchar(25) AS p_type,
		(1 + draw(i, 35, 50))::int AS p_size,
		(900 + i / 10 % 2001 / 10.0 + i % 1000 / 10.0)::numeric(15, 2) AS p_retailprice
	FROM generate_series(1, :parts) AS i;
-- Four suppliers of each part.
CREATE TABLE partsupp AS
	SELECT i::int AS ps_partkey,
		((i + j * (:suppliers / 4 + (i - 1) / :suppliers)) % :suppliers + 1)::int AS ps_suppkey,
		draw(i * 4 + j, 40, 9999)::int AS ps_availqty,
		((100 + draw(i * 4 + j, 41, 99901)) / 100.0)::numeric(15, 2) AS ps_supplycost
	FROM generate_series(1, :parts) AS i, generate_series(0, 3) AS j;
-- The numbers of orders have gaps, and a third of the customers have no orders.
CREATE TABLE orders AS
	SELECT i * 4 - draw(i, 50, 4) AS o_orderkey,
		(1 + draw(i, 51, :customers / 3) * 3 + draw(i, 52, 2))::int AS o_custkey,
		(ARRAY['F', 'O', 'P'])[1 + draw(i, 53, 41) / 20]::char(1) AS o_orderstatus,
		((100000 + draw(i, 54, 45000000)) / 100.0)::numeric(15, 2) AS o_totalprice,
		date '1992-01-01' + draw(i, 55, 2406)::int AS o_orderdate,
		(ARRAY['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'])[1 + draw(i, 56, 5)]::char(15) AS o_orderpriority,
		('Clerk#' || to_char(1 + draw(i, 57, ceil(1000 * :scale)::int8), 'FM000000000'))::char(15) AS o_clerk,
		words(i, 60)::varchar(79) AS o_comment
	FROM generate_series(1, :orders) AS i;
CREATE TABLE lineitem AS
	SELECT o_orderkey AS l_orderkey, part AS l_partkey,
		((part + draw(i, 71, 4) * (:suppliers / 4 + (part - 1) / :suppliers)) % :suppliers + 1)::int AS l_suppkey,
		line::int AS l_linenumber, quantity::numeric(15, 2) AS l_quantity,
		(quantity * (900 + part % 1001))::numeric(15, 2) AS l_extendedprice,
		(draw(i, 73, 11) / 100.0)::numeric(15, 2) AS l_discount,
		(draw(i, 74, 9) / 100.0)::numeric(15, 2) AS l_tax,
		CASE WHEN shipped > date '1995-06-17' THEN 'N'
			WHEN draw(i, 75, 2) = 0 THEN 'R' ELSE 'A' END::char(1) AS l_returnflag,
		CASE WHEN shipped > date '1995-06-17' THEN 'O' ELSE 'F' END::char(1) AS l_linestatus,
		shipped AS l_shipdate,
		o_orderdate + 30 + draw(i, 77, 61)::int AS l_commitdate,
		shipped + 1 + draw(i, 78, 30)::int AS l_receiptdate,
		(ARRAY['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[1 + draw(i, 79, 4)]::char(25) AS l_shipinstruct,
		(ARRAY['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK'])[1 + draw(i, 80, 7)]::char(10) AS l_shipmode,
		words(i, 90)::varchar(44) AS l_comment
	FROM orders, generate_series(1, 1 + draw(o_orderkey, 70, 7)) AS line,
		LATERAL (SELECT o_orderkey * 8 + line AS i) AS id,
		LATERAL (SELECT (1 + draw(i, 72, :parts))::int AS part, 1 + draw(i, 76, 50) AS quantity,
				 o_orderdate + 1 + draw(i, 81, 121)::int AS shipped OFFSET 0) AS drawn;

ALTER TABLE region ADD PRIMARY KEY (r_regionkey);
ALTER TABLE nation ADD PRIMARY KEY (n_nationkey);
ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
ALTER TABLE part ADD PRIMARY KEY (p_partkey);
ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey);
ALTER TABLE orders ADD PRIMARY KEY (o_orderkey);
ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);
CREATE INDEX orders_custkey ON orders (o_custkey);
CREATE INDEX lineitem_part_supplier ON lineitem (l_partkey, l_suppkey);

VACUUM (FREEZE, ANALYZE) region, nation, supplier, customer, part, partsupp, orders, lineitem;
