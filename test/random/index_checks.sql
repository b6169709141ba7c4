--
-- Functions that test/random/indexes calls, besides those of sql/index_setup.sql
--

-- The SQLSTATE of a statement that builds the index "built".  If there is no error, the
-- index is dropped.
CREATE FUNCTION state_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	PERFORM drop_built();
	RETURN '00000';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;

-- The rows of t1 that fulfil a condition.
CREATE FUNCTION rows_found(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT count(*) || '' rows: '' || coalesce(md5(string_agg(id::text, '' '' ORDER BY id, ctid)), '''')
				   FROM t1 WHERE %s', condition) INTO result;
	RETURN result;
END $$;

-- Finds rows by the index that the statement builds, and without it.  Returns NULL, or
-- the difference.
CREATE FUNCTION scans_difference(statement text, conditions text[]) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = on
SET enable_indexscan = on
SET enable_indexonlyscan = on
SET enable_bitmapscan = on
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
	found text;
	expected text;
	difference text;
BEGIN
	EXECUTE statement;
	FOR condition IN 0 .. cardinality(conditions) - 1 LOOP
		SET LOCAL enable_seqscan = off;
		PERFORM set_config('enable_bitmapscan', (condition % 2 = 0)::text, true);
		PERFORM set_config('enable_indexscan', (condition % 2 = 1)::text, true);
		found := rows_found(conditions[condition + 1]);
		SET LOCAL enable_seqscan = on;
		SET LOCAL enable_indexscan = off;
		SET LOCAL enable_indexonlyscan = off;
		SET LOCAL enable_bitmapscan = off;
		expected := rows_found(conditions[condition + 1]);
		SET LOCAL enable_indexonlyscan = on;
		IF found <> expected THEN
			difference := format('%s by the index, %s without, for %s', found, expected, conditions[condition + 1]);
		END IF;
	END LOOP;
	PERFORM drop_built();
	RETURN difference;
END $$;

-- Compares the errors of a statement, after one of its executions has raised this message.
CREATE FUNCTION compare_errors(statement text, require text, message text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	stocks text;
	ours text;
BEGIN
	SET LOCAL pg_gpusort.enable_index_build = off;
	stocks := state_of(statement);
	SET LOCAL pg_gpusort.enable_index_build = on;
	PERFORM set_config('pg_gpusort.debug_require', require, true);
	ours := state_of(statement);
	IF ours = stocks AND stocks <> '00000' THEN
		RETURN 'same SQLSTATE ' || stocks;
	END IF;
	RETURN format('SQLSTATE %s instead of %s: %s', ours, stocks, message);
END $$;

-- Lets stock PostgreSQL and us execute a statement that builds the index "built".  The
-- pages must be the same, or else the error.  Also finds rows by the index.
CREATE FUNCTION check_index(statement text, conditions text[], require text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off
SET pg_gpusort.enable_index_build = off AS $$
DECLARE
	result text;
BEGIN
	result := check_build(statement, require);
	SET LOCAL pg_gpusort.enable_index_build = on;
	IF result LIKE 'same%' AND conditions <> '{}' THEN
		RETURN coalesce(scans_difference(statement, conditions), result);
	END IF;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN compare_errors(statement, require, SQLERRM);
END $$;

-- Lets stock PostgreSQL and us execute a statement that builds the GIN index "built".  The
-- keys and TIDs must be the same, or else the error.
CREATE FUNCTION check_gin_index(statement text, require text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off
SET pg_gpusort.enable_index_build = off AS $$
BEGIN
	RETURN check_gin(statement, require);
EXCEPTION WHEN OTHERS THEN
	RETURN compare_errors(statement, require, SQLERRM);
END $$;

-- Compares all indexes of t1 with those that stock PostgreSQL builds.
CREATE FUNCTION check_rebuilt() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT coalesce(string_agg(line, ', ') FILTER (WHERE line NOT LIKE '%: same'),
							format('same %s indexes', count(*)))
			FROM check_indexes('t1') line);
END $$;

-- Keys of a row for a GIN index: a few, or more than fit in a memory of 1 MB.
CREATE FUNCTION many_keys(k int8) RETURNS int8[] IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
	SELECT array_agg(k * g % 1000003) FROM generate_series(1, CASE WHEN k % 2000 = 3 THEN 20000 ELSE 3 END) g;
$$;

-- One that queries the table; the planner looks at an index that has this condition.
CREATE FUNCTION asking_keys(k int8) RETURNS int8[] IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql SET enable_bitmapscan = off AS $$
BEGIN
	RETURN ARRAY[k, (SELECT count(*) FROM (SELECT FROM t1 WHERE ARRAY[id % 3, id]::int8[] @> '{}' LIMIT abs(k % 5)) t)];
END $$;
