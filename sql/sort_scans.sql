--
-- ORDER BY over sequential scans: tables and tuples of all forms
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET work_mem = '64MB';
SET max_parallel_workers_per_gather = 0;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
-- columns that were added later, with and without a default
CREATE TABLE grown AS
	SELECT g * 7919 % 1009 AS k, g::int2 AS i2, g % 2 = 0 AS b, repeat('x', g % 9) AS t
	FROM generate_series(1, 700) g;
ALTER TABLE grown ADD fixed int8 DEFAULT 42, ADD name name DEFAULT 'a name', ADD nothing int4,
	ADD text text DEFAULT 'a text';
SELECT check_sort('SELECT * FROM grown ORDER BY k, i2', 'k, i2');
INSERT INTO grown SELECT g % 100, g, NULL, NULL, g, 'another', g, md5(g::text) FROM generate_series(701, 1300) g;
ALTER TABLE grown ADD last timestamptz DEFAULT '2026-01-02 03:04:05+00';
INSERT INTO grown SELECT g % 100, g FROM generate_series(1301, 1400) g;
SELECT check_sort('SELECT * FROM grown ORDER BY k, i2', 'k, i2');
SELECT check_sort('SELECT fixed, i2 FROM grown ORDER BY fixed, i2', 'fixed, i2');
SELECT check_sort('SELECT last, i2 FROM grown ORDER BY last DESC, i2', 'last, i2');
SELECT check_sort('SELECT nothing, text, i2 FROM grown ORDER BY nothing NULLS FIRST, i2 DESC', 'nothing, i2');
SELECT fixed, name, nothing, text, last AT TIME ZONE 'UTC' AS last FROM grown WHERE i2 IN (1, 1000, 1400) ORDER BY i2;
-- dropped ones, at the start, in between and at the end
ALTER TABLE grown DROP k;
SELECT check_sort('SELECT * FROM grown ORDER BY i2', 'i2');
ALTER TABLE grown DROP b, DROP text;
INSERT INTO grown (i2, fixed) SELECT g, -g FROM generate_series(1401, 1500) g;
ALTER TABLE grown ADD again int4 DEFAULT 5;
SELECT check_sort('SELECT * FROM grown ORDER BY fixed, i2', 'fixed, i2');
SELECT check_sort('SELECT again, i2 FROM grown ORDER BY i2', 'i2');
ALTER TABLE grown DROP last;
SELECT check_sort('SELECT * FROM grown ORDER BY i2 DESC', 'i2');
-- NULLs in front of columns of fixed length, alone and between
CREATE TABLE holes (a int4, b int8, c "char", d float8, e int2, f uuid, t text, g int4, h bool, id int4);
INSERT INTO holes
	SELECT CASE WHEN n & 1 = 0 THEN n END, CASE WHEN n & 2 = 0 THEN -n END, CASE WHEN n & 4 = 0 THEN 'c' END,
		   CASE WHEN n & 8 = 0 THEN n / 3.0 END, CASE WHEN n & 16 = 0 THEN n END,
		   CASE WHEN n & 32 = 0 THEN md5(n::text)::uuid END, CASE WHEN n & 64 = 0 THEN repeat('t', n % 7) END,
		   CASE WHEN n & 128 = 0 THEN n % 10 END, CASE WHEN n & 256 = 0 THEN n % 3 = 0 END, n
	FROM generate_series(0, 1023) n;
SELECT check_sort('SELECT * FROM holes ORDER BY id', 'id');
SELECT result, string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute,
	LATERAL check_sort(format('SELECT %I AS v, id FROM holes ORDER BY id', attname), 'id') result
WHERE attrelid = 'holes'::regclass AND attnum > 0 GROUP BY result;
SELECT result, string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute,
	LATERAL check_sort(format('SELECT id, g, %I AS v, a, t FROM holes ORDER BY g, id', attname), 'g, id') result
WHERE attrelid = 'holes'::regclass AND attnum > 0 GROUP BY result;
SELECT check_sort('SELECT h, g, f, e, d, c, b, a, id FROM holes ORDER BY d, id', 'd, id');
SELECT check_sort('SELECT id, id AS again, d, d AS d_again FROM holes ORDER BY id DESC', 'id');
-- columns of fixed length behind one of variable length, most of which a query does not want
CREATE TABLE behind AS
	SELECT repeat('t', n % 7) AS t, n::int2 AS a, n * 5 AS b, chr(97 + n % 26)::"char" AS c, n % 3 = 0 AS d,
		   -n::int8 AS e, (n * 7)::int2 AS f, md5(n::text)::uuid AS g, n / 3.0::float4 AS h, chr(97 + n % 9)::name AS i,
		   (n * 3)::int2 AS j, repeat('u', n % 5) AS k, n * 11 AS l, n % 5 = 0 AS m, n AS id
	FROM generate_series(1, 600) n;
SELECT result, string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute,
	LATERAL check_sort(format('SELECT %I AS v, id FROM behind ORDER BY id DESC', attname), 'id') result
WHERE attrelid = 'behind'::regclass AND attnum > 0 GROUP BY result;
SELECT result, count(*) FROM pg_attribute p, pg_attribute q,
	LATERAL check_sort(format('SELECT %I AS v, %I AS w FROM behind ORDER BY w', p.attname, q.attname), 'w') result
WHERE p.attrelid = 'behind'::regclass AND p.attnum > 0 AND q.attrelid = p.attrelid AND q.attnum > 0 GROUP BY result;
-- rows of NULLs alone
SELECT check_sort('SELECT * FROM (SELECT a, b, c FROM holes WHERE id & 7 = 7 OFFSET 0) s ORDER BY a', 'a');
CREATE TABLE nulls AS SELECT NULL::int4 AS a, NULL::text AS b FROM generate_series(1, 300);
SELECT check_sort('SELECT * FROM nulls ORDER BY a', 'a');
-- system columns, whole rows, expressions
SELECT check_sort('SELECT ctid, tableoid, xmin, id FROM holes ORDER BY id', 'id');
SELECT check_sort('SELECT holes, id FROM holes ORDER BY id', 'id');
SELECT check_sort('SELECT a + id AS s, id FROM holes ORDER BY 1, 2', 's, id');
-- many columns
DO $$
DECLARE
	columns text;
	row_values text;
BEGIN
	SELECT string_agg(format('c%s %s', n, ('{int8,int2,text,bool,int4}'::text[])[n % 5 + 1]), ', ' ORDER BY n),
		   string_agg(format(('{(g * %s)::int8,(g + %s)::int2,CASE WHEN g %% 5 = 0 THEN chr(97 + (g * %s) %% 26) END,(g * %s) %% 3 = 0,CASE WHEN g %% 3 = 0 THEN g * %s END}'::text[])[n % 5 + 1], n), ', ' ORDER BY n)
	INTO columns, row_values FROM generate_series(1, 1000) n;
	EXECUTE format('CREATE TABLE wide (%s)', columns);
	EXECUTE format('INSERT INTO wide SELECT %s FROM generate_series(1, 60) g', row_values);
END $$;
SELECT check_sort('SELECT * FROM wide ORDER BY c4, c5', 'c4, c5');
SELECT check_sort('SELECT c1000, c997, c1 FROM wide ORDER BY c1', 'c1');
-- values out of line and compressed
CREATE TABLE toasted (k int4, a text, b text, c bytea, id int4);
ALTER TABLE toasted ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE MAIN;
INSERT INTO toasted
	SELECT CASE WHEN g % 5 > 0 THEN g * 31 % 17 END, repeat(md5(g::text), g * 3), repeat('b', g * 100),
		   decode(repeat(md5(g::text), 200), 'hex'), g
	FROM generate_series(1, 120) g;
SELECT check_sort('SELECT * FROM toasted ORDER BY k, id', 'k, id');
SELECT check_sort('SELECT id, a, k FROM toasted ORDER BY k DESC, id', 'k, id');
UPDATE toasted SET k = -k WHERE id % 3 = 0;
SELECT check_sort('SELECT * FROM toasted ORDER BY k, id', 'k, id');
-- updated, deleted, pruned, vacuumed
CREATE TABLE changed WITH (fillfactor = 60, autovacuum_enabled = off) AS
	SELECT g AS id, g * 7919 % 1009 AS k, g % 10 AS v, repeat('u', g % 30) AS t FROM generate_series(1, 3000) g;
ALTER TABLE changed ADD PRIMARY KEY (id);
UPDATE changed SET v = v + 1 WHERE id % 3 = 0;
UPDATE changed SET v = v + 1, t = NULL WHERE id % 6 = 0;
DELETE FROM changed WHERE id % 7 = 0 OR id BETWEEN 1000 AND 1400;
SELECT check_sort('SELECT * FROM changed ORDER BY k, id', 'k, id');
UPDATE changed SET v = v + 1 WHERE id % 3 = 0;
SELECT check_sort('SELECT v, id FROM changed ORDER BY v, id', 'v, id');
VACUUM changed;
SELECT check_sort('SELECT * FROM changed ORDER BY k, id', 'k, id');
INSERT INTO changed SELECT g, g % 1009, 1, 'new' FROM generate_series(3001, 3500) g;
UPDATE changed SET id = id + 10000 WHERE id % 11 = 0;
SELECT check_sort('SELECT * FROM changed ORDER BY k DESC, id', 'k, id');
-- all rows dead, and then a page of them behind others
DELETE FROM changed WHERE id BETWEEN 3001 AND 3500;
SELECT check_sort('SELECT id, k FROM changed ORDER BY k, id', 'k, id');
-- own changes, also those of the same command, and of a subtransaction that ended
BEGIN;
INSERT INTO changed SELECT g, g % 7, 0, 'own' FROM generate_series(5001, 5300) g;
UPDATE changed SET k = -k WHERE id % 4 = 0;
SAVEPOINT s;
DELETE FROM changed WHERE id % 2 = 0;
SELECT check_sort('SELECT * FROM changed ORDER BY k, id', 'k, id');
ROLLBACK TO s;
SELECT check_sort('SELECT * FROM changed ORDER BY k, id', 'k, id');
SET LOCAL pg_gpusort.min_rows = 0;
SET LOCAL pg_gpusort.debug_require = cpu;
SELECT count(*) AS before FROM changed;
INSERT INTO changed SELECT id + 50000, k, v, t FROM changed ORDER BY k, id;
SELECT count(*) AS after FROM changed;
DECLARE c CURSOR FOR SELECT id, k FROM changed ORDER BY k, id;
DELETE FROM changed;
FETCH 2 FROM c;
MOVE ALL IN c;
SELECT count(*) AS deleted FROM (SELECT id FROM changed ORDER BY id OFFSET 0) s;
ROLLBACK;
SELECT check_sort('SELECT * FROM changed ORDER BY k, id', 'k, id');
-- isolation levels
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT check_sort('SELECT * FROM changed ORDER BY k, id', 'k, id');
SELECT locktype, mode FROM pg_locks WHERE relation = 'changed'::regclass AND mode = 'SIReadLock';
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SELECT error_of('CREATE TEMP TABLE t (i int)');
SELECT count(*), sum(k) FROM (SELECT id, k FROM changed ORDER BY k OFFSET 0) s;
COMMIT;
-- the lock that a serializable sort by itself takes
BEGIN ISOLATION LEVEL SERIALIZABLE;
SET LOCAL pg_gpusort.min_rows = 0;
SET LOCAL pg_gpusort.debug_require = cpu;
SELECT count(*) FROM (SELECT id, k FROM changed ORDER BY k OFFSET 0) s;
SELECT locktype, mode FROM pg_locks WHERE relation = 'changed'::regclass AND mode = 'SIReadLock';
COMMIT;
-- temporary and unlogged tables, no rows, no columns
CREATE TEMP TABLE temporary AS SELECT * FROM changed;
SELECT check_sort('SELECT * FROM temporary ORDER BY k, id', 'k, id');
CREATE UNLOGGED TABLE unlogged AS SELECT k, id FROM changed;
SELECT check_sort('SELECT * FROM unlogged ORDER BY k, id', 'k, id');
TRUNCATE unlogged;
SELECT check_sort('SELECT * FROM unlogged ORDER BY k, id', 'k, id');
CREATE TABLE no_rows (a int, b text);
SELECT check_sort('SELECT * FROM no_rows ORDER BY a', 'a');
CREATE TABLE no_columns ();
INSERT INTO no_columns SELECT FROM generate_series(1, 5);
SELECT check_sort('SELECT count(*) OVER () AS n FROM no_columns ORDER BY n', 'n', 'node');
SELECT check_sort('SELECT generate_series(1, 3) AS n FROM no_columns ORDER BY n', 'n');
-- tables below others
CREATE TABLE parent (k int, t text, id int);
CREATE TABLE child (extra int8 DEFAULT 7) INHERITS (parent);
INSERT INTO parent SELECT g % 19, repeat('p', g % 5), g FROM generate_series(1, 300) g;
INSERT INTO child SELECT g % 23, repeat('c', g % 5), g FROM generate_series(301, 600) g;
SELECT check_sort('SELECT * FROM parent ORDER BY k, id', 'k, id');
SELECT check_sort('SELECT * FROM ONLY parent ORDER BY k, id', 'k, id');
SELECT check_sort('SELECT * FROM child ORDER BY k, id', 'k, id');
-- rescans: of rows in memory, of rows that were handed to a tuplesort, with parameters
SET enable_material = off;
SET enable_memoize = off;
SELECT check_sort('SELECT g, s.id, s.k FROM generate_series(1, 3) g, LATERAL (SELECT id, k FROM changed ORDER BY k, id OFFSET 0) s ORDER BY g, s.k, s.id', 'g, k, id');
SET pg_gpusort.work_mem = '64kB';
SELECT check_sort('SELECT g, s.id, s.k FROM generate_series(1, 3) g, LATERAL (SELECT id, k FROM changed ORDER BY k, id OFFSET 0) s ORDER BY g, s.k, s.id', 'g, k, id', 'node');
RESET pg_gpusort.work_mem;
SELECT check_sort('SELECT g, s.id, s.x FROM generate_series(1, 3) g, LATERAL (SELECT id, k % (g + 3) AS x FROM changed ORDER BY x, id OFFSET 0) s ORDER BY g, s.x, s.id', 'g, x, id');
SELECT check_sort('SELECT g, s.id, s.k FROM generate_series(1, 3) g, LATERAL (SELECT id, k FROM changed WHERE id % g = 0 ORDER BY k, id OFFSET 0) s ORDER BY g, s.k, s.id', 'g, k, id');
-- what EXPLAIN ANALYZE credits the scan with
SET pg_gpusort.min_rows = 0;
SELECT * FROM explain_lines('SELECT k, id FROM child ORDER BY k', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF') line
WHERE line !~ '(Sort Method|GPU Not Used)';
RESET pg_gpusort.min_rows;
DROP TABLE grown, holes, nulls, wide, toasted, changed, unlogged, no_rows, no_columns, child, parent;
