--
-- Index builds: unique indexes, constraints, and their errors
-- needs: index_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_maintenance_workers = 0;

CREATE TABLE keys AS
	SELECT g * 7919 % 100003 AS k, CASE WHEN g % 3 > 0 THEN g * 7919 % 100003 END AS n, 'key ' || g AS t, g / 100 AS a, g % 100 AS b,
		   g % 2 = 0 AS even, g::float8 AS f
	FROM generate_series(0, 9999) g;
ANALYZE keys;
SELECT * FROM check_builds('CREATE UNIQUE INDEX built ON keys',
	'(k); (k DESC) INCLUDE (t); (n); (n NULLS FIRST); (t COLLATE "C"); (a, b); (b DESC, a); (a, n); ((k * 2));
	(f) WITH (fillfactor = 30)');
SELECT check_build('CREATE UNIQUE INDEX built ON keys (a) WHERE b = 3');
SELECT check_build('ALTER TABLE keys ADD CONSTRAINT built PRIMARY KEY (k)');
SELECT check_build('ALTER TABLE keys ADD CONSTRAINT built UNIQUE (b, a) INCLUDE (t) WITH (fillfactor = 70)');
SELECT check_build('ALTER TABLE keys ADD CONSTRAINT built UNIQUE (k) DEFERRABLE INITIALLY DEFERRED');
SELECT check_build('ALTER TABLE keys ADD CONSTRAINT built EXCLUDE USING btree (k WITH =)');
-- NULLs that are not distinct
SELECT check_build('CREATE UNIQUE INDEX built ON keys (n, k) NULLS NOT DISTINCT');
SELECT check_error('CREATE UNIQUE INDEX built ON keys (n) NULLS NOT DISTINCT');
ALTER TABLE keys ALTER k DROP NOT NULL;
INSERT INTO keys (a, b) VALUES (200000, 1);
SELECT check_build('CREATE UNIQUE INDEX built ON keys (k) NULLS NOT DISTINCT');
SELECT check_build('CREATE UNIQUE INDEX built ON keys (k, a) NULLS NOT DISTINCT');
INSERT INTO keys (a, b) VALUES (200001, 1);
SELECT check_error('CREATE UNIQUE INDEX built ON keys (k) NULLS NOT DISTINCT');
SELECT check_build('CREATE UNIQUE INDEX built ON keys (k)');
SELECT check_build('CREATE UNIQUE INDEX built ON keys (k) WHERE k > 77');
SELECT check_error('ALTER TABLE keys ADD CONSTRAINT built PRIMARY KEY (k)');
DELETE FROM keys WHERE a >= 200000;

-- duplicates, in several kinds of keys
INSERT INTO keys SELECT 7919, 7919, 'key 5000', 3, 17, true, 77;
SELECT * FROM check_errors('CREATE UNIQUE INDEX built ON keys',
	'(k); (k DESC); (n); (t COLLATE "C"); (a, b); (b, a DESC) INCLUDE (k); ((k * 2)); (f); (t COLLATE "C") WHERE even;
	(k) WHERE even');
SELECT check_error('ALTER TABLE keys ADD CONSTRAINT built PRIMARY KEY (k)');
SELECT check_error('ALTER TABLE keys ADD CONSTRAINT built UNIQUE (a, b)');
SELECT check_error('ALTER TABLE keys ADD CONSTRAINT built EXCLUDE USING btree (k WITH =)');
SELECT check_error('ALTER TABLE keys ADD CONSTRAINT built UNIQUE (k) DEFERRABLE');
SET maintenance_work_mem = '1MB';
SELECT * FROM check_errors('CREATE UNIQUE INDEX built ON keys',
	'(k); (t COLLATE "C")');
RESET maintenance_work_mem;
-- no index of ours is left behind, nor its memory
SELECT count(*) FROM pg_class WHERE relname = 'built';
SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'pg\_gpusort%' AND name <> 'pg_gpusort plan';
-- deleted ones are no duplicates
DELETE FROM keys WHERE t = 'key 5000' AND k = 7919;
SELECT * FROM check_builds('CREATE UNIQUE INDEX built ON keys',
	'(k); (n); (t COLLATE "C"); (a, b); (f)');
-- and updated ones
UPDATE keys SET f = f + 0.5 WHERE k % 7 = 0;
UPDATE keys SET t = t WHERE k % 5 = 0;
SELECT * FROM check_builds('CREATE UNIQUE INDEX built ON keys',
	'(k); (n DESC); (t COLLATE "C"); (a, b); (f)');
-- also within the transaction that has done it
BEGIN;
UPDATE keys SET f = f - 0.25 WHERE k % 11 = 0;
DELETE FROM keys WHERE k % 13 = 0;
INSERT INTO keys SELECT k, n, t, a, b, even, f FROM keys WHERE k % 17 = 0;
SELECT check_error('CREATE UNIQUE INDEX built ON keys (k) WHERE k = 17');
-- maybe of another duplicate
SELECT check_error('CREATE UNIQUE INDEX built ON keys (t COLLATE "C")') ~ '^"?could not create unique index "built"';
DELETE FROM keys WHERE k % 17 = 0;
SELECT * FROM check_builds('CREATE UNIQUE INDEX built ON keys',
	'(k); (n DESC); (t COLLATE "C"); (a, b); (f)');
ROLLBACK;
DROP TABLE keys;

-- values that are equal but not the same
CREATE TABLE alike (f float8, i interval, d numeric);
INSERT INTO alike VALUES ('0', '1 day', 1.0), ('1', '2 days', 2.0);
SELECT check_build('CREATE UNIQUE INDEX built ON alike (f)');
INSERT INTO alike VALUES ('-0', '24 hours', 1.00);
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
SELECT column_name, split_part(error_of(format('CREATE UNIQUE INDEX built ON alike (%s)', column_name)), '=', 1)
FROM unnest('{f, i, d}'::text[]) column_name;
RESET pg_gpusort.debug_require;
SELECT * FROM check_builds('CREATE INDEX built ON alike',
	'(f); (i); (d); (f, i, d)');
DROP TABLE alike;

-- foreign keys and ON CONFLICT use such indexes
SET pg_gpusort.debug_require = cpu;
CREATE TABLE parents AS SELECT g AS id, g % 10 AS v FROM generate_series(1, 1000) g;
ALTER TABLE parents ADD PRIMARY KEY (id);
CREATE TABLE children AS SELECT g % 1000 + 1 AS parent FROM generate_series(1, 2000) g;
ALTER TABLE children ADD FOREIGN KEY (parent) REFERENCES parents;
INSERT INTO children VALUES (1001);
INSERT INTO parents VALUES (77, 0), (1001, 1) ON CONFLICT (id) DO UPDATE SET v = -1;
SELECT * FROM parents WHERE id IN (77, 1001) ORDER BY id;
INSERT INTO parents VALUES (1001, 1);
RESET pg_gpusort.debug_require;
DROP TABLE children, parents;
