--
-- Ties: keys whose first words are not exact
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
SET enable_incremental_sort = off;
SET work_mem = '64MB';

-- Small and large groups of ties, and groups within groups; values that end within a
-- word, at its end and after it.
CREATE TABLE ties AS
	SELECT g AS id, g % 3 AS few,
		   CASE WHEN g % 50 > 0 THEN substr(md5((g % 700)::text), 1, g % 23) END COLLATE "C" AS short,
		   CASE WHEN g % 50 > 1 THEN 'a prefix of all of them ' || repeat('x', g % 20) || g * 7919 % 1000 END
		   COLLATE "C" AS long,
		   repeat('the same ', g % 100) COLLATE "C" AS longer,
		   CASE g % 7 WHEN 0 THEN 10::numeric ^ (g % 300) WHEN 1 THEN -(10::numeric ^ -(g % 300))
			   WHEN 2 THEN 1 + g % 40 / 1e30::numeric WHEN 3 THEN -1 - g % 40 / 1e40::numeric
			   WHEN 4 THEN (g % 100)::numeric / 7 WHEN 5 THEN NULL ELSE g % 9 + 0.00 END AS n,
		   decode(substr(md5((g % 300)::text), 1, g % 12 * 2) || CASE WHEN g % 3 = 0 THEN '0000' ELSE '' END, 'hex') AS bytes,
		   ('10.' || g % 3 || '.' || g % 5 || '.' || g % 200 || '/' || 12 + g % 21)::inet AS ip,
		   (g % 600)::bit(16)::varbit AS bits,
		   md5((g % 400)::text)::uuid AS u,
		   CASE WHEN g % 7 > 0 THEN repeat(md5((g % 5)::text), 2) END COLLATE "C" AS twice
	FROM generate_series(1, 9000) g;
ANALYZE ties;

SELECT keys, check_sort('SELECT * FROM ties ORDER BY ' || keys,
						regexp_replace(keys, ' (desc|nulls first)', '', 'gi'))
FROM unnest('{short,short DESC,"short, id",long,"long DESC NULLS FIRST, id DESC",longer,"longer DESC, id",
n,"n DESC, id",bytes,"bytes DESC, id",ip,"ip DESC, id",bits,"bits DESC, id","u, long",
"few, short","few DESC, long DESC, n, id","few, longer, short NULLS FIRST, ip DESC, bytes, id",
"short, few, u DESC, n, long, longer DESC, bits, id","bits, ip, bytes DESC, n, u, id","n DESC, long, id",
"few, twice","twice DESC, few DESC, long, id","few, u, twice, n","twice NULLS FIRST, few, id"}'::text[]) keys;

-- short values of which there are few, which other keys follow within the words, and some that do
-- not end there
CREATE TABLE shorts AS
	SELECT g AS id, g * 7919 % 9001 AS k,
		   CASE g % 100 WHEN 0 THEN NULL WHEN 1 THEN rpad('', g % 3000 / 100 + 5, 'long and longer values, ') || g % 2
			   ELSE left(md5((g % 60)::text), g % 60 / 4) END COLLATE "C" AS s,
		   (CASE g % 200 WHEN 7 THEN 10::numeric ^ (g % 40) + g % 3 WHEN 8 THEN 'NaN' ELSE g % 30 / 4.0 END)::numeric AS n,
		   decode(left(md5((g % 50)::text), CASE WHEN g % 90 = 0 THEN 32 ELSE g % 50 / 4 * 2 END), 'hex') AS bytes,
		   ('10.0.0.' || g % 7)::inet AS ip, (ARRAY['on', 'off', 'a state that is long'])[1 + g % 2 + (g % 333 = 0)::int]::name AS state,
		   CASE WHEN g % 9 > 0 THEN left(md5((g % 6)::text), 7) END::char(8) COLLATE "C" AS code
	FROM generate_series(1, 9000) g;
ANALYZE shorts;

SELECT keys, check_sort('SELECT * FROM shorts ORDER BY ' || keys,
						regexp_replace(keys, ' (desc|nulls first|nulls last)', '', 'gi'))
FROM unnest('{s,"s, k","s DESC, k","s NULLS FIRST, k DESC","s DESC NULLS LAST, n, k","n, k","n DESC, s, k DESC",
"bytes, k","bytes DESC, s DESC, k","ip, s, k","ip DESC, bytes, n","code, s, k","code DESC NULLS LAST, s DESC, bytes, k",
"state, k","state DESC, code, s, n, k","n, bytes, s, code, ip, k"}'::text[]) keys;

-- strings that begin alike for long: some levels of few values with duplicates, each
-- the beginning of others, with blanks and zero bytes at their ends
CREATE TABLE alike AS
	SELECT g AS id, g * 7919 % 1009 % 5 AS few,
		   'https://www.example.com/default/' || g % 3 || repeat('/a/long/path', 3) || '/' || g * 7919 % 7 ||
		   repeat('/and/more', g % 5) || '/' || (g % 11)::text COLLATE "C" AS url,
		   repeat('ab', g * 7919 % 61) || (ARRAY['', 'a', 'aa', 'b'])[1 + g % 4] COLLATE "C" AS nested,
		   (repeat('blanks  ', g * 7 % 31) || repeat(' ', g % 3))::char(260) COLLATE "C" AS blanks,
		   decode(repeat('00ff00', g * 31 % 41) || repeat('00', g % 9), 'hex') AS zeros,
		   ('a name that begins as all of the others do, ' || g * 31 % 37)::name AS name,
		   (repeat('1234567890', 12) || '.' || g * 31 % 29)::numeric AS number,
		   to_jsonb(repeat('the same ', 50) || g * 31 % 23) AS json
	FROM generate_series(1, 4000) g;
ANALYZE alike;
SELECT keys, check_sort('SELECT * FROM alike ORDER BY ' || keys, regexp_replace(keys, ' desc', '', 'gi'))
FROM unnest('{url,"url DESC, id","url, nested",nested,"nested DESC, url DESC, id","few, nested, url, id",blanks,
"blanks DESC, id",zeros,"zeros DESC, id","few, zeros DESC, blanks, url",name,"name DESC, id",number,"number DESC, few, id",
"few, json, url, id","few DESC, json DESC, id","number, json, nested DESC, zeros"}'::text[]) keys;

-- behind other keys, types without an encoding
CREATE TYPE pair AS (a int, b text COLLATE "C");
CREATE TABLE others AS
	SELECT id, few, short, ARRAY[id % 7, id % 3] AS a, to_jsonb(id % 20) AS j, ROW(few, short)::pair AS r,
		   int4range(few, id % 11 + 3) AS s, to_tsvector('simple', short) AS v
	FROM ties;
ANALYZE others;
SELECT keys, check_sort('SELECT * FROM others ORDER BY ' || keys, regexp_replace(keys, ' desc', '', 'gi'))
FROM unnest('{"few, a","few, j DESC, id","few DESC, r, a, j","few, s DESC, short, id","short, v, a DESC, id"}'::text[]) keys;

-- values that are compressed, or stored elsewhere
CREATE TABLE toasted (id int, t text COLLATE "C", b bytea, c text COLLATE "C", n text COLLATE "C", s char(5000) COLLATE "C",
	j jsonb, l text COLLATE "C");
ALTER TABLE toasted ALTER b SET STORAGE EXTERNAL;
INSERT INTO toasted
	SELECT g, repeat('prefix', 700) || g % 17, convert_to(repeat('prefix', 700) || g % 13, 'UTF8'),
		   repeat(chr(97 + g % 5), 3000) || g % 3, repeat('nested', g * 7 % 300 * 10),
		   repeat('blanks   ', g * 7 % 9 * 50), to_jsonb(repeat('prefix', 700) || g % 17),
		   repeat('a beginning of ', 300 - g % 3 * 10) || md5(g::text)
	FROM generate_series(1, 300) g;
ANALYZE toasted;
SELECT keys, check_sort('SELECT * FROM toasted ORDER BY ' || keys, regexp_replace(keys, ' desc', '', 'gi'))
FROM unnest('{t,"t DESC, id",b,"b, c DESC, id",c,"c, t, b, id",n,"n DESC, id",s,"s DESC, t, id","c, j, t DESC, id",l,l DESC}'::text[]) keys;

-- the same in order already, and in reverse
CREATE TABLE in_order AS SELECT l, id FROM toasted ORDER BY l;
CREATE TABLE in_reverse AS SELECT l, id FROM toasted ORDER BY l DESC;
SELECT t, keys, check_sort(format('SELECT * FROM %s ORDER BY %s', t, keys), 'l')
FROM unnest('{l,"l DESC, id"}'::text[]) keys, unnest('{in_order,in_reverse}'::text[]) t;

-- other operator classes, by bytes
SELECT check_sort('SELECT id, short::text COLLATE "POSIX" AS k FROM ties ORDER BY k', 'k');
SELECT check_sort('SELECT id, short FROM ties ORDER BY short USING ~<~', 'short');
SELECT check_sort('SELECT id, short::char(20) AS k FROM ties ORDER BY k USING ~>~, id', 'k, id');

-- ties that do not fit in memory, and are read again before all of them were read
SET enable_material = off;
SET enable_memoize = off;
SET pg_gpusort.work_mem = '64kB';
SELECT check_sort('SELECT g, s.* FROM generate_series(1, 3) g, LATERAL (SELECT g::text COLLATE "C" AS long, 0 AS id UNION ALL (SELECT long, id FROM ties ORDER BY long, id OFFSET 0) LIMIT 2000) s', 'g, long, id', 'node');
RESET pg_gpusort.work_mem;
RESET enable_memoize;
RESET enable_material;

-- comparisons that fail or are slow
CREATE FUNCTION compare_length(a text, b text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('ties.trouble') = 'error' AND length(a) = 17 THEN
		RAISE 'a text of 17 characters';
	END IF;
	IF current_setting('ties.trouble') = 'slow' THEN
		PERFORM pg_sleep(0.01);
	END IF;
	RETURN length(a) - length(b);
END $$;
SET ties.trouble = '';
CREATE FUNCTION length_lt(text, text) RETURNS bool LANGUAGE sql AS 'SELECT length($1) < length($2)';
CREATE FUNCTION length_eq(text, text) RETURNS bool LANGUAGE sql AS 'SELECT length($1) = length($2)';
CREATE OPERATOR <# (FUNCTION = length_lt, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR =# (FUNCTION = length_eq, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR CLASS length_ops FOR TYPE text USING btree AS
	OPERATOR 1 <#, OPERATOR 3 =#, FUNCTION 1 compare_length(text, text);
SELECT check_sort('SELECT few, length(long) AS l, id FROM ties ORDER BY few, long USING <#', 'few, l');
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
SET ties.trouble = 'error';
SELECT count(*) FROM (SELECT * FROM ties ORDER BY few, short USING <# OFFSET 0) s;
SET ties.trouble = 'slow';
SET statement_timeout = '100ms';
SELECT count(*) FROM (SELECT * FROM ties ORDER BY few, short USING <# OFFSET 0) s;
RESET statement_timeout;
SET ties.trouble = '';
SELECT count(*) FROM (SELECT * FROM ties ORDER BY few, short USING <# OFFSET 0) s;

-- a collation that cannot be determined is an error of the execution
SELECT error_of('SELECT * FROM ties ORDER BY short || (long COLLATE "POSIX") || (long COLLATE "C")');
RESET pg_gpusort.debug_require;
SELECT error_of('SELECT s FROM (SELECT short || v AS s FROM ties, (VALUES (''x'' COLLATE "POSIX")) x (v)) t ORDER BY s');
RESET pg_gpusort.min_rows;

-- strings that differ behind the bytes that a GPU gets, with a LIMIT: the rows that it does not
-- want need no files
CREATE TABLE alike_at_first AS SELECT g AS id, repeat('a', 40) || md5(g::text) AS t FROM generate_series(1, 60000) g;
VACUUM ANALYZE alike_at_first;
SET pg_gpusort.min_rows = 0;
SET work_mem = '2MB';
SET temp_file_limit = 0;
SELECT md5(string_agg(t, ',')) AS ours FROM (SELECT t FROM alike_at_first ORDER BY t COLLATE "C" LIMIT 5000) s \gset
RESET temp_file_limit;
SET pg_gpusort.enable = off;
SELECT md5(string_agg(t, ',')) = :'ours' AS same FROM (SELECT t FROM alike_at_first ORDER BY t COLLATE "C" LIMIT 5000) s;
RESET pg_gpusort.enable;
-- a limit that grows from one rescan to the next
CREATE TABLE limits AS SELECT * FROM (VALUES (5000), (20000), (100), (60000)) v (l);
SELECT md5(string_agg(s, ' ')) AS ours FROM
	(SELECT (SELECT md5(string_agg(t, ',')) FROM (SELECT t FROM alike_at_first ORDER BY t COLLATE "C" LIMIT l) q) AS s FROM limits) r \gset
SET pg_gpusort.enable = off;
SELECT md5(string_agg(s, ' ')) = :'ours' AS same FROM
	(SELECT (SELECT md5(string_agg(t, ',')) FROM (SELECT t FROM alike_at_first ORDER BY t COLLATE "C" LIMIT l) q) AS s FROM limits) r;
RESET pg_gpusort.enable;
DROP TABLE limits;
RESET pg_gpusort.min_rows;
RESET work_mem;

SET client_min_messages = warning;
DROP TABLE ties, others, toasted, alike, alike_at_first, in_order, in_reverse;
DROP TYPE pair CASCADE;
DROP FUNCTION compare_length, length_lt, length_eq CASCADE;
