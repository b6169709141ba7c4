--
-- What the tests of ORDER BY have in common: the first of them to run
-- needs: cpu_or_gpu
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_gpusort;
RESET client_min_messages;
LOAD 'pg_gpusort';

-- The plan of a query as lines, with numbers that vary from run to run
-- replaced by N.
CREATE FUNCTION explain_lines(query text, options text DEFAULT 'COSTS OFF')
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		line := regexp_replace(line, '(Memory|Disk): \d+kB', '\1: NkB', 'g');
		line := regexp_replace(line, '"Sort Space Used": \d+', '"Sort Space Used": N');
		line := regexp_replace(line, '\d+\.\d+ ms', 'N ms', 'g');
		-- PostgreSQL 18 shows parts of rows, and the windows
		line := regexp_replace(line, '(rows=\d+)\.\d+', '\1');
		CONTINUE WHEN line ~ '^ *Window: ';
		RETURN NEXT line;
	END LOOP;
END $$;

-- How many nodes of a query's plan are GpuSort or GpuIncrementalSort nodes.
CREATE FUNCTION count_gpusorts(query text) RETURNS integer
LANGUAGE sql AS $$
	SELECT count(*)::integer FROM explain_lines(query) line
	WHERE line ~ 'Custom Scan \(Gpu(Incremental)?Sort\)';
$$;

-- What EXPLAIN ANALYZE says of the sorts of a query.
CREATE FUNCTION explain_sorts(query text) RETURNS SETOF text
LANGUAGE sql AS $$
	SELECT ltrim(line)
	FROM explain_lines(query,
					   'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF') line
	WHERE line ~ '(GpuSort|Sort Method|Sort Fallback|GPU Not Used)';
$$;

-- Keep the rows of a query in a table: their number in the order in which they
-- come, all of their columns bit for bit, and the columns that are the keys.
CREATE FUNCTION keep_rows(kept text, query text, keys text) RETURNS void
LANGUAGE plpgsql SET client_min_messages = warning AS $$
BEGIN
	EXECUTE format('DROP TABLE IF EXISTS pg_temp.%I', kept);
	EXECUTE format('CREATE TEMP TABLE %I AS SELECT row_number() OVER () AS place,
				   record_send(kept_row) AS whole, %s FROM (%s) kept_row', kept, keys, query);
END $$;

-- Compare what the two tables hold: NULL, or what the difference is.
CREATE FUNCTION compare_rows(keys text, exact boolean) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	ours text;
	stocks text;
	different bigint;
BEGIN
	SELECT 'ROW(' || string_agg('ours.' || key, ', ') || ')',
		   'ROW(' || string_agg('stocks.' || key, ', ') || ')'
	INTO ours, stocks FROM regexp_split_to_table(keys, ', *') key;
	EXECUTE format('SELECT min(coalesce(ours.place, stocks.place))
				   FROM pg_temp.ours FULL JOIN pg_temp.stocks USING (place)
				   WHERE ours.place IS NULL OR stocks.place IS NULL OR
				   %s IS DISTINCT FROM %s OR
				   %L AND ours.whole <> stocks.whole', ours, stocks, exact)
	INTO different;
	IF different IS NOT NULL THEN
		RETURN format('row %s differs from stock PostgreSQL', different);
	END IF;
	SELECT count(*) INTO different FROM (
		(SELECT whole FROM pg_temp.ours EXCEPT ALL SELECT whole FROM pg_temp.stocks)
		UNION ALL
		(SELECT whole FROM pg_temp.stocks EXCEPT ALL SELECT whole FROM pg_temp.ours)) d;
	IF different > 0 THEN
		RETURN format('%s rows are in only one of the results', different);
	END IF;
	RETURN NULL;
END $$;

-- Sort with GpuSort and with stock PostgreSQL: the keys have to be the same
-- row by row, and the rows the same but for their order among equal keys.
-- With pg_gpusort.debug_stock_ties, that order has to be the same too, given
-- the plan of stock PostgreSQL, which pg_gpusort.debug_hide keeps.
--
-- 'keys' are the query's sort keys, which have to be columns of its output.
-- 'require' is what pg_gpusort.debug_require is set to.
CREATE FUNCTION check_sort(query text, keys text, require text DEFAULT 'cpu')
RETURNS text LANGUAGE plpgsql
SET pg_gpusort.enable = on
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off
SET pg_gpusort.debug_stock_ties = off
SET pg_gpusort.debug_hide = off
AS $$
DECLARE
	gpusorts integer := count_gpusorts(query);
	nrows bigint;
	difference text;
BEGIN
	IF gpusorts = 0 THEN
		RETURN 'no GpuSort in the plan';
	END IF;
	SET LOCAL pg_gpusort.enable = off;
	IF count_gpusorts(query) > 0 THEN
		RETURN 'a GpuSort in spite of pg_gpusort.enable = off';
	END IF;
	PERFORM keep_rows('stocks', query, keys);

	SET LOCAL pg_gpusort.enable = on;
	PERFORM set_config('pg_gpusort.debug_require', require, true);
	PERFORM keep_rows('ours', query, keys);
	SET LOCAL pg_gpusort.debug_require = off;
	SET LOCAL pg_gpusort.enable = off;
	SELECT count(*) INTO nrows FROM pg_temp.ours;
	difference := compare_rows(keys, false);
	IF difference IS NOT NULL THEN
		RETURN difference;
	END IF;
	IF require <> 'cpu' THEN
		RETURN format('same %s rows, %s GpuSort', nrows, gpusorts);
	END IF;

	SET LOCAL pg_gpusort.enable = on;
	PERFORM set_config('pg_gpusort.debug_require', require, true);
	SET LOCAL pg_gpusort.debug_stock_ties = on;
	SET LOCAL pg_gpusort.debug_hide = on;
	PERFORM keep_rows('ours', query, keys);
	SET LOCAL pg_gpusort.debug_require = off;
	SET LOCAL pg_gpusort.enable = off;
	RETURN coalesce('with stock ties: ' || compare_rows(keys, true),
					format('same %s rows, %s GpuSort', nrows, gpusorts));
END $$;

-- The error that a statement raises, or its success.
CREATE OR REPLACE FUNCTION error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	RETURN message || coalesce(' / ' || nullif(detail, ''), '');
END $$;

-- The helpers can fail.
CREATE TABLE helper_check AS SELECT g % 7 AS k, g AS v FROM generate_series(1, 50) g;
SELECT check_sort('SELECT k, v FROM helper_check ORDER BY k', 'k');
SELECT check_sort('SELECT k, v FROM helper_check', 'k');
SELECT check_sort('SELECT k, random() FROM helper_check ORDER BY k', 'k');
SELECT check_sort('SELECT v, (random() * 1e9)::int AS k FROM helper_check ORDER BY v', 'k');
DROP TABLE helper_check;
