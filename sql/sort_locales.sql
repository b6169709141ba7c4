--
-- Collations of the C library that do not compare bytes
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
DO $$ BEGIN
	CREATE COLLATION english (provider = libc, locale = 'en_US.utf8');
	CREATE COLLATION czech (provider = libc, locale = 'cs_CZ.utf8');
	CREATE COLLATION danish (provider = libc, locale = 'da_DK.utf8');
	CREATE COLLATION japanese (provider = libc, locale = 'ja_JP.utf8');
EXCEPTION WHEN OTHERS THEN
	NULL;
END $$;
SELECT getdatabaseencoding() <> 'UTF8' OR
	   NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'english') AS skip \gset
\if :skip
\quit
\endif
RESET client_min_messages;

CREATE DOMAIN a_name AS varchar(40);
CREATE TABLE names AS
	SELECT g AS id, w AS t, w::varchar AS v, w::char(40) AS c, left(w, 12)::name AS n, w::a_name AS d
	FROM (SELECT g, CASE WHEN g % 40 > 0 THEN
		   (ARRAY['a', 'A', 'á', 'b', 'ch', 'Ch', 'cz', 'aa', 'Aa', 'az', 'å', 'o', 'ø', 'l·l', 'll', 'ß', 'ss', '', '日本', 'カ', 'и'])[1 + g % 21]
		   || substr(' common, ending-', 1, g % 17) || chr(945 + g % 7) || g % 37 END AS w
		  FROM generate_series(1, 3000) g) words;
ANALYZE names;

-- every type, each way, in memory and on disk
SELECT collation_name, k, way,
	   check_sort(format('SELECT %I COLLATE %I AS k, id FROM names ORDER BY k %s', k, collation_name, way),
				  'k' || CASE WHEN way ~ 'id' THEN ', id' ELSE '' END)
FROM unnest('{english,czech,danish,japanese}'::text[]) collation_name,
	 unnest('{t,v,c,n,d}'::text[]) k, unnest(ARRAY['', 'DESC NULLS LAST, id']) way;
SET work_mem = '64kB';
SELECT collation_name, check_sort(format('SELECT t COLLATE %I AS k, * FROM names ORDER BY k, id', collation_name), 'k, id', 'node')
FROM unnest('{english,czech,danish}'::text[]) collation_name;
RESET work_mem;

-- behind another key, and before one; few values; more than one word in common
SELECT check_sort('SELECT id % 10 AS a, t COLLATE czech AS b, id FROM names ORDER BY a, b, id', 'a, b, id');
SELECT check_sort('SELECT t COLLATE danish AS a, id % 10 AS b, id FROM names ORDER BY a DESC, b, id', 'a, b, id');
SELECT check_sort('SELECT left(t, 2) COLLATE english AS a, id FROM names ORDER BY a, id DESC', 'a, id');
SELECT check_sort('SELECT (repeat(''in common '', 20) || t) COLLATE english AS a, id FROM names ORDER BY a, id', 'a, id');
SELECT check_sort('SELECT (repeat(''in common '', 400 + id % 2) || t) COLLATE english AS a, id FROM names ORDER BY a, id LIMIT 500', 'a, id', 'node');

-- before another key, with letters of both cases: only of ASCII, some others, and more of them than a GPU's keys take
CREATE TABLE cases AS
	SELECT g AS id, translate(CASE g % 3 WHEN 0 THEN upper(w) WHEN 1 THEN initcap(w) ELSE w END, 'er', CASE WHEN g % 100 = 7 THEN 'ér' ELSE 'er' END) AS t
	FROM (SELECT g, (ARRAY['new york', 'york', 'a-b_c', 'ch ll', 'twenty characters, as', 'two more characters, as'])[1 + g / 7 % 6] AS w
		  FROM generate_series(1, 6000) g) words;
ANALYZE cases;
SELECT collation_name, accents, check_sort(format('SELECT t COLLATE %I AS a, id %% 10 AS b, id FROM cases WHERE %L OR t !~ ''é'' ORDER BY a %s, b DESC, id',
												  collation_name, accents, way), 'a, b, id')
FROM unnest('{english,czech,danish,japanese}'::text[]) collation_name, unnest('{f,t}'::bool[]) accents, unnest('{"",DESC NULLS FIRST}'::text[]) way;
SELECT check_sort(format('SELECT id %% 7 AS a, t COLLATE %I AS b, upper(t) COLLATE english AS c, id FROM cases ORDER BY a, b, c, id', collation_name), 'a, b, c, id')
FROM unnest('{english,czech,danish,japanese}'::text[]) collation_name;

-- groups, DISTINCT, windows, merge joins
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT check_sort('SELECT t COLLATE czech AS k, count(*) FROM names GROUP BY k ORDER BY k', 'k');
SELECT check_sort('SELECT DISTINCT t COLLATE danish AS k FROM names ORDER BY k DESC', 'k');
SELECT check_sort('SELECT id, rank() OVER (ORDER BY t COLLATE english) AS r FROM names ORDER BY id', 'id');
SELECT check_sort('SELECT a.id AS a, b.id AS b FROM names a JOIN names b ON a.v COLLATE english = b.t AND b.id < 900 WHERE a.id < 900 ORDER BY 1, 2', 'a, b');
RESET enable_hashagg;
RESET enable_hashjoin;
RESET enable_nestloop;

-- an array is sorted by the same collation, and an index finds what it should
SELECT gpu_sort(array_agg(t COLLATE czech)) = array_agg(t COLLATE czech ORDER BY t COLLATE czech) AS same FROM names;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS amcheck;
RESET client_min_messages;
SET pg_gpusort.min_rows = 0;
SELECT format('CREATE INDEX names_%s ON names (%I COLLATE %I, id); SELECT bt_index_parent_check(''names_%1$s'', true, true)', c || k, k, c)
FROM unnest('{english,czech,danish}'::text[]) c, unnest('{t,c,n}'::text[]) k \gexec

RESET pg_gpusort.min_rows;
DROP TABLE names;
DROP DOMAIN a_name;
DROP COLLATION english, czech, danish, japanese;
