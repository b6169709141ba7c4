--
-- gpusort_advice()
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_maintenance_workers = 0;
CREATE SCHEMA advice;
SET search_path = advice, public;

-- ---- Settings ----

CREATE VIEW settings AS
	SELECT name, detail, stock_s, gpusort_s, advice FROM gpusort_advice(1)
	WHERE subject = 'setting' AND name <> 'shared_preload_libraries';
SET work_mem = '4MB';
SET maintenance_work_mem = '64MB';
SET pg_gpusort.work_mem = -1;
SET pg_gpusort.min_rows = -1;
SELECT * FROM settings;
SET pg_gpusort.enable = off;
SET pg_gpusort.enable_index_build = off;
SET pg_gpusort.min_rows = 1000000;
SET pg_gpusort.min_index_rows = 2000000;
SET pg_gpusort.work_mem = '1GB';
SELECT name, detail, advice FROM settings;
RESET pg_gpusort.enable;
RESET pg_gpusort.enable_index_build;
RESET pg_gpusort.min_rows;
RESET pg_gpusort.min_index_rows;
RESET pg_gpusort.work_mem;
-- how it is loaded depends on the server
SELECT count(*) FROM gpusort_advice() WHERE name = 'shared_preload_libraries' AND detail LIKE 'loaded for %' AND
	(advice IS NULL) = (detail = 'loaded for all sessions');

-- ---- Databases ----

-- this one comes first
SELECT count(*), bool_and(advice LIKE 'text gains%') AS gains FROM gpusort_advice(1)
WHERE subject = 'database' AND name = current_database() AND detail ~ '^(C library|ICU|builtin), .';

-- ---- Indexes ----

CREATE TABLE items AS
	SELECT g AS id, hashint4(g) AS k, 'item ' || hashint4(g) AS t, ARRAY[g, g % 7] AS a,
		   hashint4(g)::numeric AS n, to_jsonb(hashint4(g)) AS j, lpad(g::text, 9) AS o,
		   to_tsvector('simple', g::text) AS v
	FROM generate_series(1, 20000) g;
CREATE INDEX by_id ON items (id);
CREATE INDEX by_id_descending ON items (id DESC);
CREATE INDEX by_k ON items (k, t COLLATE "C") INCLUDE (id);
CREATE INDEX by_t ON items (t COLLATE "C" DESC);
CREATE INDEX by_o ON items (o COLLATE "C");
CREATE INDEX by_o_descending ON items (o COLLATE "C" DESC, id);
CREATE INDEX by_expression ON items ((k % 10), (t || o) COLLATE "C");
CREATE INDEX by_n ON items (n);
CREATE INDEX by_j ON items (j);
CREATE INDEX by_a ON items (a);
CREATE INDEX by_v ON items (v);
CREATE INDEX of_a ON items USING gin (a);
CREATE INDEX of_j ON items USING gin (j jsonb_path_ops);
CREATE INDEX hashed ON items USING hash (k);
CREATE INDEX few ON items (k) WHERE id < 1000;
CREATE TABLE parts (id int) PARTITION BY RANGE (id);
CREATE INDEX by_part ON parts (id);
ANALYZE items;
-- as large as they are said to be
UPDATE pg_class SET reltuples = 10000000, relpages = 25600 WHERE relnamespace = 'advice'::regnamespace AND relname NOT IN ('few', 'parts', 'by_part');
CREATE VIEW indexes AS
	SELECT name, detail, stock_s, gpusort_s, advice FROM gpusort_advice(NULL)
	WHERE subject = 'index' AND name ~ '^(by|of|few|hashed)' ORDER BY name COLLATE "C";
SELECT * FROM indexes;
SELECT count(*) FROM gpusort_advice(3) WHERE subject = 'index';
SELECT count(*) FROM gpusort_advice(0) WHERE subject = 'index';
-- larger than maintenance_work_mem
SELECT advice FROM gpusort_advice(3) WHERE name = 'maintenance_work_mem';
SET maintenance_work_mem = '1GB';
SELECT advice FROM gpusort_advice(3) WHERE name = 'maintenance_work_mem';
RESET maintenance_work_mem;

-- statistics of a table that one may not read are not used
CREATE ROLE regress_gpusort_advice;
GRANT regress_gpusort_advice TO CURRENT_USER;
GRANT USAGE ON SCHEMA advice TO regress_gpusort_advice;
SET ROLE regress_gpusort_advice;
SELECT stock_s, advice FROM gpusort_advice(NULL) WHERE subject = 'index' AND name = 'by_id';
RESET ROLE;
REVOKE USAGE ON SCHEMA advice FROM regress_gpusort_advice;
DROP ROLE regress_gpusort_advice;

-- ---- Encodings ----

SELECT gpusort_key_encoding('<(int4,int4)'::regoperator, 0) AS int4, gpusort_key_encoding('>(text,text)'::regoperator, '"C"'::regcollation) AS text,
	   gpusort_key_encoding('<(text,text)'::regoperator, 0) AS no_collation, gpusort_key_encoding('<(jsonb,jsonb)'::regoperator, 0) AS jsonb,
	   gpusort_key_encoding('<(tsvector,tsvector)'::regoperator, 0) AS tsvector,
	   gpusort_key_encoding('=(int4,int4)'::regoperator, 0) AS no_order, gpusort_key_encoding(1, 1) AS nothing, gpusort_key_encoding(NULL, 0) AS null;

-- ---- Statements ----

-- none without pg_stat_statements; 046_advice.pl has some
SELECT count(*) FROM gpusort_advice() WHERE subject = 'statement' AND current_setting('pg_stat_statements.max', true) IS NULL;

-- ---- What was sorted ----

SET pg_gpusort.min_rows = 0;
SELECT count(*) FROM (SELECT id FROM items ORDER BY k OFFSET 0) s;
SELECT detail ~ '^\d+ sorts of [\d,]+ rows$' AS detail, stock_s >= 0 AS stock, gpusort_s >= 0 AS gpusort, advice
FROM gpusort_advice() WHERE subject = 'done so far' AND name = 'cpu';
RESET pg_gpusort.min_rows;

-- ---- search_path ----

-- what another schema has is not taken for PostgreSQL's
CREATE FUNCTION advice.format_type(oid, int) RETURNS text LANGUAGE sql AS $$ SELECT 'wrong'::text $$;
CREATE VIEW advice.pg_class AS SELECT 1 AS wrong;
SET search_path = advice, pg_catalog;
SELECT count(*) FROM public.gpusort_advice(3) WHERE subject = 'index' AND detail !~ 'wrong';
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA advice CASCADE;
