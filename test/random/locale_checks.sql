--
-- The functions that test/random/locales calls
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

-- Does so for all UTF-8 locales of the C library that this machine has, with strings that begin alike,
-- some of which go on with pairs of ASCII and another character that are one letter somewhere.
CREATE FUNCTION check_all_locales(nrows int, seed int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := 'SELECT md5(string_agg(id::text, '','')) FROM (SELECT id FROM strings ORDER BY s COLLATE %s, id OFFSET 0) sorted';
	locale regcollation;
	ours text;
	stocks text;
	wrong text[] := '{}';
BEGIN
	SET LOCAL client_min_messages = warning;
	DROP TABLE IF EXISTS strings;
	CREATE TEMP TABLE strings AS
	SELECT g AS id, format('%s in common: %s%s', g % (nrows / 3 + 1), one_of('{g,għ,gl,gʻ,n,n̵,nz,o,o͘,oz,l·,lz}'::text[], hashint8extended(g, seed + 1)),
		locale_text(hashint8extended(g, seed))) AS s
	FROM generate_series(1, nrows) g;
	ANALYZE strings;
	SET LOCAL pg_gpusort.min_rows = 0;
	FOR locale IN SELECT min(oid) FROM pg_collation
		WHERE collprovider = 'c' AND collencoding = pg_char_to_encoding('UTF8') GROUP BY replace(collcollate, '.utf8', '') ORDER BY 1
	LOOP
		SET LOCAL pg_gpusort.debug_require = off;
		SET LOCAL pg_gpusort.enable = off;
		EXECUTE format(query, locale) INTO stocks;
		SET LOCAL pg_gpusort.enable = on;
		SET LOCAL pg_gpusort.debug_require = cpu;
		EXECUTE format(query, locale) INTO ours;
		IF ours <> stocks THEN
			wrong := wrong || locale::text;
		END IF;
	END LOOP;
	RETURN CASE wrong WHEN '{}' THEN 'same order in all locales' ELSE 'another order in ' || array_to_string(wrong, ', ') END;
END $$;

SELECT 'locales: ' || count(*) FILTER (WHERE collcollate <> 'C') FROM pg_collation WHERE collname LIKE 'locale~_%' ESCAPE '~';
