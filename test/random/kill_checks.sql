--
-- Functions for random tests during which the device process is killed
--

-- Calls a check: what it says, or that it has ended with one of the two errors that a query can have because a GPU is lost.
-- An index build whose GPU is lost has read rows twice.
CREATE FUNCTION check_or_lost(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
	hint text;
	numbers int8[];
BEGIN
	EXECUTE 'SELECT ' || call INTO result;
	numbers := regexp_match(result, '^scans and rows \((\d+),(\d+)\) instead of \((\d+),(\d+)\)$');
	IF numbers[1] = numbers[3] + 1 AND numbers[2] BETWEEN numbers[4] AND 2 * numbers[4] THEN
		RETURN 'same, with rows read twice';
	END IF;
	RETURN result;
EXCEPTION WHEN system_error THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	IF SQLERRM NOT IN ('could not read the remaining rows of a sort', 'could not sort rows that cannot be read a second time') OR
		hint <> 'The query might succeed if retried.' THEN
		RAISE;
	END IF;
	DEALLOCATE ALL;
	RETURN 'same, as far as the GPU was there';
END $$;

-- Whether a sort is done on the GPU: nothing, or the error.
CREATE FUNCTION sort_on_gpu() RETURNS text LANGUAGE plpgsql
SET pg_gpusort.backend = gpu
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = gpu AS $$
BEGIN
	PERFORM * FROM (SELECT hashint8(g) AS k FROM generate_series(1, 100) g ORDER BY k OFFSET 0) s;
	RETURN '';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM || ' ';
END $$;

-- What sorts have left behind.
CREATE FUNCTION what_is_left() RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(name || ' ' || value, ', '), '')
	FROM (SELECT name, value FROM gpusort_status()
		  WHERE name IN ('sessions', 'pool_chunks_in_use', 'warm_memory_in_use') AND value <> '0'
		  UNION ALL SELECT 'file', name FROM pg_ls_tmpdir()) s;
$$;
