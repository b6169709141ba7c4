--
-- ORDER BY: the columns that rows carry along
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET work_mem = '64MB';
CREATE TYPE pair AS (a int, b text);
CREATE TABLE payload AS
	SELECT g * 7919 % 1009 AS k,
		   repeat('x', g % 130) AS short_text,
		   repeat(md5(g::text), g % 70) AS text,
		   CASE WHEN g % 3 = 0 THEN repeat('long ', g) END AS maybe,
		   decode(repeat(md5(g::text), g % 5), 'hex') AS bytes,
		   ARRAY[g, NULL, g % 3] AS ints,
		   ARRAY[g::text, repeat('y', g % 200)] AS texts,
		   ROW(g, repeat('z', g % 140))::pair AS pair,
		   (g::numeric ^ 3) / 7 AS num,
		   ('name' || g)::name AS name,
		   make_interval(months => g % 14, days => g % 33, secs => g / 7.0) AS span,
		   md5(g::text)::uuid AS uuid,
		   jsonb_build_object('g', g, 't', repeat('j', g % 150)) AS json,
		   int4range(g, g + 5) AS range,
		   point(g, -g) AS point,
		   (g % 256)::text::"char" AS c1, g % 2 = 0 AS b1, g::int2 AS i2,
		   g::bit(13) AS bits, ('10.0.' || g % 200 || '.1')::inet AS net,
		   to_tsvector('simple', 'word' || g || ' other') AS words,
		   '12:34:56+02'::timetz + make_interval(secs => g) AS tz
	FROM generate_series(1, 1500) g;
SELECT check_sort('SELECT * FROM payload ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM payload ORDER BY k DESC, i2', 'k, i2');
-- each column by itself
SELECT result, string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute,
	LATERAL check_sort(format('SELECT k, %I AS v FROM payload ORDER BY k', attname), 'k') result
WHERE attrelid = 'payload'::regclass AND attnum > 1 GROUP BY result;
-- and each with NULLs
SELECT result, count(*) FROM pg_attribute,
	LATERAL check_sort(format('SELECT k, CASE WHEN k %% 5 > 1 THEN %I END AS v FROM payload ORDER BY k', attname), 'k') result
WHERE attrelid = 'payload'::regclass AND attnum > 1 GROUP BY result;
SELECT check_sort('SELECT i2 AS k, NULL::text AS a, NULL::int8 AS b, NULL::name AS c FROM payload ORDER BY i2', 'k');

-- toasted, compressed, and neither
CREATE TABLE toasted (k int, compressed text, external text, main text, plain text);
ALTER TABLE toasted ALTER external SET STORAGE EXTERNAL, ALTER main SET STORAGE MAIN, ALTER plain SET STORAGE PLAIN;
INSERT INTO toasted
	SELECT g * 17 % 101, repeat(md5(g::text), 100 * (g % 9)), repeat(md5(g::text), 100 * (g % 7)),
		   repeat(md5(g::text), 50 * (g % 5)), repeat(md5(g::text), g % 50)
	FROM generate_series(1, 200) g;
SELECT check_sort('SELECT * FROM toasted ORDER BY k', 'k');
SELECT check_sort('SELECT k, compressed || external AS both, plain FROM toasted ORDER BY k', 'k');
-- values that have changed hands since they were read
SELECT check_sort('SELECT (t).k AS k, t FROM (SELECT t FROM toasted t OFFSET 0) s ORDER BY (t).k', 'k');
-- expanded arrays and records
CREATE FUNCTION expanded(n int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	a int[] := '{}';
BEGIN
	FOR i IN 1 .. n LOOP
		a[i] := i * n;
	END LOOP;
	RETURN a;
END $$;
SELECT check_sort('SELECT g * 37 % 101 AS k, expanded(g % 60) AS a FROM generate_series(1, 300) g ORDER BY 1', 'k');

-- whole rows, junk columns, expressions
SELECT check_sort('SELECT t.k AS key, t, t.* FROM (SELECT * FROM toasted LIMIT 50) t ORDER BY t.k', 'key');
SELECT check_sort('SELECT payload AS r, k FROM payload ORDER BY k', 'k');
SELECT check_sort('SELECT k % 10 AS e, short_text FROM payload ORDER BY k % 10, -k', 'e');
SELECT check_sort('SELECT length(text) AS l, text || short_text AS t FROM payload ORDER BY length(text) DESC', 'l');
SELECT check_sort('SELECT k % 7 AS a, k / 7.0::float8 AS b FROM payload ORDER BY 1 DESC, 2', 'a, b');
SELECT check_sort('SELECT DISTINCT k % 7 AS a, k % 3 AS b FROM payload ORDER BY 1, 2', 'a, b');
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
SELECT string_agg(name, ' ') FROM (SELECT name FROM payload WHERE i2 <= 12 ORDER BY k DESC OFFSET 0) s;
SELECT k, i2 FROM payload WHERE i2 <= 12 ORDER BY -i2, k;
-- no columns at all, and none but the key
SELECT FROM payload WHERE i2 <= 3 ORDER BY k;
SELECT count(*) FROM (SELECT FROM payload ORDER BY k OFFSET 0) s;
SELECT FROM generate_series(1, 3) ORDER BY 1 + 1;
-- volatile and set-returning expressions
SELECT k, generate_series(1, 2) AS g FROM payload WHERE i2 <= 2 ORDER BY k, g DESC;
SELECT count(*), count(DISTINCT r) > 1000 AS volatile, bool_and(r >= before) AS sorted
FROM (SELECT r, lag(r, 1, r) OVER () AS before
	  FROM (SELECT random() AS r FROM payload ORDER BY 1) s) s;
SELECT name, tableoid::regclass, ctid FROM payload WHERE i2 IN (1, 2) ORDER BY k, ctid::text = '';
RESET pg_gpusort.debug_require;
RESET pg_gpusort.min_rows;

-- columns dropped and added
CREATE TABLE changed AS SELECT g AS gone, g * 13 % 97 AS k, g::text AS t FROM generate_series(1, 200) g;
ALTER TABLE changed DROP gone, ADD COLUMN fresh numeric DEFAULT 12.5, ADD COLUMN later text;
SELECT check_sort('SELECT * FROM changed ORDER BY k', 'k');
SELECT check_sort('SELECT changed AS r, k FROM changed ORDER BY k DESC', 'k');
INSERT INTO changed SELECT g, 'new', g, repeat('q', g) FROM generate_series(1, 150) g;
ALTER TABLE changed DROP t;
SELECT check_sort('SELECT *, changed AS r FROM changed ORDER BY k', 'k');

-- wide rows
SELECT format('CREATE TABLE wide AS SELECT g * 7919 %% 503 AS k, %s FROM generate_series(1, 700) g',
			  string_agg(format(CASE c % 4 WHEN 0 THEN 'g + %s AS c%s' WHEN 1 THEN 'nullif(g %% %s, 3)::int8 AS c%s'
								WHEN 2 THEN '(g * %s)::text AS c%s' ELSE 'nullif(g::int2, %s) AS c%s' END, c, c), ', ' ORDER BY c))
FROM generate_series(1, 200) c \gexec
SELECT check_sort('SELECT * FROM wide ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM wide ORDER BY c199, k DESC', 'c199, k');
SELECT check_sort('SELECT k, c8, c12, c16, c20, c24 FROM wide ORDER BY k', 'k');

-- columns of a subquery that nobody uses are NULL in its plan, and not sorted
SELECT check_sort('SELECT k, json FROM (SELECT * FROM payload ORDER BY k OFFSET 0) s', 'k');
SELECT check_sort('SELECT num, texts FROM (SELECT * FROM payload ORDER BY i2 DESC OFFSET 0) s', 'num');
SELECT check_sort('SELECT num, b1, maybe FROM (SELECT * FROM payload WHERE i2 % 3 = 0 ORDER BY i2 OFFSET 0) s', 'num');
SELECT check_sort('SELECT c199, k, c12 FROM (SELECT * FROM wide ORDER BY c199, k DESC OFFSET 0) s', 'c199, k');
SELECT check_sort('SELECT count(*) FROM (SELECT *, i2 + 1 AS next FROM payload ORDER BY i2 OFFSET 0) s', 'count');
SELECT check_sort('SELECT o.i2, i.num FROM payload o, LATERAL (SELECT * FROM payload p WHERE p.k = o.k ORDER BY p.i2 DESC OFFSET 0) i WHERE o.i2 < 9 ORDER BY o.i2', 'i2');
SET work_mem = '64kB';
SELECT check_sort('SELECT num, texts FROM (SELECT * FROM payload ORDER BY i2 OFFSET 0) s', 'num', 'node');
RESET work_mem;
SET pg_gpusort.min_rows = 0;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, c8 FROM (SELECT * FROM wide ORDER BY k, c199 OFFSET 0) s;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH PRIOR FROM c;
FETCH ABSOLUTE 2 FROM c;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE few(int) AS SELECT k, c8 FROM (SELECT * FROM wide ORDER BY c199, k LIMIT $1) s;
SET pg_gpusort.debug_require = node;
EXECUTE few(3);
RESET pg_gpusort.debug_require;
SET pg_gpusort.enable = off;
EXECUTE few(3);
RESET pg_gpusort.enable;
DEALLOCATE few;
RESET plan_cache_mode;
RESET pg_gpusort.min_rows;

DROP TABLE payload, toasted, changed, wide;
DROP TYPE pair;
