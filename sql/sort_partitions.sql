--
-- Windows that want the first rows of each partition only: the sort below them skips the others
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.work_mem = '64MB';
SET pg_gpusort.debug_require = node;
SET enable_incremental_sort = off;
CREATE TABLE parted AS
	SELECT g AS id, CASE WHEN g % 100 > 0 THEN hashint4(g) % 40 END AS few, hashint4(g + 1) % 9000 AS many, g AS alone, 1 AS one,
		   CASE hashint4(g + 2) % 5 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 WHEN 2 THEN 'NaN' ELSE g % 3 END AS special,
		   'in common with all others ' || hashint4(g + 3) % 300 AS t, (hashint4(g + 4) % 200)::numeric / 8 AS n
	FROM generate_series(1, 20000) g;
ANALYZE parted;

-- How many rows of each partition are wanted, and whether the rows are those of stock PostgreSQL.
CREATE FUNCTION check_partitions(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	digest text := format('SELECT count(*) || '' rows, '' || coalesce(sum(hashtextextended(s::text, 0)), 0) FROM (%s) s', query);
	require text := current_setting('pg_gpusort.debug_require');
	wanted text;
	ours text;
	stocks text;
BEGIN
	SELECT string_agg(substring(l, 'Partition: (.*)'), ', ') INTO wanted FROM explain_lines(query, 'COSTS OFF') l;
	EXECUTE digest INTO ours;
	SET LOCAL pg_gpusort.enable = off;
	SET LOCAL pg_gpusort.debug_require = off;
	EXECUTE digest INTO stocks;
	SET LOCAL pg_gpusort.enable = on;
	PERFORM set_config('pg_gpusort.debug_require', require, true);
	RETURN coalesce(wanted, 'all') || CASE WHEN ours = stocks THEN ' of ' || substring(ours, '.* rows') ELSE ', not ' || stocks || ' but ' || ours END;
END $$;

-- Releases differ in what they say of windows.
SELECT l FROM explain_lines('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY many DESC, id) AS r FROM parted) s WHERE r <= 3', 'COSTS OFF') l
WHERE l !~ 'Window|Run Condition';

-- each condition, and those that leave all rows
SELECT check_partitions(format('SELECT * FROM (SELECT id, few, row_number() OVER (PARTITION BY few ORDER BY many DESC, id) AS r FROM parted) s WHERE %s', condition))
FROM unnest(ARRAY['r <= 3', 'r < 3', 'r = 1', 'r = 4', 'r < 2::int2', 'r <= 700::int8', 'r <= 5 AND r < 3', 'r BETWEEN 2 AND 3', 'r <= 0', 'r <= -7', 'r < 1',
	'3 > r', 'r <= 2.5', 'r > 3', 'r <= NULL::int', 'r <= id', 'r <= 3000000', 'r % 2 = 0']) WITH ORDINALITY AS u(condition, n)
ORDER BY n;

-- partitions of each kind
SELECT check_partitions(format('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY %s) AS r FROM parted) s WHERE r <= 2', partition))
FROM unnest(ARRAY['many ORDER BY id', 'alone ORDER BY id', 'one ORDER BY id', 'special ORDER BY id', 't ORDER BY id', 'n ORDER BY id', 'few, many ORDER BY id', 'many, few ORDER BY t, id',
	't, special ORDER BY n DESC NULLS FIRST, id', 'few ORDER BY few, id', 'few ORDER BY id DESC', 'few % 2, n ORDER BY id', 'upper(t) ORDER BY id']) WITH ORDINALITY AS u(partition, n)
ORDER BY n;

-- other functions, and other windows
SELECT check_partitions(format('SELECT * FROM (SELECT id, %s FROM parted WINDOW w AS (PARTITION BY few ORDER BY many, id), x AS (PARTITION BY few, t ORDER BY id)) s WHERE r <= 2', functions))
FROM unnest(ARRAY['row_number() OVER w AS r, row_number() OVER w + 1 AS q', 'row_number() OVER w AS r, lead(id) OVER w AS l', 'row_number() OVER w AS r, count(*) OVER w AS c',
	'rank() OVER w AS r', 'dense_rank() OVER w AS r', 'count(*) OVER w AS r', 'row_number() OVER w AS r, row_number() OVER x AS q', 'row_number() OVER x AS r, sum(id) OVER w AS q',
	'row_number() OVER w AS r, sum(id) OVER x AS q']) WITH ORDINALITY AS u(functions, n)
ORDER BY n;

-- without a partition, twice, above groups, and again and again
SELECT check_partitions('SELECT * FROM (SELECT id, row_number() OVER (ORDER BY many, id) AS r FROM parted) s WHERE r <= 2');
SELECT check_partitions('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY few % 3 ORDER BY many, id) AS q FROM
	(SELECT id, few, many, row_number() OVER (PARTITION BY few ORDER BY id) AS r FROM parted) s WHERE r <= 20) s WHERE q <= 4');
SELECT check_partitions('SELECT * FROM (SELECT few, n, count(*), row_number() OVER (PARTITION BY few ORDER BY count(*) DESC, n) AS r FROM parted GROUP BY few, n) s WHERE r = 1');
SELECT check_partitions('SELECT o, s.* FROM generate_series(0, 3) o, LATERAL (SELECT * FROM
	(SELECT id, row_number() OVER (PARTITION BY few ORDER BY many, id) AS r FROM parted WHERE id % 4 = o OR o = 1) s WHERE r <= 2) s');
SELECT check_partitions('SELECT o, (SELECT sum(id) FROM (SELECT id, row_number() OVER (PARTITION BY few ORDER BY many, id) AS r FROM parted) s WHERE r <= 2 AND id > o) FROM generate_series(0, 3) o');

-- on disk, with whole tuples, and with all rows compared
SET pg_gpusort.work_mem = '64kB';
SELECT check_partitions(format('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY %s ORDER BY n, id) AS r FROM parted) s WHERE r <= %s', partition, n))
FROM unnest(ARRAY['few', 'many', 't']) WITH ORDINALITY AS u(partition, n) ORDER BY n;
SET pg_gpusort.work_mem = '64MB';
SET pg_gpusort.debug_whole_tuples = on;
SET pg_gpusort.verify = 'all';
SELECT check_partitions(format('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY %s ORDER BY n, id) AS r FROM parted) s WHERE r <= %s', partition, n))
FROM unnest(ARRAY['few', 'many', 't']) WITH ORDINALITY AS u(partition, n) ORDER BY n;
RESET pg_gpusort.debug_whole_tuples;
RESET pg_gpusort.verify;

DROP TABLE parted;
DROP FUNCTION check_partitions;
