--
-- The function that test/random/locales calls
--

-- Sorts strings by a collation, and compares the order with stock PostgreSQL's.  Where ICU's
-- comparisons contradict each other or its sort keys, PostgreSQL's order depends on its way of
-- sorting.  Ours then has to be one in which no row is greater than the next.
CREATE FUNCTION check_locale(collation_name text, nrows int, seed int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	sorted text := format('(SELECT id, s COLLATE %I AS s FROM strings ORDER BY s COLLATE %I, id OFFSET 0) sorted', collation_name, collation_name);
	query text := 'SELECT md5(string_agg(id::text, '','')) FROM ' || sorted;
	ours text;
	stocks text;
	wrong int;
BEGIN
	SET LOCAL client_min_messages = warning;
	DROP TABLE IF EXISTS strings;
	CREATE TEMP TABLE strings AS SELECT g AS id, locale_text(hashint8extended(g, seed)) AS s FROM generate_series(1, nrows) g;
	ANALYZE strings;
	SET LOCAL pg_gpusort.enable = off;
	EXECUTE query INTO stocks;
	SET LOCAL pg_gpusort.enable = on;
	SET LOCAL pg_gpusort.debug_require = cpu;
	SET LOCAL pg_gpusort.min_rows = 0;
	SET LOCAL pg_gpusort.work_mem = '256MB';
	EXECUTE query INTO ours;
	IF ours = stocks THEN
		RETURN 'same order of ' || nrows || ' strings';
	ELSIF collation_name !~ '^icu_' THEN
		RETURN 'another order';
	END IF;
	EXECUTE 'SELECT count(*) FILTER (WHERE last_s > s OR (last_s = s AND last_id >= id)) + abs(count(DISTINCT id) - $1)
		FROM (SELECT *, lag(s) OVER () AS last_s, lag(id) OVER () AS last_id FROM ' || sorted || ') pairs'
		INTO wrong USING nrows;
	RETURN CASE wrong WHEN 0 THEN 'same as its comparisons, but not as stock''s order' ELSE wrong || ' wrong rows' END;
END $$;

SELECT 'locales: ' || count(*) FILTER (WHERE collcollate <> 'C') FROM pg_collation WHERE collname LIKE 'locale~_%' ESCAPE '~';
