--
-- ORDER BY of values that consist of others: arrays, records, ranges, documents
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
CREATE COLLATION nested_any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TYPE nested_pair AS (i int, t text COLLATE "C");
CREATE TYPE nested_names AS RANGE (subtype = text, collation = "en-x-icu");
CREATE DOMAIN nested_positive AS int[] CHECK (0 < ALL (VALUE));

-- Sort values in four ways, three times each and in a mixed order.  Shows them in order.
CREATE FUNCTION check_nested(type text, edge_values text[], OUT result text)
LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE
	way text;
BEGIN
	DROP TABLE IF EXISTS pg_temp.nested;
	EXECUTE format('CREATE TEMP TABLE nested AS
				   SELECT v::%s AS k, md5(v || n) AS payload
				   FROM unnest(array_append(%L::text[], NULL)) v, generate_series(1, 3) n
				   ORDER BY md5(coalesce(v, '''') || n)', type, edge_values);
	FOREACH way IN ARRAY ARRAY['DESC', 'NULLS FIRST', 'DESC NULLS LAST', ''] LOOP
		result := check_sort('SELECT k, payload FROM nested ORDER BY k ' || way, 'k');
		IF result <> format('same %s rows, 1 GpuSort', 3 * (cardinality(edge_values) + 1)) THEN
			RETURN;
		END IF;
	END LOOP;
	EXECUTE 'SELECT string_agg(k::text, ''  '' ORDER BY place) FROM pg_temp.ours WHERE place % 3 = 1' INTO result;
END $$;

-- array_cmp(): elements, then how many, then dimensions and their lower bounds
SELECT check_nested('int4[]', '{"{}","{1}","{NULL}","{1,NULL}","{1,2}","{1,-2}","{-2147483648}","{2147483647}","{{1,2}}","{{1},{2}}","[0:1]={1,2}","[-5:-4]={1,2}","[2:3]={1,2}","[0:0][1:2]={{1,2}}","{1,2,3}"}');
SELECT replace(check_nested('numeric[]', '{"{1.0,2}","{1,2.0}","{NaN}","{Infinity,1}","{-Infinity}","{1e300,2}","{1e300,1}","{0.00,0}"}'), repeat('0', 300), '..');
SELECT check_nested('text[] COLLATE "C"', '{"{a}","{A}","{\"\"}","{a,b}","{ab}","{a,\"\"}","{aaaaaaaaaaaaaaaaaaa,b}","{aaaaaaaaaaaaaaaaaaa,a}","{é}","{NULL}"}');
SELECT check_nested('text[] COLLATE "en-x-icu"', '{"{a}","{A}","{a,b}","{A,a}","{á,a}","{a-,c}","{ab}","{é}","{e,x}","{NULL,a}"}');
SELECT check_nested('varchar[] COLLATE nested_any_case', '{"{a,2}","{A,1}","{a,1}","{B,1}","{b,0}"}');
SELECT check_nested('uuid[]', '{"{00000000-0000-0000-0000-000000000000}","{ffffffff-ffff-ffff-ffff-ffffffffffff}","{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000000}"}');
SELECT check_nested('bytea[]', '{"{\"\\\\x\"}","{\"\\\\x00\"}","{\"\\\\x0000\"}","{\"\\\\x01\"}","{\"\\\\x0001\"}","{\"\\\\x00\",\"\\\\x01\"}","{\"\\\\xff\"}"}');
SELECT check_nested('nested_positive', '{"{1}","{2}","{1,3}"}');

-- record_cmp(): columns, NULL after all others
SELECT check_nested('nested_pair', '{"(1,a)","(1,b)","(1,)","(,a)","(,)","(-1,z)","(1,\"\")"}');
SELECT check_nested('nested_pair[]', '{"{\"(1,a)\",\"(1,b)\"}","{\"(1,a)\"}","{\"(,a)\"}","{NULL}"}');
CREATE TABLE nested_rows AS
	SELECT g AS id, g % 3 AS a, CASE WHEN g % 4 > 0 THEN 'n' || g % 5 END AS b, (g % 7)::numeric AS c FROM generate_series(1, 500) g;
ALTER TABLE nested_rows DROP COLUMN c, ADD COLUMN d int DEFAULT 5;
SELECT check_sort('SELECT r AS k FROM nested_rows r ORDER BY r', 'k');
SELECT check_sort('SELECT id FROM nested_rows ORDER BY ROW(a, b COLLATE "en-x-icu", -id)', 'id');
SELECT check_sort('SELECT id FROM nested_rows ORDER BY ROW(b, ROW(a, ARRAY[d, NULL])) DESC, id', 'id');
-- records of other columns can be compared as long as earlier columns differ
SELECT check_sort('SELECT id FROM nested_rows ORDER BY CASE WHEN id % 2 = 0 THEN ROW(id, a) ELSE ROW(id, b) END', 'id');
SELECT error_of('SELECT * FROM nested_rows ORDER BY CASE WHEN id % 2 = 0 THEN ROW(1, a) ELSE ROW(1, b) END') ~ '^cannot compare dissimilar column types' AS an_error;
-- a column that cannot be compared matters only if all before it are equal
SELECT check_sort('SELECT id FROM nested_rows ORDER BY ROW(id, ''{}''::json)', 'id');
SELECT error_of('SELECT * FROM nested_rows ORDER BY ROW(a, ''{}''::json)');
SELECT error_of('SELECT * FROM nested_rows ORDER BY ARRAY[b COLLATE "C", b COLLATE "POSIX"]');

-- range_cmp(): an empty one, then bounds
SELECT check_nested('int4range', '{empty,"(,)","(,5)","[1,)","[1,5)","[1,6)","[2,5)","[-2147483648,2147483647)"}');
SELECT check_nested('numrange', '{empty,"(,)","(1,5)","[1,5)","(1,5]","[1,5]","[1.0,5.00]","(1,)","(,1)","(,1]"}');
SELECT check_nested('nested_names', '{empty,"[a,b]","[A,b]","[a,B]","(a,b]","(,a]","[é,f]","[e,f]"}');
SELECT check_nested('int4multirange', '{"{}","{[1,2)}","{[1,2),[3,4)}","{[1,3)}","{(,)}","{(,1)}","{[1,2),[5,)}"}');

-- compareJsonbContainers(): types, numbers of elements, contents
-- (texts in the order of the database's locale)
SELECT check_nested('jsonb', '{"null","true","false","1","1.0","-1","1e300","\"\"","\"a\"","\"A\"","\"é\"","[]","{}","[[]]","[null]","[1]","[\"a\"]","[1, 2]","[{}]","{\"a\": 1}","{\"a\": 2}","{\"b\": 1}","{\"A\": 1}","{\"aa\": 1}","{\"a\": {}}","{\"a\": []}","{\"a\": 1, \"b\": 2}","{\"a\": 1, \"b\": [1, {\"c\": null}]}"}') LIKE '[]  null  ""  %{}  {%' AS documents;
SELECT check_nested('jsonb', ARRAY(SELECT jsonb_build_object('list', jsonb_agg(i % 5))::text FROM generate_series(1, 300) i, unnest('{254,255,256,300}'::int[]) most
								   WHERE i <= most GROUP BY most)) ~ '^{"list": ' AS long_lists;

-- many that begin alike, long ones, and some that are stored out of line
CREATE TABLE nested_documents AS
	SELECT g AS id, jsonb_build_object('kind', 'k' || g % 3, 'Name', CASE g % 4 WHEN 0 THEN 'a-b' WHEN 1 THEN 'ab' WHEN 2 THEN 'AB' ELSE 'áb' END,
				'tags', CASE WHEN g % 5 > 0 THEN jsonb_build_array('x', g % 7) END, 'id', g % 211) AS j,
		   jsonb_build_object('text', repeat(md5((g % 9)::text), CASE WHEN g % 50 = 0 THEN 300 ELSE 3 END), 'id', g % 101) AS long,
		   ARRAY['name ' || g % 13, repeat('x', g % 3), NULL, 'n' || g] AS names, hashint4(g) % 100 AS k
	FROM generate_series(1, 6000) g ORDER BY hashint4(g);
ANALYZE nested_documents;
SELECT keys, check_sort('SELECT * FROM nested_documents ORDER BY ' || keys, regexp_replace(keys, '(?i) desc| collate \S+', '', 'g'))
FROM unnest('{j,j desc,long,"k, j","j, id desc",names,"names collate \"en-x-icu\"","names desc, id"}'::text[]) keys;
SET pg_gpusort.work_mem = '64kB';
SELECT keys, check_sort('SELECT * FROM nested_documents ORDER BY ' || keys, regexp_replace(keys, ' desc', '', 'g'), 'node')
FROM unnest('{j,long,"names desc"}'::text[]) keys;
RESET pg_gpusort.work_mem;

-- texts of two collations in a record, one as the other's in a pivot; and texts whose end is beyond a megabyte
CREATE TYPE nested_texts AS (c text COLLATE "C", i text COLLATE "en-x-icu");
CREATE TYPE nested_long AS (b bytea, t text COLLATE "en-x-icu");
SELECT check_sort('SELECT ROW(''aaaaaaaaaaaa'' || chr(97 + k % 8), ''aaaaaaaaaaaa'' || chr(97 + id % 7))::nested_texts AS r FROM nested_documents ORDER BY r', 'r');
CREATE TABLE nested_large AS
	SELECT ROW(decode(repeat('ab', 1024 * 1024 - 12), 'hex'), repeat('a', 20) || chr(97 + g % 10))::nested_long AS r
	FROM generate_series(1, 40) g;
SELECT check_sort('SELECT (r).t FROM nested_large ORDER BY r', 't');

-- what stands above a sort, and LIMIT
SELECT check_sort('SELECT j FROM nested_documents ORDER BY j LIMIT 700', 'j');
SET enable_hashagg = off;
SELECT check_sort('SELECT DISTINCT j FROM nested_documents ORDER BY j', 'j');
SELECT check_sort('SELECT names[1:2] AS n, count(*), count(DISTINCT j) FROM nested_documents GROUP BY 1 ORDER BY 1', 'n');
SELECT check_sort('SELECT names, rank() OVER (ORDER BY names), lag(id) OVER (ORDER BY names, id) FROM nested_documents ORDER BY names', 'names');
RESET enable_hashagg;

-- arrays of them
SELECT array_agg(j ORDER BY j) = gpu_sort(array_agg(j)) AS documents, array_agg(p ORDER BY p) = gpu_sort(array_agg(p)) AS records,
	   array_agg(r ORDER BY r DESC) = gpu_sort(array_agg(r), descending => true) AS ranges
FROM (SELECT j, ROW(k, id)::nested_pair AS p, int4range(k % 7, k % 7 + id) AS r FROM nested_documents WHERE k > 0) s;

DROP TABLE nested_documents, nested_rows, nested_large;
DROP DOMAIN nested_positive;
DROP TYPE nested_names, nested_pair, nested_texts, nested_long;
DROP COLLATION nested_any_case;
DROP FUNCTION check_nested;
