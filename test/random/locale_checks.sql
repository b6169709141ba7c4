--
-- The function that test/random/locales calls
--

-- Sorts strings by a collation, and compares the order with stock PostgreSQL's.
CREATE FUNCTION check_locale(collation_name text, nrows int, seed int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT md5(string_agg(id::text, '','')) FROM
		(SELECT id FROM strings ORDER BY s COLLATE %I, id OFFSET 0) sorted', collation_name);
	ours text;
	stocks text;
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
	RETURN CASE WHEN ours = stocks THEN 'same order of ' || nrows || ' strings' ELSE 'another order' END;
END $$;

SELECT 'locales: ' || count(*) FILTER (WHERE collcollate <> 'C') FROM pg_collation WHERE collname LIKE 'locale~_%' ESCAPE '~';
