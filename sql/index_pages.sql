--
-- Index builds: sizes of tables and trees, storage parameters, duplicates, widths
-- needs: index_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_maintenance_workers = 0;
-- what else 19 does by lz4
SET default_toast_compression = pglz;

-- no rows, one, a page just full and one row more, some levels
CREATE TABLE sizes (k int8, n int4);
SELECT * FROM check_builds('CREATE INDEX built ON sizes', '(k); (k DESC) INCLUDE (n); (k) WHERE n > 0');
INSERT INTO sizes VALUES (1, 1);
SELECT * FROM check_builds('CREATE INDEX built ON sizes', '(k); (k DESC) INCLUDE (n); (k) WHERE n > 1');
DO $$
DECLARE
	way text;
	results text[];
BEGIN
	FOREACH way IN ARRAY ARRAY['(k)', '(k DESC)', '(k, n) WITH (fillfactor = 100)'] LOOP
		TRUNCATE sizes;
		results := '{}';
		FOR rows IN 1 .. 4 LOOP
			INSERT INTO sizes VALUES (rows, rows);
			results := results || check_build('CREATE INDEX built ON sizes ' || way);
		END LOOP;
		INSERT INTO sizes SELECT g, g FROM generate_series(5, 360) g;
		FOR rows IN 361 .. 412 LOOP
			INSERT INTO sizes VALUES (rows, rows);
			results := results || check_build('CREATE INDEX built ON sizes ' || way);
		END LOOP;
		RAISE NOTICE '%: %', way, (SELECT string_agg(DISTINCT r, ', ' ORDER BY r) FROM unnest(results) r);
	END LOOP;
END $$;
INSERT INTO sizes SELECT g * 7919 % 100003, g FROM generate_series(413, 20000) g;
SELECT * FROM check_builds('CREATE INDEX built ON sizes', '(k); (k) WITH (fillfactor = 10); (k) WITH (fillfactor = 100)');
DROP TABLE sizes;

-- Duplicates: posting lists of any length, NULLs among them, and where they end.
CREATE TABLE duplicates AS
	SELECT 7 AS one, g % 2 AS two, g * 7919 % 10 AS ten, g * 7919 % 1000 AS thousand, g / 5 AS five_each,
		   g * 7919 % 100003 AS all_differ, CASE WHEN g % 3 > 0 THEN g * 7919 % 100 END AS nulls,
		   CASE WHEN g % 100 = 0 THEN g END AS mostly_null, NULL::int8 AS only_null,
		   CASE WHEN g > 11000 THEN 0 ELSE g END AS first_differ, g AS n
	FROM generate_series(1, 12000) g;
ANALYZE duplicates;
SELECT attname, b.* FROM pg_attribute,
	 check_builds(format('CREATE INDEX built ON duplicates (%I', attname),
				  '); DESC); NULLS FIRST) WITH (deduplicate_items = off); ) WITH (fillfactor = 10);
				  DESC NULLS LAST) WITH (fillfactor = 50); ) INCLUDE (n); ) WITH (fillfactor = 100)') b
WHERE attrelid = 'duplicates'::regclass AND attnum > 0 ORDER BY attnum;
SELECT * FROM check_builds('CREATE INDEX built ON duplicates',
	'(two, ten); (two DESC, nulls NULLS FIRST); (thousand, n DESC); (nulls, mostly_null, ten); (two, only_null, nulls DESC);
	(one, two, ten, thousand, n); (ten, nulls) INCLUDE (n, two)');
-- partial indexes and expressions
SELECT * FROM check_builds('CREATE INDEX built ON duplicates',
	'(thousand) WHERE two = 1; (n) WHERE nulls IS NULL; (n) WHERE n < 0; ((ten * 2)); ((n % 50)) WHERE n % 7 = 0; (ten, (-n));
	((nulls IS NULL), (nulls + 1) DESC); ((n || '' times'') COLLATE "C")');
-- little memory: sorted runs on disk
INSERT INTO duplicates SELECT * FROM duplicates;
INSERT INTO duplicates SELECT * FROM duplicates;
ANALYZE duplicates;
SET maintenance_work_mem = '1MB';
SELECT * FROM check_builds('CREATE INDEX built ON duplicates',
	'(ten); (all_differ DESC); (nulls NULLS FIRST); (thousand, n); (five_each) INCLUDE (n); (only_null);
	((n || '' times'') COLLATE "C")', 'node');
RESET maintenance_work_mem;
-- workers, if there are any for it
ALTER TABLE duplicates SET (parallel_workers = 2);
SET max_parallel_maintenance_workers = 2;
SET maintenance_work_mem = '128MB';
SELECT * FROM check_builds('CREATE INDEX built ON duplicates',
	'(ten); (all_differ DESC); (nulls NULLS FIRST); (thousand, n)');
RESET maintenance_work_mem;
SET max_parallel_maintenance_workers = 0;
DROP TABLE duplicates;

-- Strings: where a page's first key is cut off, long ones, compressed ones.
CREATE TABLE strings AS
	SELECT md5(g::text) COLLATE "C" AS digits, ('prefix/' || md5((g % 3000)::text)) COLLATE "C" AS prefix,
		   repeat('x', g % 5) COLLATE "C" AS short, repeat(chr(97 + g % 26), g * 7919 % 300) COLLATE "C" AS long,
		   decode(md5(g::text), 'hex') AS bytes, g * 7919 % 10007 / 100.0 AS number,
		   substr(repeat(md5(g::text), 90), 1, 2000 + g % 600) COLLATE "C" AS longest, g % 5 AS n
	FROM generate_series(1, 4000) g;
ANALYZE strings;
SELECT attname, b.* FROM pg_attribute,
	 check_builds('CREATE INDEX built ON strings', replace('($); ($ DESC); (n, $); ($) INCLUDE (n);
				  ($, n DESC) WITH (fillfactor = 70, deduplicate_items = off)', '$', attname)) b
WHERE attrelid = 'strings'::regclass AND attnum BETWEEN 1 AND 6 ORDER BY attnum;
-- few of them fit a page, which makes more levels
CREATE TABLE long_strings (k text COLLATE "C", n int4);
ALTER TABLE long_strings ALTER k SET STORAGE PLAIN;
INSERT INTO long_strings SELECT longest, n FROM strings;
SELECT * FROM check_builds('CREATE INDEX built ON long_strings', '(k) WHERE n = 1; (k DESC, n) WHERE n = 2; (n) INCLUDE (k)');
-- and one that does not fit
INSERT INTO long_strings SELECT string_agg(md5(g::text), ''), 77 FROM generate_series(1, 100) g;
SELECT check_error('CREATE INDEX built ON long_strings (k) WHERE n = 77');
SELECT check_error('CREATE INDEX built ON long_strings (n) INCLUDE (k) WHERE n = 77');
-- out of line and compressed
TRUNCATE long_strings;
ALTER TABLE long_strings ALTER k SET STORAGE EXTERNAL;
INSERT INTO long_strings SELECT substr(longest, 1, 2500), n FROM strings WHERE n = 1;
ALTER TABLE long_strings ALTER k SET STORAGE EXTENDED;
INSERT INTO long_strings SELECT repeat('compressible ', g * 100), 2 FROM generate_series(1, 80) g;
SELECT * FROM check_builds('CREATE INDEX built ON long_strings', '(k); (k DESC) WHERE n = 2; (n) INCLUDE (k)');
-- Too long for any index: the error is that of the first row of the table.
CREATE TABLE too_long AS
SELECT n, k, left(k, 6000) AS a, substr(k, 6001) AS b
FROM (SELECT n, chr(123 - n) || string_agg(md5((n * 1000 + g)::text), '' ORDER BY g) AS k
	  FROM generate_series(1, 3) n, generate_series(1, 500 - n * 30) g GROUP BY n) s ORDER BY n;
SELECT * FROM check_errors('CREATE INDEX built ON too_long',
	'(k); (k) WHERE n > 1; (left(k, -1)); (a, b); (n) INCLUDE (a, b); (n, (a || b))');
DROP TABLE strings, long_strings, too_long;

-- tables of other kinds
CREATE UNLOGGED TABLE unlogged AS SELECT g * 7919 % 1009 AS k FROM generate_series(1, 3000) g;
CREATE TEMP TABLE temporary AS SELECT g * 7919 % 1009 AS k FROM generate_series(1, 3000) g;
CREATE MATERIALIZED VIEW materialized AS SELECT g * 7919 % 1009 AS k FROM generate_series(1, 3000) g;
SELECT kind, b.* FROM unnest('{unlogged, temporary, materialized}'::text[]) kind,
	check_builds('CREATE INDEX built ON ' || kind, '(k); (k DESC) WITH (deduplicate_items = off)') b;
CREATE INDEX unlogged_k ON unlogged (k);
SELECT array_length(index_pages('unlogged_k', 'init'), 1);
DROP TABLE unlogged, temporary;
DROP MATERIALIZED VIEW materialized;

-- the heap's access method by another name
CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE in_other_heap USING other_heap AS SELECT g * 7919 % 1009 AS k FROM generate_series(1, 3000) g;
SELECT check_build('CREATE INDEX built ON in_other_heap (k)');
DROP TABLE in_other_heap;
DROP ACCESS METHOD other_heap;

-- columns that were added and dropped
CREATE TABLE altered AS SELECT g AS gone, g * 7919 % 100 AS k FROM generate_series(1, 2000) g;
ALTER TABLE altered ADD given int8 DEFAULT 42, ADD nothing int4;
INSERT INTO altered SELECT g, g, g, g FROM generate_series(1, 1000) g;
ALTER TABLE altered DROP gone, ADD last float8 DEFAULT 2.5;
INSERT INTO altered SELECT g, g, g, g FROM generate_series(1, 1000) g;
SELECT * FROM check_builds('CREATE INDEX built ON altered',
	'(k); (given); (nothing); (last); (nothing DESC, last, given); (last) INCLUDE (nothing)');
DROP TABLE altered;
