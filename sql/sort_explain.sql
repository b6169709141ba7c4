--
-- EXPLAIN of a GpuSort: the sort key as stock PostgreSQL prints it, methods,
-- workers, all formats
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET work_mem = '16MB';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE explained AS
	SELECT g AS a, g % 10 AS b, g::float8 AS "Odd Name", g % 2 = 0 AS d, g::text::"char" AS c
	FROM generate_series(1, 1000) g;
ANALYZE explained;

-- The lines about sort keys that stock prints have to be ours.  SubPlans have other
-- names since 19.
CREATE FUNCTION same_sort_key(query text, options text DEFAULT 'COSTS OFF') RETURNS text
LANGUAGE plpgsql SET pg_gpusort.min_rows = 0 SET pg_gpusort.enable = on AS $$
DECLARE
	ours text[];
	stocks text[];
BEGIN
	IF count_gpusorts(query) = 0 THEN
		RETURN 'no GpuSort';
	END IF;
	SELECT array_agg(btrim(l, ' ,')) INTO ours FROM explain_lines(query, options) l
	WHERE l ~ 'Sort.Key';
	SET LOCAL pg_gpusort.enable = off;
	SELECT array_agg(btrim(l, ' ,')) INTO stocks FROM explain_lines(query, options) l
	WHERE l ~ 'Sort.Key';
	RETURN CASE WHEN ours = stocks
		   THEN regexp_replace(array_to_string(ours, ' / '), 'SubPlan \w+', 'SubPlan')
		   ELSE format('%s instead of %s', ours, stocks) END;
END $$;
SELECT same_sort_key('SELECT * FROM explained ORDER BY ' || keys) FROM unnest(ARRAY[
	'a', 'a DESC', 'a NULLS FIRST', 'a DESC NULLS LAST', 'a DESC, b NULLS FIRST, d',
	'a USING <', 'a USING >', 'a USING > NULLS LAST', '"Odd Name" DESC', 'a + b, -a', 'a::int8 DESC', 'c', '"Odd Name" + 1',
	'CASE WHEN d THEN a END', '(SELECT a)', 'abs(a) DESC']) keys;
SELECT same_sort_key('SELECT * FROM explained x, explained y WHERE x.a = y.a ORDER BY x.b, y.b DESC');
SELECT same_sort_key('SELECT * FROM explained x ORDER BY b', 'COSTS OFF, VERBOSE');
SELECT same_sort_key('SELECT b AS renamed, a AS b FROM explained ORDER BY renamed');
SELECT same_sort_key('SELECT count(*) FROM explained GROUP BY a ORDER BY count(*)');
SELECT same_sort_key('SELECT a, row_number() OVER (PARTITION BY d ORDER BY b DESC) FROM explained');
SET enable_hashagg = off;
SELECT same_sort_key('SELECT a, b + 1, count(*) FROM explained GROUP BY 1, 2 ORDER BY 1 DESC, 2');
RESET enable_hashagg;
-- constants, which are keys below a Merge Append
CREATE INDEX explained_a ON explained (a, b);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT same_sort_key('SELECT a, b, a + b FROM explained UNION ALL SELECT 42, 42, b FROM explained WHERE a < 100 ORDER BY a, b');
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX explained_a;
SELECT same_sort_key('SELECT * FROM explained x, LATERAL (SELECT * FROM explained y WHERE y.b = x.a ORDER BY y.a + x.b OFFSET 0) z');
-- an operator that is neither "<" nor ">" by name
SET client_min_messages = warning;
CREATE FUNCTION below(int4, int4) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE FUNCTION at_most(int4, int4) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4le';
CREATE FUNCTION at_least(int4, int4) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4ge';
CREATE FUNCTION above(int4, int4) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4gt';
CREATE OPERATOR <<< (FUNCTION = below, LEFTARG = int4, RIGHTARG = int4, COMMUTATOR = >>>, NEGATOR = >>>=);
CREATE OPERATOR <<<= (FUNCTION = at_most, LEFTARG = int4, RIGHTARG = int4, COMMUTATOR = >>>=, NEGATOR = >>>);
CREATE OPERATOR >>>= (FUNCTION = at_least, LEFTARG = int4, RIGHTARG = int4, COMMUTATOR = <<<=, NEGATOR = <<<);
CREATE OPERATOR >>> (FUNCTION = above, LEFTARG = int4, RIGHTARG = int4, COMMUTATOR = <<<, NEGATOR = <<<=);
CREATE OPERATOR CLASS other_int_ops FOR TYPE int4 USING btree AS
	OPERATOR 1 <<<, OPERATOR 2 <<<=, OPERATOR 3 =, OPERATOR 4 >>>=, OPERATOR 5 >>>,
	FUNCTION 1 btint4cmp(int4, int4);
RESET client_min_messages;
SELECT same_sort_key('SELECT * FROM explained ORDER BY ' || keys) FROM unnest(ARRAY[
	'a USING <<<', 'a USING >>>', 'a USING <<< NULLS FIRST', 'a USING >>> NULLS LAST, b']) keys;
SELECT check_sort('SELECT a % 13 AS k, a FROM explained ORDER BY a % 13 USING >>>, a USING <<<', 'k, a');

-- the whole plan, and the same plan hidden
SET pg_gpusort.min_rows = 0;
EXPLAIN (COSTS OFF) SELECT * FROM explained ORDER BY a, b DESC;
EXPLAIN (COSTS OFF, VERBOSE) SELECT a + 1 AS e FROM explained ORDER BY a, b DESC;
SET pg_gpusort.debug_hide = on;
EXPLAIN (COSTS OFF) SELECT * FROM explained ORDER BY a, b DESC;
RESET pg_gpusort.debug_hide;

-- methods
SELECT * FROM explain_sorts('SELECT * FROM explained ORDER BY a');
SET pg_gpusort.backend = cpu;
SELECT * FROM explain_sorts('SELECT * FROM explained ORDER BY a');
RESET pg_gpusort.backend;
SET pg_gpusort.work_mem = '64kB';
SELECT * FROM explain_sorts('SELECT *, repeat(b::text, 100) FROM explained ORDER BY a');
RESET pg_gpusort.work_mem;
SELECT * FROM explain_sorts('SELECT * FROM explained WHERE a < 0 ORDER BY a');
-- a sort that is not reached
SELECT l FROM explain_lines('SELECT * FROM (SELECT 1) s, LATERAL (SELECT * FROM explained ORDER BY a OFFSET 0) e WHERE (SELECT false)',
							'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF') l WHERE l ~ 'Sort';
-- phases, with their times
SELECT l FROM explain_lines('SELECT * FROM explained ORDER BY a', 'ANALYZE, COSTS OFF, SUMMARY OFF, BUFFERS OFF') l
WHERE l ~ 'Sort (Phases|Key|Method)';

-- all formats have the same in them
CREATE FUNCTION explain_node(query text, options text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE format('EXPLAIN (%s, FORMAT JSON) %s', options, query) INTO plan;
	RETURN plan->0->'Plan';
END $$;
SELECT key, CASE WHEN key ~ '(Used|Time)$' THEN to_jsonb(jsonb_typeof(value)) ELSE value END AS value
FROM jsonb_each(explain_node('SELECT * FROM explained ORDER BY a DESC', 'ANALYZE, COSTS OFF, BUFFERS OFF'))
WHERE key ~ '(Sort|GPU|Node Type|Custom)' ORDER BY key COLLATE "C";
SELECT key, CASE WHEN key ~ '(Used|Time)$' THEN to_jsonb(jsonb_typeof(value)) ELSE value END AS value
FROM jsonb_each(explain_node('SELECT * FROM explained ORDER BY a DESC', 'ANALYZE, TIMING OFF, COSTS OFF, BUFFERS OFF'))
WHERE key ~ '(Sort|GPU|Node Type|Custom)' ORDER BY key COLLATE "C";
SET pg_gpusort.work_mem = '64kB';
SELECT key, CASE WHEN key ~ '(Used|Time)$' THEN to_jsonb(jsonb_typeof(value)) ELSE value END AS value
FROM jsonb_each(explain_node('SELECT *, repeat(b::text, 100) FROM explained ORDER BY a', 'ANALYZE, TIMING OFF, COSTS OFF, BUFFERS OFF'))
WHERE key ~ '(Sort|GPU|Node Type|Custom)' ORDER BY key COLLATE "C";
RESET pg_gpusort.work_mem;
CREATE FUNCTION explain_text(query text, options text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
BEGIN
	EXECUTE format('EXPLAIN (%s) %s', options, query) INTO plan;
	RETURN QUERY SELECT btrim(regexp_replace(l, '(Used[>"]?:? ?)\d+', '\1N')) FROM regexp_split_to_table(plan, '\n') l
		WHERE l ~ '(Sort-|Sort |GPU|Custom)';
END $$;
SELECT explain_text('SELECT * FROM explained ORDER BY a', 'ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF, BUFFERS OFF, FORMAT ' || format)
FROM unnest('{XML,YAML,JSON}'::text[]) format;

-- parallel workers, so many that it does not pay to sort above them
ALTER TABLE explained SET (parallel_workers = 4);
SET max_parallel_workers_per_gather = 4;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET enable_hashagg = off;
SET parallel_leader_participation = off;
SELECT * FROM explain_sorts('SELECT d, b, count(*) FROM explained GROUP BY d, b');
RESET parallel_leader_participation;
SELECT DISTINCT regexp_replace(l, '(Worker |rows=|loops=)\d+', '\1N', 'g') FROM explain_sorts('SELECT d, b, count(*) FROM explained GROUP BY d, b') l ORDER BY 1;
SELECT jsonb_typeof(w) AS workers, jsonb_array_length(w) AS number, property.key, count(*), bool_and(property.value = '"cpu radix"') AS method
FROM jsonb_path_query(explain_node('SELECT d, b, count(*) FROM explained GROUP BY d, b', 'ANALYZE, COSTS OFF, BUFFERS OFF'),
					  'strict $.**."Sort Workers"') w, jsonb_array_elements(w) AS worker(doc), jsonb_each(worker.doc) AS property(key, value)
GROUP BY w, property.key ORDER BY property.key COLLATE "C";

-- in YAML, depth is meaning: the node's own lines, and the workers'
CREATE FUNCTION yaml_depths(query text) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE
	plan text;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, FORMAT YAML) ' || query INTO plan;
	RETURN QUERY SELECT DISTINCT length(substring(l, '^ *')) FROM regexp_split_to_table(plan, '\n') l
		WHERE l ~ '^ *Sort (Method|Space|Drain|Time)';
END $$;
SET parallel_leader_participation = off;
SELECT count(*) AS depths FROM yaml_depths('SELECT d, b, count(*) FROM explained GROUP BY d, b');
RESET parallel_leader_participation;

-- a second word of strings, which takes 8 bytes a row, where statistics show that it tells them apart
CREATE FUNCTION memory_of(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' -> 'Sort Space Used';
END $$;
CREATE TABLE clients AS
	SELECT g AS id, ('client of ' || md5(g::text)) COLLATE "C" AS client, md5(g::text) COLLATE "C" AS code,
		   ('https://example.com/pages/' || md5(g::text)) COLLATE "C" AS url
	FROM generate_series(1, 20000) g;
SET pg_gpusort.work_mem = '64MB';
SET max_parallel_workers_per_gather = 0;
CREATE TEMP TABLE without AS
	SELECT keys, memory_of('SELECT * FROM clients ORDER BY ' || keys) AS memory
	FROM unnest('{client,"client, id",code,url}'::text[]) keys;
ANALYZE clients;
SELECT keys, (memory_of('SELECT * FROM clients ORDER BY ' || keys) - memory) * 1024 / 20000 AS bytes,
	   check_sort('SELECT * FROM clients ORDER BY ' || keys, keys)
FROM without;

DROP TABLE explained, clients;
DROP FUNCTION memory_of, yaml_depths, same_sort_key, explain_node, explain_text;
DROP OPERATOR CLASS other_int_ops USING btree;
DROP OPERATOR FAMILY other_int_ops USING btree;
