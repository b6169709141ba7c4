--
-- What the tests of index builds have in common: the first of them to run
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_gpusort;
CREATE EXTENSION IF NOT EXISTS pageinspect;
CREATE EXTENSION IF NOT EXISTS amcheck;
RESET client_min_messages;
LOAD 'pg_gpusort';

-- What counts on a page: all bytes but its LSN, its checksum and its hole.
CREATE FUNCTION page_content(page bytea) RETURNS bytea LANGUAGE sql AS $$
	SELECT substr(page, 11, lower - 10) || substr(page, upper + 1) FROM page_header(page);
$$;

-- That of all pages of an index.  From 16 on it sorts, which is not to be counted.
CREATE FUNCTION index_pages(index regclass, fork text DEFAULT 'main')
RETURNS bytea[] LANGUAGE sql SET pg_gpusort.enable = off SET pg_gpusort.debug_require = off AS $$
	SELECT coalesce(array_agg(page_content(get_raw_page(index::text, fork, block)) ORDER BY block), '{}')
	FROM generate_series(0, pg_relation_size(index, fork) /
						 current_setting('block_size')::int8 - 1) block;
$$;

-- What the catalogs keep of a build.
CREATE FUNCTION index_entry(index regclass) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s pages of %s rows over %s pages of %s rows, valid %s, ready %s, checkxmin %s',
				  i.relpages, i.reltuples, t.relpages, t.reltuples, indisvalid, indisready, indcheckxmin)
	FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_class t ON t.oid = indrelid
	WHERE indexrelid = index;
$$;

-- Compare two indexes: NULL, or what the difference is.
CREATE FUNCTION pages_difference(ours bytea[], stocks bytea[]) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	a bytea;
	b bytea;
BEGIN
	IF cardinality(ours) <> cardinality(stocks) THEN
		RETURN format('%s pages instead of %s', cardinality(ours), cardinality(stocks));
	END IF;
	FOR page IN 1 .. cardinality(ours) LOOP
		a := ours[page];
		b := stocks[page];
		CONTINUE WHEN a = b;
		FOR byte IN 0 .. least(length(a), length(b)) - 1 LOOP
			IF get_byte(a, byte) <> get_byte(b, byte) THEN
				RETURN format('page %s differs in byte %s of %s', page - 1, byte, length(b));
			END IF;
		END LOOP;
		RETURN format('page %s has %s bytes instead of %s', page - 1, length(a), length(b));
	END LOOP;
	RETURN NULL;
END $$;

-- How many indexes have been built by us.
CREATE FUNCTION index_builds() RETURNS bigint LANGUAGE sql AS $$
	SELECT sum(index_builds)::int8 FROM pg_stat_gpusort;
$$;

-- How many of them since the last call.
CREATE FUNCTION new_builds() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint := nullif(current_setting('index_test.builds', true), '');
BEGIN
	PERFORM set_config('index_test.builds', index_builds()::text, false);
	RETURN index_builds() - coalesce(before, 0);
END $$;

CREATE FUNCTION drop_built() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	built_constraint regclass := (SELECT conrelid FROM pg_constraint WHERE conindid = 'built'::regclass);
BEGIN
	IF built_constraint IS NULL THEN
		DROP INDEX built;
	ELSE
		EXECUTE format('ALTER TABLE %s DROP CONSTRAINT built', built_constraint);
	END IF;
END $$;

-- Have stock PostgreSQL and then us execute a statement that builds an index, or
-- the index of a constraint, called "built", and compare the two byte by byte.
--
-- 'require' is what pg_gpusort.debug_require is set to.
CREATE FUNCTION check_build(statement text, require text DEFAULT 'cpu') RETURNS text
LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off
SET pg_gpusort.enable_index_build = off
SET synchronize_seqscans = off
AS $$
DECLARE
	stocks bytea[];
	stocks_entry text;
	builds bigint;
	difference text;
	tree_level int;
BEGIN
	EXECUTE statement;
	stocks := index_pages('built');
	stocks_entry := index_entry('built');
	PERFORM drop_built();

	SET LOCAL pg_gpusort.enable_index_build = on;
	PERFORM set_config('pg_gpusort.debug_require', require, true);
	builds := index_builds();
	EXECUTE statement;
	builds := index_builds() - builds;
	SET LOCAL pg_gpusort.debug_require = off;
	difference := pages_difference(index_pages('built'), stocks);
	IF difference IS NULL AND index_entry('built') <> stocks_entry THEN
		difference := format('%s instead of %s', index_entry('built'), stocks_entry);
	END IF;
	PERFORM bt_index_parent_check('built', true, true);
	SELECT level INTO tree_level FROM bt_metap('built');
	PERFORM drop_built();
	RETURN coalesce(difference, CASE WHEN builds <> 1 THEN format('%s builds are counted', builds) END,
					format('same, level %s', tree_level));
END $$;

-- The same for all ways to end the statement, which semicolons separate.
CREATE FUNCTION check_builds(statement text, ways text, require text DEFAULT 'cpu')
RETURNS TABLE (way text, result text)
LANGUAGE sql AS $$
	SELECT way, check_build(statement || ' ' || way, require)
	FROM regexp_split_to_table(ways, ';\s*') way;
$$;

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

-- Have stock PostgreSQL and then us fail to execute a statement that builds an
-- index.
CREATE FUNCTION check_error(statement text) RETURNS text
LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off
SET pg_gpusort.enable_index_build = off
AS $$
DECLARE
	stocks text := error_of(statement);
	ours text;
BEGIN
	IF stocks = 'no error' THEN
		PERFORM drop_built();
	END IF;
	SET LOCAL pg_gpusort.enable_index_build = on;
	SET LOCAL pg_gpusort.debug_require = cpu;
	ours := error_of(statement);
	IF to_regclass('built') IS NOT NULL THEN
		PERFORM drop_built();
	END IF;
	IF ours = stocks THEN
		RETURN stocks;
	END IF;
	RETURN format('"%s" instead of "%s"', ours, stocks);
END $$;

CREATE FUNCTION check_errors(statement text, ways text) RETURNS TABLE (way text, error text)
LANGUAGE sql AS $$
	SELECT way, check_error(statement || ' ' || way)
	FROM regexp_split_to_table(ways, ';\s*') way;
$$;

-- Compare the btree indexes of tables with what stock PostgreSQL makes of the same
-- rows.
CREATE FUNCTION check_indexes(VARIADIC tables regclass[]) RETURNS SETOF text
LANGUAGE plpgsql
SET pg_gpusort.debug_require = off
SET pg_gpusort.enable_index_build = off
SET synchronize_seqscans = off
AS $$
DECLARE
	index regclass;
	pages bytea[];
BEGIN
	FOR index IN
		SELECT c.oid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
		WHERE indrelid = ANY (tables) AND relkind = 'i' AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
		ORDER BY relname COLLATE "C"
	LOOP
		PERFORM bt_index_parent_check(index, true, true);
		pages := index_pages(index);
		EXECUTE 'REINDEX INDEX ' || index;
		RETURN NEXT index || ': ' || coalesce(pages_difference(pages, index_pages(index)), 'same');
	END LOOP;
END $$;

-- The helpers can fail.
CREATE TABLE helper_check AS SELECT g % 7 AS k, g AS v FROM generate_series(1, 5000) g;
SELECT check_build('CREATE INDEX built ON helper_check (k, v)');
SELECT check_build('CREATE INDEX built ON helper_check (v)', 'off');
SELECT check_error('CREATE UNIQUE INDEX built ON helper_check (v)');
SELECT check_error('CREATE INDEX built ON helper_check (w)');

-- an index of which one thing or another has changed
CREATE INDEX helper_index ON helper_check (k, v);
CREATE TEMP TABLE changed AS SELECT index_pages('helper_index') AS pages;
SELECT pages_difference(pages, pages) FROM changed;
DROP INDEX helper_index;
CREATE INDEX helper_index ON helper_check (k, v) WITH (fillfactor = 89);
SELECT pages_difference(index_pages('helper_index'), pages) ~ '^page 1 |pages instead of' FROM changed;
DROP INDEX helper_index;
CREATE INDEX helper_index ON helper_check (k, v) WHERE v <> 77;
SELECT pages_difference(index_pages('helper_index'), pages) FROM changed;
DELETE FROM helper_check WHERE v = 78;
VACUUM helper_check;
SELECT pages_difference(index_pages('helper_index'), pages) FROM changed;
SELECT check_indexes('helper_check');

-- a page of which one byte has
CREATE TEMP TABLE page AS SELECT get_raw_page('helper_index', 1) AS p;
SELECT count(*) FILTER (WHERE page_content(set_byte(p, byte, get_byte(p, byte) # 1)) <> page_content(p)) =
	   length(p) - 14 - (upper - lower) AS all_that_count
FROM page, page_header(p), generate_series(0, length(p) - 1) byte
WHERE byte NOT BETWEEN 12 AND 15
GROUP BY p, lower, upper;
DROP TABLE page, changed, helper_check;
