--
-- Builds of GIN indexes: operator classes, categories of keys, long lists, little memory
-- needs: index_setup
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS intarray;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
RESET client_min_messages;
SET max_parallel_maintenance_workers = 0;

-- The helpers can fail.
CREATE TABLE gin_helper AS SELECT ARRAY[g % 10, g % 500] AS a, g FROM generate_series(1, 3000) g;
CREATE FUNCTION is_kept(g int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN g <> 77 OR current_setting('pg_gpusort.enable_index_build')::bool;
END $$;
SELECT check_gin('CREATE INDEX built ON gin_helper USING gin (a)');
SELECT check_gin('CREATE INDEX built ON gin_helper USING gin (a) WHERE is_kept(g)');
SELECT check_gin('SET LOCAL pg_gpusort.enable_index_build = off; CREATE INDEX built ON gin_helper USING gin (a)', 'off');
CREATE INDEX helper_index ON gin_helper USING gin (a);
SELECT gin_fault('helper_index');
INSERT INTO gin_helper VALUES ('{1,2}');
SELECT gin_fault('helper_index');
DROP TABLE gin_helper;

-- Arrays: no rows, one, NULL and empty items, NULL keys, repeated keys
CREATE TABLE arrays (a int[], t text[], few int[], n numeric[], f float8[], i int);
SELECT * FROM check_gins('CREATE INDEX built ON arrays USING gin', '(a); (t, few) WHERE i > 0');
INSERT INTO arrays VALUES ('{3,1,2,1}', '{b,a}', '{1}', '{1.0,1.00}', '{0}', 1);
SELECT * FROM check_gins('CREATE INDEX built ON arrays USING gin', '(a); (t, few); (n); (a) WHERE i > 1');
INSERT INTO arrays
	SELECT CASE WHEN g % 11 > 0 THEN ARRAY[g % 5, g * 7919 % 1000, NULLIF(g % 7, 0), g % 5] WHEN g % 2 = 0 THEN '{}' END,
		   CASE WHEN g % 13 > 0 THEN ARRAY['word ' || g % 3, repeat('long ', g % 400 / 3), NULLIF('x' || g % 17, 'x0')] END,
		   ARRAY[g / 1500], ARRAY[g % 9 + 0.10, g % 9 + 0.1, 'NaN', g % 4], ARRAY[g % 3, 0, '-0', 'NaN', g / 7.0], g
	FROM generate_series(2, 3000) g;
VACUUM ANALYZE arrays;
SELECT * FROM check_gins('CREATE INDEX built ON arrays USING gin',
	'(a); (t); (few); (n); (f); (a, t); (t, few, a) WITH (fastupdate = off); (a) WHERE i % 3 = 0; ((a || few), t) WHERE a IS NOT NULL;
	((string_to_array(i::text, ''1''))); (a gin__int_ops) WHERE array_position(a, NULL) IS NULL; (t COLLATE "C")');

-- Arrays with keys that are equal but have other bytes: the first one in PostgreSQL's order is kept.
CREATE TABLE spelled AS
	SELECT (SELECT array_agg(translate(g * i * 7 % 4 || 'x', 'x', CASE i * g % 3 WHEN 0 THEN ' ' WHEN 1 THEN 'a' ELSE 'A' END) ORDER BY hashint8(i * g))
			FROM generate_series(1, 20) AS i) AS a
	FROM generate_series(1, 100) AS g;
SELECT DISTINCT regexp_replace(check_gin(format('CREATE INDEX built ON spelled USING gin ((a::%s[] COLLATE %I))', type, collname)), '\d+ keys$', 'keys') AS result
FROM unnest('{bpchar,citext}'::text[]) AS type, pg_collation WHERE collname IN ('C', 'en-x-icu');
DROP TABLE spelled;

-- Texts with zero bytes, at which PostgreSQL 15 ends comparisons; of so few keys of a row, the first of equal ones is kept.
SET client_min_messages = warning;
CREATE COLLATION c_utf8 (provider = libc, locale = 'C.UTF-8');
CREATE CAST (bytea AS text) WITHOUT FUNCTION;
RESET client_min_messages;
CREATE TABLE zeros AS
	SELECT (SELECT array_agg(((1 + (g + i) % 3)::text::bytea || substr('\x0061006200'::bytea, 1, (g * i * 7 % 6)))::text ORDER BY hashint8(i * g))
			FROM generate_series(1, 6) AS i) AS a
	FROM generate_series(1, 200) AS g;
SELECT collname, regexp_replace(check_gin(format('CREATE INDEX built ON zeros USING gin (a COLLATE %I)', collname)), '\d+ keys$', 'keys') AS result
FROM unnest('{C,c_utf8,en-x-icu}'::text[]) AS collname;
DROP TABLE zeros;
DROP CAST (bytea AS text);
DROP COLLATION c_utf8;

-- jsonb: strings, numbers, booleans, nulls, nested and empty values, long strings, which are hashed
CREATE TABLE documents (j jsonb, i int);
INSERT INTO documents
	SELECT CASE WHEN g % 17 > 0 THEN jsonb_build_object('id', g, 'kind', 'k' || g % 5, 'tags', jsonb_build_array(g % 3, 'tag ' || g % 50,
			NULL, g % 2 = 0), 'nested', jsonb_build_object('a', g % 11, 'b', '{}'::jsonb, 'c', '[]'::jsonb), 'n', g % 10 / 10.0,
			repeat('key', g % 60), repeat('x', g % 200)) WHEN g % 2 = 0 THEN to_jsonb(g % 7) WHEN g % 3 > 0 THEN '{}' END, g
	FROM generate_series(1, 3000) g;
INSERT INTO documents VALUES ('null'), ('[]'), ('[1.0, 1.00, 1]'), ('"1"'), ('{"a": {"a": {"a": 1}}}');
VACUUM ANALYZE documents;
SELECT * FROM check_gins('CREATE INDEX built ON documents USING gin', '(j); (j jsonb_path_ops); (j, (j -> ''tags'') jsonb_path_ops);
	((j -> ''tags'')); (j jsonb_path_ops) WITH (fastupdate = off)');

-- text search, trigrams, hstore, and btree_gin in one index with others
CREATE TABLE texts (t text, v tsvector, h hstore, n numeric, d date, e float8, i int);
INSERT INTO texts
	SELECT s, to_tsvector('simple', s), CASE WHEN g % 7 > 0 THEN hstore(ARRAY['a', g::text, 'b', g % 10 || '', 'c', NULL]) END, g % 40 * 1.50,
		   date '2020-01-01' + g % 300, (g % 5 - 2) / 2.0, g
	FROM generate_series(1, 3000) g,
		 LATERAL (SELECT CASE WHEN g % 19 > 0 THEN 'Text ' || g % 10 || ' ' || md5(g::text) || ' und ' || g % 100 || ' ' || repeat(chr(97 + g % 26), g % 40)
				  ELSE '' END AS s) s;
INSERT INTO texts VALUES (NULL, NULL), ('a', 'a:1A,2B b:3'), ('', '');
UPDATE texts SET n = (n || '0')::numeric WHERE i % 3 = 0;
VACUUM ANALYZE texts;
SELECT * FROM check_gins('CREATE INDEX built ON texts USING gin', '(v); (t gin_trgm_ops); (h); (n); (d); (e); (t); (t COLLATE "C", i);
	(v, t gin_trgm_ops, h, n, d); (to_tsvector(''simple'', t), i) WHERE i % 2 = 0');

-- Long keys, which are compressed, and one that is too long even then
CREATE TABLE long_keys AS SELECT ARRAY[repeat('long', g * 200), repeat(md5(g::text), 30)] AS a FROM generate_series(1, 200) g;
SELECT * FROM check_gins('CREATE INDEX built ON long_keys USING gin', '(a)');
INSERT INTO long_keys SELECT ARRAY[string_agg(md5(g::text), '')] FROM generate_series(1, 200) g;
SELECT * FROM check_errors('CREATE INDEX built ON long_keys USING gin', '(a)');
DROP TABLE long_keys;

-- lists of nearly a third of a page, of which three are on each page
CREATE TABLE long_lists AS SELECT ARRAY[abs(hashint4(g)) % 51] AS a FROM generate_series(1, 100000) g;
SELECT check_gin('CREATE INDEX built ON long_lists USING gin (a)');
DROP TABLE long_lists;

-- Posting trees of one page and of several levels, beside keys of one row; HOT chains, whose TIDs are out of order
CREATE TABLE many (a int[], i int) WITH (fillfactor = 60);
INSERT INTO many SELECT ARRAY[g % 2, g % 20, 1000 + g % 200, 10000 + g], g FROM generate_series(1, 30000) g;
VACUUM ANALYZE many;
SELECT * FROM check_gins('CREATE INDEX built ON many USING gin', '(a); (a) WHERE i % 10 = 0; (a gin__int_ops)');
UPDATE many SET i = -i WHERE i % 3 = 0;
UPDATE many SET i = i + 1 WHERE i % 7 = 0;
DELETE FROM many WHERE i % 11 = 0;
SELECT * FROM check_gins('CREATE INDEX built ON many USING gin', '(a)');
-- little memory: sorted runs on disk
SET maintenance_work_mem = '1MB';
SELECT * FROM check_gins('CREATE INDEX built ON many USING gin', '(a); (a gin__int_ops) WHERE i > 0', 'node');
SELECT * FROM check_gins('CREATE INDEX built ON texts USING gin', '(t gin_trgm_ops, v, h, n)', 'node');
SELECT check_gin('CREATE INDEX built ON many USING gin (a)');
-- rows with more keys than fit in memory, long keys that have no room among others, and one that none of our blocks can hold
CREATE TABLE wide AS
	SELECT array_agg(g % 15000) AS a, array_agg(g % 15000 / 2.0) AS n, array_agg('text ' || g % 15000) AS t FROM generate_series(1, 20000) g;
INSERT INTO wide
	SELECT ARRAY[g % 50, g], ARRAY[g % 50 + 0.5, g], ARRAY['text ' || g, CASE WHEN g % 1000 = 0 THEN repeat(g::text, 40000) END]
	FROM generate_series(1, 3000) g;
SELECT * FROM check_gins('CREATE INDEX built ON wide USING gin', '(a); (n); (t)', 'node');
ALTER TABLE wide SET (parallel_workers = 8);
SET max_parallel_maintenance_workers = 8;
SELECT * FROM check_gins('CREATE INDEX built ON wide USING gin', '(a)', 'node');
ALTER TABLE wide SET (parallel_workers = 0);
SET max_parallel_maintenance_workers = 0;
CREATE TABLE longest AS SELECT ARRAY[repeat('long', 700000)] AS t;
INSERT INTO longest SELECT ARRAY['word ' || g] FROM generate_series(1, 60000) g;
SET maintenance_work_mem = '4MB';
SELECT error_of('CREATE INDEX built ON longest USING gin (t)') AS ours \gset
SET pg_gpusort.enable_index_build = off;
SELECT error_of('CREATE INDEX built ON longest USING gin (t)') = :'ours' AS same_error, :'ours' ~ '^index row ' AS too_long;
RESET pg_gpusort.enable_index_build;
DROP TABLE wide, longest;
RESET maintenance_work_mem;

-- workers, if there are any for it
CREATE TABLE shared AS SELECT a, ARRAY[i % 9 + 0.10, i % 9 + 0.1] AS n, i FROM many;
ALTER TABLE shared SET (parallel_workers = 2);
SET max_parallel_maintenance_workers = 2;
SET maintenance_work_mem = '96MB';
SELECT * FROM check_gins('CREATE INDEX built ON shared USING gin', '(a); (a, n) WHERE i % 10 > 0; (n)');
SET maintenance_work_mem = '3MB';
SELECT * FROM check_gins('CREATE INDEX built ON shared USING gin', '(a); (a, i)', 'node');
RESET maintenance_work_mem;
SET max_parallel_maintenance_workers = 0;

-- ---- Functions ----

-- A function that queries the table: the planner asks the index, whose condition it has, for statistics
CREATE TABLE asked AS SELECT g AS id, ARRAY[g % 10, g] AS a FROM generate_series(1, 3000) g;
ALTER TABLE asked ADD PRIMARY KEY (id);
CREATE FUNCTION asking(k int) RETURNS int[] IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT a || k FROM public.asked WHERE id = 1 + k % 100 AND a OPERATOR(pg_catalog.@>) '{}');
END $$;
SET enable_bitmapscan = off;
SELECT * FROM check_gins('CREATE INDEX built ON asked USING gin', '(a, asking(id)); (asking(id), a) WHERE id % 2 = 0');
RESET enable_bitmapscan;
-- One that changes the table, whose rows go to the index by themselves.  Before PostgreSQL 18 the build is serial, as in
-- stock PostgreSQL, although the function is marked as parallel safe; later it would be an error in both.
CREATE FUNCTION change(name text, k int) RETURNS void VOLATILE LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format(CASE k WHEN 10 THEN 'UPDATE public.%I SET a = a || 7777 WHERE id BETWEEN 2000 AND 2010'
						  WHEN 20 THEN 'INSERT INTO public.%I SELECT 10000 + g, ARRAY[7, 7, g] FROM generate_series(1, 500) g'
						  ELSE 'DELETE FROM public.%I WHERE id = 2900' END, name);
END $$;
CREATE FUNCTION changing(name text, k int, a int[]) RETURNS int[] IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	IF k IN (10, 20, 30) THEN
		PERFORM public.change(name, k);
	END IF;
	RETURN a;
END $$;
SELECT set_config('max_parallel_maintenance_workers', CASE WHEN current_setting('server_version_num')::int < 180000 THEN '2' ELSE '0' END, false) <> '' AS set;
CREATE FUNCTION build_changing(way text, ours bool) RETURNS SETOF text LANGUAGE plpgsql SET pg_gpusort.min_rows = 0 AS $$
DECLARE
	builds int8 := index_builds();
BEGIN
	PERFORM set_config('pg_gpusort.enable_index_build', ours::text, true);
	CREATE TABLE changed WITH (parallel_workers = 2) AS SELECT * FROM asked;
	ALTER TABLE changed ADD PRIMARY KEY (id);
	EXECUTE 'CREATE INDEX built ON changed USING gin (changing(''changed'', id, a)) ' || way;
	builds := index_builds() - builds;
	PERFORM gin_clean_pending_list('built');
	RETURN QUERY SELECT to_jsonb(e)::text FROM gin_entries('built') e;
	DROP TABLE changed;
	IF ours AND builds <> 2 THEN
		RETURN NEXT format('%s builds', builds);
	END IF;
END $$;
CREATE TEMP TABLE changed_entries AS
	SELECT way, ours, entry FROM unnest(ARRAY['', 'WITH (fastupdate = off)', 'WHERE id % 2 = 0']) way, unnest(ARRAY[false, true]) ours, build_changing(way, ours) entry;
SELECT way, count(*) FILTER (WHERE n = 2) AS same, count(*) FILTER (WHERE n <> 2) AS different
FROM (SELECT way, entry, count(*) AS n FROM changed_entries GROUP BY way, entry) e GROUP BY way ORDER BY way;
SET max_parallel_maintenance_workers = 0;

-- ---- Statements ----

SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
CREATE TABLE parts (a int[], i int) PARTITION BY RANGE (i);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE UNLOGGED TABLE part_2 PARTITION OF parts FOR VALUES FROM (100) TO (1000);
INSERT INTO parts SELECT ARRAY[g % 20, g], g FROM generate_series(0, 999) g;
SELECT new_builds() > 0 AS counted;
CREATE INDEX parts_a ON parts USING gin (a);
SELECT new_builds();
SELECT * FROM faults_of_gins('part_1', 'part_2');
CREATE INDEX CONCURRENTLY concurrent ON part_1 USING gin (a) WHERE i > 10;
SELECT new_builds();
REINDEX TABLE part_1;
SELECT new_builds();
REINDEX TABLE CONCURRENTLY part_1;
SELECT new_builds();
VACUUM FULL part_1;
SELECT new_builds();
ALTER TABLE parts ALTER a TYPE int8[];
SELECT new_builds();
SELECT * FROM faults_of_gins('part_1', 'part_2');
CREATE TEMP TABLE temporary AS SELECT a FROM many LIMIT 1000;
CREATE INDEX temporary_a ON temporary USING gin (a);
SELECT new_builds();
SELECT * FROM faults_of_gins('temporary');
CREATE MATERIALIZED VIEW seen AS SELECT a FROM part_1;
CREATE INDEX seen_a ON seen USING gin (a);
REFRESH MATERIALIZED VIEW seen;
SELECT new_builds();
SELECT * FROM faults_of_gins('seen');

-- what happens to an index afterwards: inserts, pending pages, VACUUM, searches
CREATE INDEX many_a ON many USING gin (a);
INSERT INTO many SELECT ARRAY[g % 2, g % 20, 500000 - g], g FROM generate_series(1, 2000) g;
SELECT gin_clean_pending_list('many_a') > 0 AS cleaned;
DELETE FROM many WHERE i % 5 = 0;
VACUUM many;
INSERT INTO many SELECT ARRAY[g % 2, g % 20, g], g FROM generate_series(1, 9000) g;
VACUUM many;
RESET pg_gpusort.debug_require;
SET enable_seqscan = off;
CREATE TABLE found AS
	SELECT k, (SELECT count(*) FROM many WHERE a @> ARRAY[k]) AS n
	FROM (SELECT generate_series(0, 40) UNION SELECT generate_series(41, 500000, 1999)) k (k);
RESET enable_seqscan;
SELECT count(*) AS wrong
FROM found FULL JOIN (SELECT k, count(*) AS n FROM (SELECT DISTINCT ctid, unnest(a) AS k FROM many) s GROUP BY k) counted USING (k)
WHERE found.n <> coalesce(counted.n, 0);

-- what is left to PostgreSQL
SELECT new_builds();
SET pg_gpusort.min_rows = 1000000;
SET pg_gpusort.min_index_rows = 1000000;
CREATE INDEX left_index ON many USING gin (a);
SELECT new_builds();
RESET pg_gpusort.min_index_rows;
SET pg_gpusort.min_rows = -1;
CREATE TABLE small AS SELECT ARRAY[i, i % 7] AS a, i AS b FROM generate_series(1, 1999) AS i;
VACUUM ANALYZE small;
CREATE INDEX small_index ON small USING gin (a);
SELECT new_builds();
INSERT INTO small VALUES (ARRAY[1], 1);
VACUUM ANALYZE small;
REINDEX INDEX small_index;
SELECT new_builds();
CREATE INDEX ON small (b);
SELECT new_builds();
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = gpu;
CREATE INDEX gpu_index ON many USING gin (a);
RESET pg_gpusort.debug_require;
SET client_min_messages = warning;
DROP TABLE parts, many, small, shared, found, arrays, documents, texts, asked CASCADE;
DROP EXTENSION btree_gin, hstore, intarray, pg_trgm;
