--
-- tpch_queries.sql
--	Queries of the tables of tpch_tables.sql.
--
-- A line "-- NAME (KEYS): TEXT" begins a query.  KEYS are the columns of its ORDER BY,
-- or empty.
--

-- summary (l_returnflag, l_linestatus): few groups of many rows
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price,
	sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charged,
	avg(l_discount) AS discount, count(*) AS items
FROM lineitem
WHERE l_shipdate <= date '1998-08-01'
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus;

-- order_sums (l_orderkey): a group per order, in its order
SELECT l_orderkey, sum(l_extendedprice) AS price, count(*) AS items
FROM lineitem
GROUP BY l_orderkey
ORDER BY l_orderkey;

-- part_sums (): many groups, in any order
SELECT l_partkey, l_suppkey, sum(l_quantity) AS quantity, max(l_shipdate) AS last
FROM lineitem
GROUP BY l_partkey, l_suppkey;

-- comment_groups (): groups by a text
SELECT l_comment, count(*) AS items
FROM lineitem
GROUP BY l_comment;

-- unshipped (revenue, l_orderkey): three tables, and the first ten orders
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate
FROM customer
	JOIN orders ON o_custkey = c_custkey
	JOIN lineitem ON l_orderkey = o_orderkey
WHERE c_mktsegment = 'FURNITURE' AND o_orderdate < date '1995-03-20' AND l_shipdate > date '1995-03-20'
GROUP BY l_orderkey, o_orderdate
ORDER BY revenue DESC, l_orderkey
LIMIT 10;

-- volume (nation, year): six tables
SELECT n_name AS nation, extract(year FROM o_orderdate) AS year,
	sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS profit
FROM lineitem
	JOIN orders ON o_orderkey = l_orderkey
	JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
	JOIN part ON p_partkey = l_partkey
	JOIN supplier ON s_suppkey = l_suppkey
	JOIN nation ON n_nationkey = s_nationkey
WHERE p_size < 20
GROUP BY nation, year
ORDER BY nation, year DESC;

-- order_lines (l_orderkey, l_linenumber): all lines with their orders, sorted by the key of the join
SELECT l_orderkey, l_linenumber, o_orderdate, o_custkey, l_extendedprice
FROM lineitem
	JOIN orders ON o_orderkey = l_orderkey
ORDER BY l_orderkey, l_linenumber;

-- by_date (o_orderdate, l_orderkey, l_linenumber): the same lines by date
SELECT l_orderkey, l_linenumber, o_orderdate, o_custkey, l_extendedprice
FROM lineitem
	JOIN orders ON o_orderkey = l_orderkey
ORDER BY o_orderdate, l_orderkey, l_linenumber;

-- shipped (l_shipdate, l_orderkey, l_linenumber): one table, wide rows
SELECT *
FROM lineitem
ORDER BY l_shipdate, l_orderkey, l_linenumber;

-- costly (l_extendedprice, l_orderkey, l_linenumber): by a numeric column
SELECT l_extendedprice, l_orderkey, l_linenumber
FROM lineitem
ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber;

-- top_lines (l_extendedprice, l_orderkey, l_linenumber): the first hundred
SELECT l_extendedprice, l_orderkey, l_linenumber, l_comment
FROM lineitem
ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber
LIMIT 100;

-- habits (orders, customers): an outer join, grouped twice
SELECT orders, count(*) AS customers
FROM (SELECT c_custkey, count(o_orderkey) AS orders
	  FROM customer LEFT JOIN orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%bold%requests%'
	  GROUP BY c_custkey) AS per_customer
GROUP BY orders
ORDER BY orders;

-- without_orders (n_name): an anti join
SELECT n_name, count(*) AS customers, sum(c_acctbal) AS balance
FROM customer
	JOIN nation ON n_nationkey = c_nationkey
WHERE NOT EXISTS (SELECT FROM orders WHERE o_custkey = c_custkey)
GROUP BY n_name
ORDER BY n_name;

-- late_orders (o_orderpriority): a semi join
SELECT o_orderpriority, count(*) AS orders
FROM orders
WHERE EXISTS (SELECT FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority;

-- large_orders (o_totalprice, o_orderkey): a semi join with a group
SELECT c_name, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer
	JOIN orders ON o_custkey = c_custkey
	JOIN lineitem ON l_orderkey = o_orderkey
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 240)
GROUP BY c_custkey, c_name, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderkey;

-- stock (ps_partkey, ps_suppkey): a full join by two columns
SELECT coalesce(ps_partkey, l_partkey) AS ps_partkey, coalesce(ps_suppkey, l_suppkey) AS ps_suppkey,
	ps_availqty, l_orderkey, l_linenumber
FROM partsupp
	FULL JOIN lineitem ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipmode = 'AIR'
ORDER BY 1, 2;

-- pairs (): different pairs
SELECT DISTINCT l_suppkey, l_shipdate
FROM lineitem;

-- dates (l_shipdate, l_receiptdate): different pairs, sorted
SELECT DISTINCT l_shipdate, l_receiptdate
FROM lineitem
ORDER BY l_shipdate, l_receiptdate;

-- last_order (o_custkey): the latest order of each customer
SELECT DISTINCT ON (o_custkey) o_custkey, o_orderdate, o_orderkey, o_totalprice
FROM orders
ORDER BY o_custkey, o_orderdate DESC, o_orderkey;

-- ranks (): the three best orders of each customer
SELECT o_custkey, o_orderkey, place
FROM (SELECT o_custkey, o_orderkey, rank() OVER (PARTITION BY o_custkey ORDER BY o_orderdate DESC, o_orderkey) AS place
	  FROM orders) AS ranked
WHERE place <= 3;

-- running (): running sums, and the share of the part
SELECT l_partkey, l_orderkey, l_linenumber,
	sum(l_quantity) OVER (PARTITION BY l_partkey ORDER BY l_shipdate, l_orderkey, l_linenumber) AS running,
	count(*) OVER (PARTITION BY l_suppkey) AS of_supplier
FROM lineitem;

-- variety (l_suppkey): different values in groups
SELECT l_suppkey, count(DISTINCT l_partkey) AS parts, count(DISTINCT l_shipdate) AS days
FROM lineitem
GROUP BY l_suppkey
ORDER BY l_suppkey;

-- medians (l_shipmode): an aggregate that sorts
SELECT l_shipmode, percentile_disc(0.5) WITHIN GROUP (ORDER BY l_extendedprice) AS median
FROM lineitem
GROUP BY l_shipmode
ORDER BY l_shipmode;

-- both (): a set operation
SELECT l_partkey, l_suppkey FROM lineitem WHERE l_shipmode = 'RAIL'
INTERSECT
SELECT l_partkey, l_suppkey FROM lineitem WHERE l_shipmode = 'SHIP';
