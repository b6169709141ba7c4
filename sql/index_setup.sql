--
-- What the tests of index builds have in common: the first of them to run
-- needs: cpu_or_gpu
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

-- How many sequential scans of user tables this transaction has begun, and how many rows they have read.
CREATE FUNCTION rows_read(OUT scans int8, OUT rows int8) LANGUAGE sql AS $$
	SELECT sum(pg_stat_get_xact_numscans(oid)), sum(pg_stat_get_xact_tuples_returned(oid))
	FROM pg_class WHERE relkind IN ('r', 'm') AND oid >= 16384;
$$;

-- Have stock PostgreSQL and then us execute a statement that builds an index, or
-- the index of a constraint, called "built", and compare the two byte by byte.  One process must also count the same
-- scans and rows.
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
	before record := rows_read();
	stocks_read record;
	ours_read record;
	builds bigint;
	difference text;
	tree_level int;
BEGIN
	EXECUTE statement;
	stocks_read := rows_read();
	stocks := index_pages('built');
	stocks_entry := index_entry('built');
	PERFORM drop_built();

	SET LOCAL pg_gpusort.enable_index_build = on;
	PERFORM set_config('pg_gpusort.debug_require', require, true);
	builds := index_builds();
	ours_read := rows_read();
	stocks_read := (stocks_read.scans - before.scans, stocks_read.rows - before.rows);
	before := ours_read;
	EXECUTE statement;
	ours_read := rows_read();
	ours_read := (ours_read.scans - before.scans, ours_read.rows - before.rows);
	builds := index_builds() - builds;
	SET LOCAL pg_gpusort.debug_require = off;
	difference := pages_difference(index_pages('built'), stocks);
	IF difference IS NULL AND index_entry('built') <> stocks_entry THEN
		difference := format('%s instead of %s', index_entry('built'), stocks_entry);
	END IF;
	-- Workers count for themselves, and a constraint may have the table scanned for NULLs once.
	IF difference IS NULL AND ours_read <> stocks_read AND statement LIKE 'CREATE%' AND
		current_setting('max_parallel_maintenance_workers') = '0' THEN
		difference := format('scans and rows %s instead of %s', ours_read, stocks_read);
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

-- ---- GIN indexes ----

CREATE FUNCTION uint2(bytes bytea, at int) RETURNS int LANGUAGE sql IMMUTABLE AS $$
	SELECT get_byte(bytes, at) | (get_byte(bytes, at + 1) << 8);
$$;

-- A block number in its two halves.
CREATE FUNCTION block_at(bytes bytea, at int) RETURNS int8 LANGUAGE sql IMMUTABLE AS $$
	SELECT uint2(bytes, at)::int8 << 16 | uint2(bytes, at + 2);
$$;

CREATE FUNCTION gin_page(index regclass, block int8) RETURNS bytea LANGUAGE sql AS $$
	SELECT get_raw_page(index::text, 'main', block);
$$;

-- The tuples of a page of the entry tree.
CREATE FUNCTION gin_tuples(page bytea) RETURNS TABLE (tuple bytea) LANGUAGE sql AS $$
	SELECT substr(page, 1 + (uint2(page, at) & 32767), uint2(page, at + 2) >> 1)
	FROM generate_series(24, uint2(page, 12) - 4, 4) at ORDER BY at;
$$;

-- The key of a tuple, with its flags and its category: what precedes the posting list, but for the size.
CREATE FUNCTION gin_tuple_key(tuple bytea, leaf bool) RETURNS bytea LANGUAGE sql AS $$
	SELECT set_byte('\x00', 0, get_byte(tuple, 7) & 224) || substr(tuple, 9,
		CASE WHEN leaf AND uint2(tuple, 4) <> 65535 THEN (block_at(tuple, 0) & 2147483647)::int ELSE length(tuple) END - 8);
$$;

CREATE FUNCTION gin_last_key(page bytea) RETURNS bytea LANGUAGE sql AS $$
	SELECT gin_tuple_key(tuple, 'leaf' = ANY ((gin_page_opaque_info(page)).flags))
	FROM (SELECT row_number() OVER () AS n, tuple FROM gin_tuples(page)) t ORDER BY n DESC LIMIT 1;
$$;

-- The TIDs of a posting tree.
CREATE FUNCTION gin_tree_tids(index regclass, root int8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	page bytea := gin_page(index, root);
	tids text := '';
BEGIN
	WHILE NOT 'leaf' = ANY ((gin_page_opaque_info(page)).flags) LOOP
		page := gin_page(index, block_at(page, 32));
	END LOOP;
	LOOP
		tids := tids || (SELECT string_agg(array_to_string(i.tids, ' '), ' ') FROM gin_leafpage_items(page) i) || ' ';
		EXIT WHEN (gin_page_opaque_info(page)).rightlink = 4294967295;
		page := gin_page(index, (gin_page_opaque_info(page)).rightlink);
	END LOOP;
	RETURN tids;
END $$;

-- All keys in the order of the index, with the bytes of their posting lists or the TIDs of their posting trees.
CREATE FUNCTION gin_entries(index regclass) RETURNS TABLE (key bytea, list bytea, tree text) LANGUAGE plpgsql AS $$
DECLARE
	page bytea := gin_page(index, 1);
	tuple bytea;
BEGIN
	WHILE NOT 'leaf' = ANY ((gin_page_opaque_info(page)).flags) LOOP
		page := gin_page(index, block_at((SELECT t.tuple FROM gin_tuples(page) t LIMIT 1), 0));
	END LOOP;
	LOOP
		FOR tuple IN SELECT t.tuple FROM gin_tuples(page) t LOOP
			key := gin_tuple_key(tuple, true);
			IF uint2(tuple, 4) = 65535 THEN
				list := NULL;
				tree := gin_tree_tids(index, block_at(tuple, 0));
			ELSE
				list := substr(tuple, 1 + (block_at(tuple, 0) & 2147483647)::int);
				tree := uint2(tuple, 4);
			END IF;
			RETURN NEXT;
		END LOOP;
		EXIT WHEN (gin_page_opaque_info(page)).rightlink = 4294967295;
		page := gin_page(index, (gin_page_opaque_info(page)).rightlink);
	END LOOP;
END $$;

-- The downlinks of a page that is not a leaf, with their bounds.
CREATE FUNCTION gin_downlinks(page bytea, data bool) RETURNS TABLE (child int8, bound bytea) LANGUAGE plpgsql AS $$
BEGIN
	IF data THEN
		RETURN QUERY SELECT block_at(page, at), substr(page, at + 5, 6) FROM generate_series(32, uint2(page, 12) - 10, 10) at;
	ELSE
		RETURN QUERY SELECT block_at(tuple, 0), gin_tuple_key(tuple, false) FROM gin_tuples(page);
	END IF;
END $$;

-- What is wrong with the pages of an index, or NULL: its statistics, links, bounds and downlinks.
CREATE FUNCTION gin_fault(index regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	meta record := gin_metapage_info(get_raw_page(index::text, 0));
	pages int8 := pg_relation_size(index) / current_setting('block_size')::int8;
	entry_pages int := 0;
	data_pages int := 0;
	page bytea;
	child bytea;
	flags text[];
	bound bytea;
	next int8;
	down record;
BEGIN
	IF meta.n_pending_pages > 0 THEN
		RETURN 'there are pending pages';
	END IF;
	FOR block IN 1 .. pages - 1 LOOP
		page := gin_page(index, block);
		flags := (gin_page_opaque_info(page)).flags;
		IF 'data' = ANY (flags) THEN
			data_pages := data_pages + 1;
		ELSE
			entry_pages := entry_pages + 1;
		END IF;
		CONTINUE WHEN 'leaf' = ANY (flags);
		next := NULL;
		FOR down IN SELECT * FROM gin_downlinks(page, 'data' = ANY (flags)) LOOP
			IF next <> down.child THEN
				RETURN format('block %s is not the right link of the page before it', down.child);
			END IF;
			child := gin_page(index, down.child);
			next := (gin_page_opaque_info(child)).rightlink;
			-- The last page of a level of the entry tree has no bound.
			IF 'data' = ANY (flags) THEN
				bound := substr(child, 25, 6);
			ELSIF next = 4294967295 THEN
				bound := down.bound;
			ELSE
				bound := gin_last_key(child);
			END IF;
			-- A downlink is padded, by what follows the key in the leaf.
			IF bound <> substr(down.bound, 1, length(bound)) THEN
				RETURN format('block %s has another bound', down.child);
			END IF;
		END LOOP;
	END LOOP;
	IF (meta.n_total_pages, meta.n_entry_pages, meta.n_data_pages, meta.n_entries, meta.version) <>
		(pages, entry_pages, data_pages, (SELECT count(*) FROM gin_entries(index)), 2) THEN
		RETURN format('%s, but there are %s pages, %s of the entry tree and %s of data', meta, pages, entry_pages, data_pages);
	END IF;
	IF EXISTS (SELECT FROM pg_proc WHERE proname = 'gin_index_check') THEN
		PERFORM gin_index_check(index);
	END IF;
	RETURN NULL;
END $$;

-- Have stock PostgreSQL and then us execute a statement that builds a GIN index called "built", and compare all keys
-- and their TIDs.  Ours must not be noticeably larger.
CREATE FUNCTION check_gin(statement text, require text DEFAULT 'cpu') RETURNS text
LANGUAGE plpgsql
SET pg_gpusort.min_rows = 0
SET pg_gpusort.debug_require = off
SET pg_gpusort.enable = off
SET pg_gpusort.enable_index_build = off
SET synchronize_seqscans = off
AS $$
DECLARE
	stocks_fault text;
	stocks_size int8;
	stocks_rows float4;
	stocks_keys int8;
	builds int8;
	different int8;
	result text;
BEGIN
	EXECUTE statement;
	CREATE TEMP TABLE stocks AS SELECT row_number() OVER () AS n, e.* FROM gin_entries('built') e;
	stocks_fault := gin_fault('built');
	stocks_size := pg_relation_size('built');
	SELECT reltuples INTO stocks_rows FROM pg_class WHERE oid = 'built'::regclass;
	DROP INDEX built;

	SET LOCAL pg_gpusort.enable_index_build = on;
	PERFORM set_config('pg_gpusort.debug_require', require, true);
	builds := index_builds();
	EXECUTE statement;
	builds := index_builds() - builds;
	SET LOCAL pg_gpusort.debug_require = off;
	SELECT count(*) INTO different
	FROM (SELECT row_number() OVER () AS n, e.* FROM gin_entries('built') e) ours FULL JOIN stocks USING (n)
	WHERE (ours.key, ours.list, ours.tree) IS DISTINCT FROM (stocks.key, stocks.list, stocks.tree);
	SELECT concat_ws(', ',
		CASE WHEN different > 0 THEN format('%s keys differ', different) END,
		CASE WHEN builds <> 1 THEN format('%s builds are counted', builds) END,
		'stock index: ' || stocks_fault, 'our index: ' || gin_fault('built'),
		CASE WHEN pg_relation_size('built') > stocks_size * 1.05 + current_setting('block_size')::int8 THEN
			format('%s bytes instead of %s', pg_relation_size('built'), stocks_size) END,
		-- From 18 on, several processes of stock PostgreSQL count otherwise.
		CASE WHEN reltuples <> stocks_rows AND current_setting('max_parallel_maintenance_workers') = '0' THEN
			format('%s rows instead of %s', reltuples, stocks_rows) END)
	INTO result FROM pg_class WHERE oid = 'built'::regclass;
	SELECT count(*) INTO stocks_keys FROM stocks;
	DROP TABLE stocks;
	DROP INDEX built;
	RETURN coalesce(nullif(result, ''), format('same, %s keys', stocks_keys));
END $$;

CREATE FUNCTION check_gins(statement text, ways text, require text DEFAULT 'cpu') RETURNS TABLE (way text, result text)
LANGUAGE sql AS $$
	SELECT way, check_gin(statement || ' ' || way, require) FROM regexp_split_to_table(ways, ';\s*') way;
$$;

-- The GIN indexes of tables, their numbers of keys, and what is wrong with them.
CREATE FUNCTION faults_of_gins(VARIADIC tables regclass[]) RETURNS TABLE (index regclass, keys int8, fault text) LANGUAGE sql
SET pg_gpusort.enable = off SET pg_gpusort.debug_require = off AS $$
	SELECT c.oid, (SELECT count(*) FROM gin_entries(c.oid)), gin_fault(c.oid)
	FROM pg_index JOIN pg_class c ON c.oid = indexrelid
	WHERE indrelid = ANY (tables) AND relkind = 'i' AND relam = (SELECT oid FROM pg_am WHERE amname = 'gin')
	ORDER BY relname COLLATE "C";
$$;

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
