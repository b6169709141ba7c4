--
-- Functions that test/random/sorts calls, besides those of sql/sort_setup.sql
--

-- Moves a cursor over the query, and notes what it finds.  Before each move it pauses for the seconds of
-- random.pause, if that is set.
CREATE FUNCTION run_cursor(query text, moves text[], kind text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	step text;
	row_found record;
	result text := '';
BEGIN
	EXECUTE format('DECLARE moving %s CURSOR FOR %s', kind, query);
	FOREACH step IN ARRAY moves LOOP
		CONTINUE WHEN kind = 'NO SCROLL' AND step <> 'NEXT' AND step NOT SIMILAR TO 'RELATIVE [1-9]%';
		PERFORM pg_sleep(nullif(current_setting('random.pause', true), '')::float8);
		EXECUTE format('FETCH %s FROM moving', step) INTO row_found;
		result := result || E'\n' || step || ': ' || coalesce(row_found::text, 'none');
	END LOOP;
	EXECUTE 'CLOSE moving';
	RETURN result;
END $$;

CREATE FUNCTION check_cursor(query text, moves text[], kind text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off
SET pg_gpusort.enable = off AS $$
DECLARE
	stocks text := run_cursor(query, moves, kind);
	ours text;
BEGIN
	SET LOCAL pg_gpusort.enable = on;
	SET LOCAL pg_gpusort.debug_require = node;
	ours := run_cursor(query, moves, kind);
	RETURN CASE WHEN ours = stocks THEN format('same %s moves', cardinality(moves))
		   ELSE format(E'not the same\nstock:%s\nours:%s', stocks, ours) END;
END $$;

-- check_sort() while memory ends: what it says, or that there was an error because of it.  Rows
-- on a GPU that cannot be read for want of memory, nor come again, are a system_error.
CREATE FUNCTION check_memory(query text, keys text, fault text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('pg_gpusort.debug_fault', fault, true);
	RETURN check_sort(query, keys, 'off');
EXCEPTION WHEN out_of_memory OR system_error THEN
	RETURN 'same, as far as memory suffices';
END $$;

-- Prepares a query once, and executes it with each of the parameters.  Returns its
-- rows.
CREATE FUNCTION run_prepared(query text, parameters int8[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	parameter int8;
	part text;
	result text := '';
BEGIN
	EXECUTE format('PREPARE prepared (int8) AS
				   SELECT count(*) || '' '' || coalesce(md5(string_agg(record_send(r)::text, '' '' ORDER BY place)), '''')
				   FROM (SELECT r, row_number() OVER () AS place FROM (%s) r) r', query);
	FOREACH parameter IN ARRAY parameters LOOP
		EXECUTE format('EXECUTE prepared(%s)', parameter) INTO part;
		result := result || E'\n' || parameter || ': ' || part;
	END LOOP;
	DEALLOCATE prepared;
	RETURN result;
END $$;

CREATE FUNCTION check_prepared(query text, parameters int8[], mode text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off
SET plan_cache_mode = auto
SET pg_gpusort.enable = off AS $$
DECLARE
	stocks text;
	ours text;
BEGIN
	PERFORM set_config('plan_cache_mode', mode, true);
	stocks := run_prepared(query, parameters);
	SET LOCAL pg_gpusort.enable = on;
	ours := run_prepared(query, parameters);
	RETURN CASE WHEN ours = stocks THEN format('same for %s parameters', cardinality(parameters))
		   ELSE format(E'not the same\nstock:%s\nours:%s', stocks, ours) END;
END $$;

-- The ids of a query with the bounds v.n and v.skip, for each of the listed bounds in
-- turn.
CREATE FUNCTION run_rescans(query text, bounds text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT string_agg(format(''%%s %%s: %%s'', v.n, v.skip, s.ids), E''\n'')
				   FROM (VALUES (NULL::int8, NULL::int8), %s) v(n, skip),
				   LATERAL (SELECT string_agg(id::text, '' '') AS ids FROM (%s) q) s', bounds, query)
	INTO result;
	RETURN result;
END $$;

-- Stock PostgreSQL runs without workers, because they keep the bound of their first
-- scan.
CREATE FUNCTION check_rescans(query text, bounds text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off AS $$
DECLARE
	workers text := current_setting('max_parallel_workers_per_gather');
	stocks text;
	ours text;
BEGIN
	SET LOCAL pg_gpusort.enable = off;
	SET LOCAL max_parallel_workers_per_gather = 0;
	stocks := run_rescans(query, bounds);
	SET LOCAL pg_gpusort.enable = on;
	PERFORM set_config('max_parallel_workers_per_gather', workers, true);
	ours := run_rescans(query, bounds);
	RETURN CASE WHEN ours = stocks THEN 'same'
		   ELSE format(E'not the same\nstock:\n%s\nours:\n%s', left(stocks, 1000), left(ours, 1000)) END;
END $$;
