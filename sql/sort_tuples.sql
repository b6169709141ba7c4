--
-- ORDER BY: rows that are kept as whole tuples
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET work_mem = '64MB';
-- a suite may have set this
SET pg_gpusort.debug_whole_tuples = auto;
CREATE TABLE wide_rows AS
	SELECT g::int8 AS id, hashint8(g)::int8 AS k, g % 7 AS a, nullif(g % 5, 0) AS b, -g AS c,
		   g / 7.0::float8 AS f, '2020-01-01'::timestamptz + make_interval(mins => g) AS ts,
		   (g % 1000)::numeric(12,2) AS n, g % 2 = 0 AS flag, '2020-01-01'::date + g % 100 AS d,
		   md5(g::text) AS t1, repeat('x', g % 30) AS t2, CASE WHEN g % 3 > 0 THEN g::text END AS t3,
		   'const' AS t4, left(md5((-g)::text), g % 9) AS t5
	FROM generate_series(1, 3000) g;
CREATE TABLE narrow_rows AS SELECT id, k FROM wide_rows;
ANALYZE wide_rows, narrow_rows;

-- Which rows are kept as tuples?  They take another amount of memory than packed rows.
CREATE FUNCTION memory_of(query text, whole_tuples text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.backend = cpu
AS $$
DECLARE
	line text;
BEGIN
	PERFORM set_config('pg_gpusort.debug_whole_tuples', whole_tuples, true);
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '  Memory: ' THEN
			RETURN substring(line, '\d+kB');
		END IF;
	END LOOP;
END $$;
CREATE FUNCTION kept_as(query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN tuples = packed THEN 'cannot tell' WHEN auto = tuples THEN 'tuples' WHEN auto = packed THEN 'packed' END
	FROM memory_of(query, 'on') tuples, memory_of(query, 'off') packed, memory_of(query, 'auto') auto
$$;
SELECT kept_as('SELECT * FROM wide_rows ORDER BY k');
SELECT kept_as('SELECT * FROM wide_rows WHERE a < 6 ORDER BY k');
-- few columns
SELECT kept_as('SELECT * FROM narrow_rows ORDER BY k');
SELECT kept_as('SELECT id, k, t1 FROM wide_rows ORDER BY k');
-- not tuples of a table: they would have to be made
SELECT kept_as('SELECT id + 1, k, a, b, c, f, ts, n, flag, d, t1, t2, t3, t4, t5 FROM wide_rows ORDER BY k');

-- the suite's own choice again
RESET pg_gpusort.debug_whole_tuples;
SELECT check_sort('SELECT * FROM wide_rows ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM wide_rows ORDER BY b DESC, t3 COLLATE "C", n', 'b, t3, n');
SELECT check_sort('SELECT *, wide_rows AS r FROM wide_rows ORDER BY t5 COLLATE "C" NULLS FIRST, id', 't5, id');
SELECT result, count(*) FROM pg_attribute,
	LATERAL check_sort(format('SELECT * FROM wide_rows ORDER BY %I DESC, id', attname), attname || ', id', 'node') result
WHERE attrelid = 'wide_rows'::regclass AND attnum > 1 AND attname !~ '^t' GROUP BY result;
-- columns of the sorted rows, and none
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
SELECT max(t5) AS t5, count(b), count(*) FROM (SELECT * FROM wide_rows ORDER BY k OFFSET 10) s;
SELECT count(*) FROM (SELECT * FROM wide_rows ORDER BY k OFFSET 0) s;
RESET pg_gpusort.debug_require;
RESET pg_gpusort.min_rows;
-- on disk: files and memory within the limit
SET pg_gpusort.work_mem = '64kB';
SELECT check_sort('SELECT * FROM wide_rows ORDER BY k', 'k', 'off');
SELECT check_sort('SELECT * FROM wide_rows ORDER BY flag, b NULLS FIRST, t2 COLLATE "C"', 'flag, b, t2', 'off');
RESET pg_gpusort.work_mem;

-- NULL in each column, and in all
CREATE TABLE null_rows (LIKE wide_rows);
INSERT INTO null_rows (k) SELECT g % 10 FROM generate_series(1, 100) g;
INSERT INTO null_rows SELECT * FROM wide_rows LIMIT 100;
INSERT INTO null_rows (t5) SELECT NULL FROM generate_series(1, 100);
INSERT INTO null_rows (a, t5) SELECT g, '' FROM generate_series(1, 100) g;
SELECT check_sort('SELECT * FROM null_rows ORDER BY k, a', 'k, a');
SELECT check_sort('SELECT * FROM null_rows ORDER BY t5 COLLATE "C" DESC, b', 't5, b');

-- columns that were added and dropped; some tuples have fewer than the table
ALTER TABLE null_rows ADD COLUMN late1 int, ADD COLUMN late2 text;
SELECT check_sort('SELECT * FROM null_rows ORDER BY late1, k, a', 'late1, k, a');
INSERT INTO null_rows (k, late1, late2) SELECT g, -g, 'late' || g FROM generate_series(1, 50) g;
SELECT check_sort('SELECT * FROM null_rows ORDER BY late1, late2 COLLATE "C", k', 'late1, late2, k');
ALTER TABLE null_rows ADD COLUMN late3 int8 DEFAULT 77;
SELECT check_sort('SELECT * FROM null_rows ORDER BY late3, k', 'late3, k');
ALTER TABLE null_rows DROP COLUMN a, DROP COLUMN late1;
SELECT check_sort('SELECT * FROM null_rows ORDER BY late3, k, late2 COLLATE "C"', 'late3, k, late2');

-- from several tables, in which the columns have other places
CREATE TABLE tuple_parts (LIKE wide_rows) PARTITION BY LIST (a);
CREATE TABLE tuple_part0 PARTITION OF tuple_parts FOR VALUES IN (0, 1, 2);
CREATE TABLE tuple_part1 (t5 text, gone int, id int8, k int8, a int, b int, c int, f float8, ts timestamptz, n numeric, flag bool, d date, t1 text, t2 text, t3 text, t4 text);
ALTER TABLE tuple_part1 DROP COLUMN gone;
ALTER TABLE tuple_part1 ALTER n TYPE numeric(12,2);
ALTER TABLE tuple_parts ATTACH PARTITION tuple_part1 DEFAULT;
INSERT INTO tuple_parts SELECT * FROM wide_rows;
ANALYZE tuple_parts;
SELECT check_sort('SELECT * FROM tuple_parts ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM wide_rows UNION ALL SELECT * FROM wide_rows ORDER BY k, id DESC', 'k, id');
-- the inner rows of a join, marked and restored
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT check_sort('SELECT l.id AS i, r.* FROM wide_rows l JOIN wide_rows r ON l.d = r.d AND l.a = r.a WHERE l.id < 200 ORDER BY l.id, r.id', 'i, id', 'node');
RESET enable_hashjoin;
RESET enable_nestloop;

-- values outside of the row, and ones that are longer than everything else
CREATE TABLE long_rows (id int, k int, a int, b int, external text, compressed text, plain text);
ALTER TABLE long_rows ALTER external SET STORAGE EXTERNAL, ALTER plain SET STORAGE PLAIN;
INSERT INTO long_rows
	SELECT g, g * 17 % 101, 1, NULL, repeat(md5(g::text), 100 * (g % 7)), repeat(md5(g::text), 100 * (g % 9)), repeat('p', g % 90 * 80)
	FROM generate_series(1, 300) g;
SELECT check_sort('SELECT * FROM long_rows ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM long_rows ORDER BY external COLLATE "C", plain COLLATE "C" DESC, id', 'external, plain, id');
SELECT check_sort('SELECT *, repeat(plain, 100) AS longest FROM long_rows WHERE id <= 60 ORDER BY k', 'k');

-- a cursor moves in both directions over rows as they are
BEGIN;
SET LOCAL pg_gpusort.min_rows = 0;
SET LOCAL pg_gpusort.debug_require = cpu;
DECLARE c SCROLL CURSOR FOR SELECT * FROM wide_rows ORDER BY id DESC;
FETCH 2 FROM c;
MOVE FORWARD 2996 FROM c;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE -1500 FROM c;
COMMIT;

-- as many columns as a table and as a query can have
DO $$
BEGIN
	EXECUTE 'CREATE TABLE most_columns AS SELECT g * 7919 % 101 AS k, ' ||
		(SELECT string_agg(format('nullif(g %% %s, 1)::int2 AS c%s', 1 + c % 11, c), ', ') FROM generate_series(1, 1599) c) ||
		' FROM generate_series(1, 150) g';
END $$;
SELECT check_sort('SELECT * FROM most_columns ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM most_columns ORDER BY c1599, k DESC, c7', 'c1599, k, c7');
SELECT check_sort(format('SELECT *, %s FROM most_columns ORDER BY k, c3', string_agg('k AS x' || c, ', ')), 'k, c3') FROM generate_series(1, 60) c;

DROP FUNCTION kept_as, memory_of;
DROP TABLE wide_rows, narrow_rows, null_rows, tuple_parts, long_rows, most_columns;
