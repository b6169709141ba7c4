--
-- large_tables.sql
--	Tables of queries that take long to plan: a table of 1000 partitions, one of many columns, and
--	twelve to be joined.  They are planned as if they had a hundred times as many rows;
--	"scale" does not matter to them.
--

CREATE TABLE parts (id int8, part int4, kind int4, note text) PARTITION BY LIST (part);
SELECT format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%s)', i, i) FROM generate_series(1, 1000) AS i
\gexec
INSERT INTO parts
	SELECT i, 1 + i % 1000, draw(i, :seed, 20), 'note ' || draw(i, :seed + 1, 5000) FROM generate_series(1, 100000) AS i;

SELECT format('CREATE TABLE wide AS SELECT i AS id, %s FROM generate_series(1, 50000) AS i',
	(SELECT string_agg(format('draw(i, %s, %s)::int4 AS c%s', :seed + k, 10 + k, k), ', ' ORDER BY k) FROM generate_series(1, 200) AS k))
\gexec

SELECT format('CREATE TABLE link_%1$s AS SELECT i AS id, draw(i, %1$s, 2000) AS one, draw(i, %1$s + 20, 1000) AS two
	FROM generate_series(1, 20000 + %1$s * 1000) AS i', k) FROM generate_series(1, 12) AS k
\gexec
SELECT format('ALTER TABLE link_%s ADD PRIMARY KEY (id)', k) FROM generate_series(1, 12) AS k
\gexec
VACUUM ANALYZE;

-- so that all paths are considered which tables of a hundred times as many rows would have
SET allow_system_table_mods = on;
UPDATE pg_class SET reltuples = 100 * reltuples WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace;
