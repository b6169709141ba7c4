--
-- Collations that compare bytes, also by the C library, and those of ICU
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SELECT getdatabaseencoding() <> 'UTF8' OR
	   NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu') AS skip \gset
\if :skip
\quit
\endif
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION with_numbers (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION c_utf8 (provider = libc, locale = 'C.UTF-8');
RESET client_min_messages;

CREATE TABLE words AS
	SELECT g AS id, CASE WHEN g % 40 > 0 THEN
		   (ARRAY['a', 'A', 'á', 'b', 'côte', 'coté', 'Coté', 'cote', 'resume', 'résumé', 'Résumé', 'ß', 'ss', 'z', 'Å'])[1 + g % 15]
		   || substr('common ending', 1, g % 14) || g % 37 END AS w
	FROM generate_series(1, 6000) g;
ANALYZE words;
SELECT collation_name, way,
	   check_sort(format('SELECT w COLLATE %I AS k, id FROM words ORDER BY k %s', collation_name, way),
				  'k' || CASE WHEN way ~ 'id' THEN ', id' ELSE '' END)
FROM unnest('{C,POSIX,ucs_basic,c_utf8,en-x-icu,de-x-icu,any_case,with_numbers}'::text[]) collation_name,
	 unnest(ARRAY['', 'DESC, id']) way;

-- ICU's comparisons of ASCII ignore that letters come before digits here, but its sort keys do not.
-- The order has to be that of the comparisons, by which an index is searched.
SET client_min_messages = warning;
CREATE COLLATION letters_first (provider = icu, locale = 'en-u-kr-latn-digit');
RESET client_min_messages;
CREATE TABLE codes AS SELECT md5(g::text) AS code FROM generate_series(1, 3000) g;
ANALYZE codes;
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = node;
SELECT count(*) AS codes, count(*) FILTER (WHERE last_code > code) AS wrong
FROM (SELECT code COLLATE letters_first AS code, lag(code) OVER () AS last_code
	  FROM (SELECT code FROM codes ORDER BY code COLLATE letters_first OFFSET 0) AS sorted) AS pairs;
RESET pg_gpusort.debug_require;
CREATE INDEX ON codes (code COLLATE letters_first);
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SELECT count(*) AS found FROM (SELECT md5(g::text) AS code FROM generate_series(1, 3000) g OFFSET 0) AS searched
	JOIN codes ON codes.code COLLATE letters_first = searched.code;
RESET enable_seqscan;
RESET enable_mergejoin;
RESET enable_hashjoin;
RESET pg_gpusort.min_rows;
DROP TABLE codes;

-- A sort keeps the bytes of recent strings, in memory that ends with it and grows with their number.
CREATE FUNCTION context_bytes(context text) RETURNS int8 LANGUAGE sql AS
	'SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts WHERE name = context';
CREATE FUNCTION memory_of_sort(nrows int, OUT of_sort int8, OUT of_session int8) LANGUAGE plpgsql AS $$
DECLARE
	sorted CURSOR FOR SELECT k FROM (SELECT g % 3000 || 'ЯŁ' AS k FROM generate_series(1, nrows) AS g OFFSET 0) AS strings
		ORDER BY k COLLATE "sv-x-icu";
	session int8 := context_bytes('TopMemoryContext');
	first_k text;
BEGIN
	OPEN sorted;
	FETCH sorted INTO first_k;
	of_sort := context_bytes('pg_gpusort key plan');
	CLOSE sorted;
	of_session := context_bytes('TopMemoryContext') - session;
END $$;
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = node;
SET pg_gpusort.work_mem = '64MB';
SELECT of_sort BETWEEN 1 AND 65535 AS sort_is_small, of_session < 65536 AS session_is_small FROM memory_of_sort(100);
SELECT of_sort > 100000 AS grows, of_session < 65536 AS session_is_small FROM memory_of_sort(20000);
SET pg_gpusort.work_mem = '1MB';
SELECT of_sort BETWEEN 65536 AND 131072 + 65536 AS within_an_eighth FROM memory_of_sort(20000);
RESET pg_gpusort.work_mem;
RESET pg_gpusort.debug_require;
RESET pg_gpusort.min_rows;

-- citext, which is lower case by the default collation and then compared by its own
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS citext;
RESET client_min_messages;
CREATE TABLE any_case_words AS SELECT id, w::citext FROM words UNION ALL SELECT -id, (upper(w) || '!')::citext FROM words WHERE id % 3 = 0;
ANALYZE any_case_words;
SELECT collation_name, way,
	   check_sort(format('SELECT w COLLATE %I AS k, lower(w) AS l, id FROM any_case_words ORDER BY k %s', collation_name, way),
				  'l' || CASE WHEN way ~ 'id' THEN ', id' ELSE '' END)
FROM unnest('{C,en-x-icu,any_case}'::text[]) collation_name,
	 unnest(ARRAY['', 'DESC, id', 'USING ~<~', 'USING ~>~, id']) way;
SELECT pg_typeof(w) FROM any_case_words LIMIT 1;
SET pg_gpusort.min_rows = 0;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id, w FROM any_case_words ORDER BY w COLLATE "en-x-icu", id;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id, w FROM any_case_words ORDER BY w COLLATE "C", id;
RESET pg_gpusort.min_rows;
DROP TABLE any_case_words;

-- groups by a sort instead of a hash table only where comparisons are cheap
CREATE TABLE many_words AS SELECT 'word ' || g AS w FROM generate_series(1, 200000) g;
ANALYZE many_words;
SET work_mem = '32MB';
EXPLAIN (COSTS OFF) SELECT count(*) FROM many_words GROUP BY w COLLATE "C";
EXPLAIN (COSTS OFF) SELECT count(*) FROM many_words GROUP BY w COLLATE "en-x-icu";
DROP TABLE many_words;

SET client_min_messages = warning;
DROP TABLE words;
DROP EXTENSION citext;
DROP COLLATION any_case, with_numbers, letters_first, c_utf8 CASCADE;
