--
-- More rows than fit into pg_gpusort.work_mem: sorted runs on disk, and their merge
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64kB';
-- rows that the planner knows nothing of
CREATE FUNCTION unforeseen(n int, OUT id int, OUT k int8, OUT t text) RETURNS SETOF record
LANGUAGE plpgsql ROWS 10 AS $$
BEGIN
	RETURN QUERY SELECT g, CASE WHEN g % 10 > 0 THEN g * 7919::int8 % 10007 - 5000 END, md5(g::text)
		FROM generate_series(1, n) g;
END $$;

SELECT check_sort('SELECT * FROM unforeseen(10000) ORDER BY k', 'k', 'node');
SELECT check_sort('SELECT * FROM unforeseen(10000) ORDER BY k DESC', 'k', 'node');
SELECT check_sort('SELECT * FROM unforeseen(10000) ORDER BY k NULLS FIRST, id DESC', 'k, id', 'node');
SELECT check_sort('SELECT k FROM unforeseen(10000) ORDER BY k', 'k', 'node');
SELECT check_sort('SELECT nullif(id, id) AS k, id FROM unforeseen(10000) ORDER BY 1', 'k', 'node');
SELECT check_sort('SELECT id, repeat(t, 500) AS t FROM unforeseen(300) ORDER BY id DESC', 'id', 'node');
-- a row that alone is larger than the memory
SELECT check_sort('SELECT id, repeat(t, 5000) AS t FROM unforeseen(30) ORDER BY id DESC', 'id', 'node');
SELECT check_sort('SELECT id, CASE WHEN id % 100 = 0 THEN repeat(t, 3000) END AS t FROM unforeseen(900) ORDER BY id DESC', 'id', 'node');
-- about as many as fit, and one more, at the end of a chunk or not
SELECT result, count(*) FROM generate_series(1, 30) n,
	LATERAL regexp_replace(check_sort(format('SELECT id, k FROM unforeseen(%s) ORDER BY k', n * 64 + n % 3 - 1), 'k', 'node'), '\d+ rows', 'rows') result
GROUP BY result;

SET pg_gpusort.min_rows = 0;
-- what EXPLAIN says of it, and that this is an error if the memory has to do
SELECT * FROM explain_sorts('SELECT * FROM unforeseen(10000) ORDER BY k');
SELECT * FROM explain_sorts('SELECT * FROM unforeseen(100) ORDER BY k');
SET pg_gpusort.debug_require = cpu;
SELECT error_of('SELECT * FROM unforeseen(10000) ORDER BY k');
SET pg_gpusort.work_mem = '8MB';
SELECT error_of('SELECT * FROM unforeseen(10000) ORDER BY k');
RESET pg_gpusort.work_mem;
SET pg_gpusort.debug_require = node;

-- backward scans
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM unforeseen(5000) ORDER BY id;
FETCH 2 FROM c;
FETCH ABSOLUTE 4000 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
FETCH RELATIVE 1234 FROM c;
COMMIT;

-- mark and restore
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT * FROM unforeseen(4000) a JOIN unforeseen(4000) b ON a.k / 100 = b.k / 100;
RESET pg_gpusort.debug_require;
SELECT check_sort('SELECT a.id AS a, b.id AS b FROM unforeseen(1500) a JOIN unforeseen(1500) b ON a.k / 100 = b.k / 100 ORDER BY 1, 2', 'a, b', 'node');
SELECT check_sort('SELECT a.id AS a, b.id AS b FROM unforeseen(1500) a LEFT JOIN unforeseen(1500) b ON a.k = b.k AND a.id < b.id ORDER BY 1, 2', 'a, b', 'node');

-- rescans: of the same input, whose sorted rows are kept, and of others
SET enable_mergejoin = off;
RESET enable_nestloop;
SELECT check_sort('SELECT o AS o, s.id FROM generate_series(1, 5) o LEFT JOIN (SELECT id, k FROM unforeseen(3000) ORDER BY k, id OFFSET 0) s ON s.k % 1000 = o ORDER BY 1, 2', 'o, id', 'node');
SELECT check_sort('SELECT o AS o, s.id FROM generate_series(1, 5) o, LATERAL (SELECT id FROM unforeseen(o * 900) ORDER BY k, id OFFSET o * 880) s ORDER BY 1, 2', 'o, id', 'node');
RESET enable_mergejoin;
RESET enable_hashjoin;
RESET enable_material;

-- abandoned halfway
SELECT count(*) FROM (SELECT id FROM unforeseen(10000) ORDER BY k LIMIT 3 OFFSET 3000) s;
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM unforeseen(5000) ORDER BY id;
FETCH 1 FROM c;
SAVEPOINT s;
DECLARE d CURSOR FOR SELECT id, 1 / (200 - id) AS e FROM unforeseen(5000) ORDER BY id DESC;
FETCH 1 FROM d;
ROLLBACK TO s;
FETCH 1 FROM c;
COMMIT;

RESET pg_gpusort.debug_require;

-- Any memory: the rows, and rows with equal keys in the order in which they
-- came, as stock has them sorted by that order at last.
CREATE TABLE runs AS SELECT g AS arrival, (g * 7919::int8) % 1009 AS few, hashint8(g) AS many,
		CASE WHEN g % 3 = 0 THEN hashint4(g) % 100 END AS n, CASE WHEN g % 200 > 0 THEN g % 2 = 0 END AS b,
		repeat('x', g % 50) AS t, CASE WHEN g % 1000 = 0 THEN repeat(md5(g::text), 400) END AS wide
	FROM generate_series(1, 10000) g;
ANALYZE runs;
CREATE FUNCTION check_stable(query text, keys text, memory text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
AS $$
DECLARE
	before bigint := (SELECT sorts FROM pg_stat_gpusort WHERE backend = 'external');
	after bigint;
	ours text[];
	stocks text[];
BEGIN
	SET LOCAL pg_gpusort.enable = off;
	EXECUTE format('SELECT array_agg(md5(s::text)) FROM (%s ORDER BY %s, arrival OFFSET 0) s', query, keys) INTO stocks;
	SET LOCAL pg_gpusort.enable = on;
	PERFORM set_config('pg_gpusort.work_mem', memory, true);
	EXECUTE format('SELECT array_agg(md5(s::text)) FROM (%s ORDER BY %s OFFSET 0) s', query, keys) INTO ours;
	RESET pg_gpusort.work_mem;
	SELECT sorts - before INTO after FROM pg_stat_gpusort WHERE backend = 'external';
	RETURN format('%s, %s', CASE after WHEN 0 THEN 'in memory' WHEN 1 THEN 'on disk' ELSE after::text END,
				  CASE WHEN ours = stocks THEN 'stable' ELSE 'wrong' END);
END $$;
SELECT memory, result, count(*) FROM unnest('{64kB,100kB,300kB,700kB,16MB}'::text[]) memory,
	unnest('{few DESC,many,"n, few","n DESC, b","b DESC NULLS LAST, n NULLS FIRST, few DESC",arrival,arrival DESC,b}'::text[]) keys,
	LATERAL check_stable('SELECT * FROM runs', keys, memory) result
GROUP BY memory, result ORDER BY pg_size_bytes(memory), result;
-- keys whose encoding is not exact
SELECT memory, result, count(*) FROM unnest('{64kB,400kB,16MB}'::text[]) memory,
	unnest(ARRAY['(repeat(''x'', 20) || few) COLLATE "C"', '(repeat(''beginning'', 60) || few % 40) COLLATE "C" DESC, b', 't COLLATE "C" DESC, b', 'few::numeric / 7', 'b, to_jsonb(n), few', 'wide COLLATE "C" NULLS FIRST, n',
		'left(wide, 3) COLLATE "C" DESC NULLS LAST, few % 3', 'n, many, few, b, arrival::int8, t COLLATE "C"', 'nullif(few, few)::text COLLATE "C", n::text COLLATE "C"']) keys,
	LATERAL check_stable('SELECT * FROM runs', keys, memory) result
GROUP BY memory, result ORDER BY pg_size_bytes(memory), result;
-- so many runs that they are merged several times, and fewer
SELECT memory, result, count(*) FROM unnest('{64kB,65kB,130kB,300kB}'::text[]) memory, unnest('{few,n DESC,arrival}'::text[]) keys,
	LATERAL check_stable('SELECT g AS arrival, g % 1009 AS few, nullif(g % 7, 0) AS n FROM generate_series(1, 60000) g', keys, memory) result
GROUP BY memory, result ORDER BY pg_size_bytes(memory), result;
-- runs that hardly overlap, of which whole blocks come before all others, with ties at their ends
SELECT memory, result, count(*) FROM unnest('{64kB,200kB,1MB}'::text[]) memory,
	unnest(ARRAY['arrival', 'arrival / 7', 'arrival / 7 DESC', 'arrival / 3000 DESC', 'arrival + few', 'arrival - few * 30', 'least(arrival, 20000) DESC', '(arrival / 5000) % 3, arrival DESC',
		'nullif(greatest(arrival, 30000), 30000) NULLS FIRST', 'nullif(least(arrival, 30000), 30000) DESC NULLS FIRST', '(''customer '' || arrival) COLLATE "C"', '(''customer '' || 10000000 - arrival / 5) COLLATE "C"',
		'arrival::numeric / 7 DESC', 'arrival / 20, few']) keys,
	LATERAL check_stable('SELECT * FROM (SELECT g AS arrival, g % 1009 AS few FROM generate_series(1, 60000) g) s', keys, memory) result
GROUP BY memory, result ORDER BY pg_size_bytes(memory), result;
-- strings that begin alike, or mostly do
SELECT memory, result, count(*) FROM unnest('{64kB,200kB,1MB}'::text[]) memory,
	unnest(ARRAY['(''customer '' || few) COLLATE "C" DESC', '(''customer '' || many) COLLATE "C", few', '(CASE WHEN arrival % 100 = 0 THEN ''zebra '' ELSE ''customer '' END || few) COLLATE "C"',
		'(CASE WHEN arrival % 100 = 0 THEN '''' WHEN arrival % 70 > 0 THEN ''customer '' || few END) COLLATE "C" DESC NULLS LAST, n', '(CASE WHEN arrival % 7 > 0 THEN ''customer '' || repeat(''x'', few::int) || b END) COLLATE "C" NULLS FIRST',
		'(''customer '' || few)::bytea || ''\000''::bytea || few::text::bytea', '(''customer '' || few)::bytea || substr(''\000000''::bytea, 1, arrival % 3) DESC', '(''customer '' || few || repeat('' '', arrival % 4))::char(40) COLLATE "C"', '(''customer '' || few)::name DESC',
		'(''customer '' || repeat(md5(few::text), 300)) COLLATE "C"']) keys,
	LATERAL check_stable('SELECT * FROM runs', keys, memory) result
GROUP BY memory, result ORDER BY pg_size_bytes(memory), result;
-- rows all of which are longer than the memory
SELECT check_stable('SELECT arrival, few % 7 AS few, repeat(md5(few::text), 3000) AS t FROM runs WHERE arrival % 100 = 0', 'few', '64kB');
DROP FUNCTION check_stable;

-- A cursor in all directions: what it fetches at places all over must be what
-- it fetched there on the way forward.
CREATE FUNCTION check_cursor(query text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = node
AS $$
DECLARE
	c refcursor;
	row record;
	forward text[];
	backward text[];
	place int;
BEGIN
	OPEN c SCROLL FOR EXECUTE query;
	LOOP
		FETCH NEXT FROM c INTO row;
		EXIT WHEN NOT FOUND;
		forward := forward || md5(row::text);
	END LOOP;
	LOOP
		FETCH PRIOR FROM c INTO row;
		EXIT WHEN NOT FOUND;
		backward := md5(row::text) || backward;
	END LOOP;
	IF backward <> forward THEN
		RETURN 'backward differs';
	END IF;
	FOR i IN 1 .. 300 LOOP
		place := 1 + abs(hashint4(i)) % cardinality(forward);
		FETCH ABSOLUTE place FROM c INTO row;
		IF md5(row::text) <> forward[place] THEN
			RETURN format('row %s differs', place);
		END IF;
		FETCH PRIOR FROM c INTO row;
		FETCH RELATIVE 2 FROM c INTO row;
		IF place < cardinality(forward) AND md5(row::text) <> forward[place + 1] THEN
			RETURN format('row %s differs behind %s', place + 1, place);
		END IF;
	END LOOP;
	CLOSE c;
	RETURN format('%s rows', cardinality(forward));
END $$;
SELECT memory, keys, check_cursor(format('SELECT * FROM runs WHERE arrival <= 3000 ORDER BY %s', keys))
FROM unnest('{64kB,300kB}'::text[]) memory, set_config('pg_gpusort.work_mem', memory, false), unnest('{few,arrival DESC}'::text[]) keys;
SELECT check_cursor('SELECT arrival, few FROM runs WHERE arrival <= 4000 ORDER BY few');
RESET pg_gpusort.work_mem;
DROP FUNCTION check_cursor;
-- what EXPLAIN calls a sort whose rows are kept to be read again
BEGIN;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_nestloop = off;
SET LOCAL enable_material = off;
SELECT * FROM explain_sorts('SELECT a.arrival FROM runs a JOIN runs b ON a.few = b.few WHERE a.arrival <= 5000 AND b.arrival <= 5000');
ROLLBACK;
DROP TABLE runs;

-- files are no larger than those of stock PostgreSQL, whatever the rows are, but for the
-- half of a row that remains free in a block, which has 8 kB with so little memory
CREATE FUNCTION disk_kb(query text, ours boolean) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('pg_gpusort.enable', ours::text, true),
		set_config('pg_gpusort.debug_require', CASE WHEN ours THEN 'node' ELSE 'off' END, true);
	EXECUTE format('EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) %s', query) INTO plan;
	plan := plan -> 0 -> 'Plan';
	IF plan ->> 'Sort Space Type' IS DISTINCT FROM 'Disk' OR
		(plan ->> 'Node Type' = 'Sort') = ours THEN
		RAISE EXCEPTION 'the plan is %', plan;
	END IF;
	RETURN plan ->> 'Sort Space Used';
END $$;
CREATE TEMP TABLE shapes AS
	SELECT i AS id, hashint8extended(i, 7) AS k8, i % 100 AS a, i % 1000 AS b, NULL::int8 AS n8,
		CASE WHEN i % 3 = 0 THEN i END AS s8, hashint8(i) / 7.0::float8 AS f, i % 2 = 0 AS bo,
		'customer ' || i AS c1, CASE WHEN i % 2 = 0 THEN 'x' || i % 7 END AS c2, NULL::text AS c3,
		'some comment text of forty characters ...' AS c4, repeat(md5(i::text), 6) AS long,
		(i % 10000)::numeric(12, 2) AS n, md5(i::text)::uuid AS u, md5(i::text)::name AS name,
		date '2020-01-01' + (i % 1000)::int AS d
	FROM generate_series(1, 20000) i;
ANALYZE shapes;
SET work_mem = '256kB';
SET pg_gpusort.backend = cpu;
SELECT columns, disk_kb(query, true) <= disk_kb(query, false) * 1.04 AS fits
FROM unnest('{*,"id, k8","id, c1","k8, a, n8, s8","n8, n8, n8, n8, s8, s8, k8","k8, c2","k8, c3","k8, long","k8, u, name","k8, bo, bo, bo",
		"k8, n","c1, c2, k8","k8, f, d, a, b","id, k8, c4, long, n, u","s8, c2, c3, n8, k8, bo"}'::text[]) columns,
	format('SELECT %s FROM shapes ORDER BY k8', columns) query;
RESET pg_gpusort.backend;
SET work_mem = '64kB';
DROP TABLE shapes;
DROP FUNCTION disk_kb;

-- temporary files do not outlive the statement
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';
DROP FUNCTION unforeseen;
